"""A comparison of stored detectors: where its numbers come from, what they tell, and in which formats."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from tsadbench.analysis.significance.inference import Inference
from tsadbench.analysis.significance.matrix import Clusters, Matrix
from tsadbench.analysis.significance.pairs import Pair
from tsadbench.base.protocol import Metric
from tsadbench.utils.parameters import JsonValue

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrant:
    """One detector of a comparison.

    Parameters
    ----------
    label
        As in tables.
    seeds
        Of its trials.
    status
        "ok", or the first bad one: it takes no part then, for a mean over the seeds that survived is another number.
    failed
        Seed, status and reason of each trial that failed.
    metrics
        By name: the mean over the units of the mean over seeds, to describe; None where undefined on one of them.
        Empty where the detector failed.
    """

    label: str
    seeds: tuple[int, ...]
    status: str
    failed: tuple[dict[str, JsonValue], ...]
    metrics: Mapping[str, float | None]

    @property
    def ok(self) -> bool:
        """Whether all of its trials are."""
        return self.status == "ok"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Comparison:
    """Detectors of a run store, compared by one metric over the recordings of a split.

    Parameters
    ----------
    dataset, protocol, split
        What they were run on, and the recordings that count.
    metric
        The one that tests are about; all others describe.
    rope
        The region of practical equivalence.
    recordings
        That metric: a mean over seeds for each recording and detector that takes part.
    clusters
        Recordings that share rows, together.
    left_out
        Recordings on which the metric is undefined, and why.
    entrants
        In the order they were named; those that failed as well.
    inference
        What the numbers tell.
    titles
        Of all metrics, by name; an oracle's ends in a star.
    notes
        What has to be known to read it.
    """

    dataset: str
    protocol: str
    split: str
    metric: Metric
    rope: float
    recordings: Matrix
    clusters: Clusters
    left_out: Mapping[str, str]
    entrants: tuple[Entrant, ...]
    inference: Inference
    titles: Mapping[str, str]
    notes: tuple[str, ...]

    @property
    def place(self) -> str:
        """What was measured where."""
        return f"{self.metric.title} on {self.dataset}, split {self.split}, protocol {self.protocol}"

    @property
    def title(self) -> str:
        """What was compared on what, in a line."""
        n, units = len(self.recordings.units), len(self.clusters)
        shared = f", {units} independent ones after joining those that share rows" if units < n else ""
        return f"{self.place}: {n} recordings{shared}"

    def to_json(self) -> str:
        """Return all of it as one JSON object."""
        found = self.inference
        content = {
            "schema": SCHEMA,
            "dataset": self.dataset,
            "protocol": self.protocol,
            "split": self.split,
            "metric": self.metric.name,
            "rope": self.rope,
            "detectors": [{**asdict(one), "mean_rank": found.mean_ranks.get(one.label)} for one in self.entrants],
            "recordings": self.recordings.to_json(),
            "clusters": [list(members) for members in self.clusters],
            "left_out": dict(self.left_out),
            "friedman": None if found.friedman is None else asdict(found.friedman),
            "pairs": [asdict(pair) for pair in found.pairs],
            "conclusive": found.conclusive,
            "conclusions": list(found.conclusions),
            "notes": list(self.notes),
        }
        return json.dumps(content, indent=1, allow_nan=False) + "\n"

    def to_csv(self) -> str:
        """Return the pairs as CSV, full precision, empty where undefined."""
        text = io.StringIO()
        records = self._records()
        writer = csv.DictWriter(text, list(records[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)
        return text.getvalue()

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame, a row a pair, columns as in the CSV."""
        import pandas as pd

        return pd.DataFrame.from_records(self._records())

    def to_markdown(self) -> str:
        """Return the tables, the conclusions and the notes as Markdown."""
        from tsadbench.analysis.significance.render import markdown

        return markdown(self)

    def _repr_markdown_(self) -> str:
        return self.to_markdown()

    def _records(self) -> list[dict[str, str | int | float | None]]:
        return [_flat(pair) for pair in self.inference.pairs]


def _flat(pair: Pair) -> dict[str, str | int | float | None]:
    interval = pair.interval
    return {
        "first": pair.first,
        "second": pair.second,
        "n_units": pair.n_units,
        "mean_difference": pair.mean_difference,
        "low": None if interval is None else interval.low,
        "high": None if interval is None else interval.high,
        "interval": None if interval is None else interval.method,
        "median_difference": pair.median_difference,
        "rank_biserial": pair.rank_biserial,
        "wins": pair.wins,
        "ties": pair.ties,
        "losses": pair.losses,
        "p": pair.wilcoxon.p,
        "p_holm": pair.p_holm,
        "smallest_p": pair.wilcoxon.smallest,
        "n_different": pair.wilcoxon.n_different,
        "wilcoxon": pair.wilcoxon.method,
    }
