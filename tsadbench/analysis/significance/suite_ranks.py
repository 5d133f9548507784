"""The ranking over several data sets, in all its formats."""

from __future__ import annotations

import json
from collections.abc import Container, Mapping
from dataclasses import asdict, dataclass, replace

import pandas as pd

from tsadbench.analysis.significance.suite_rows import Status
from tsadbench.analysis.significance.tables import FLOOR
from tsadbench.base.protocol import Metric
from tsadbench.leaderboard.formatting import csv_text, plain, plain_table
from tsadbench.leaderboard.presentation import Table
from tsadbench.leaderboard.throughput import minutes_text

SCHEMA = 1
PARTIAL = "‡"


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A number over data sets, with the 90 % interval of it over resamples; None where nothing defines it."""

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OnDataset:
    """How a row fared on one data set.

    Parameters
    ----------
    status
        "ok"; "failed", which is the last rank; "marked": it takes no part there; "undefined": its metric is; "missing".
    label, seeds
        What stands for it there, and how many seeds it was run with; empty and 0 if it is missing.
    mark
        Why it takes no part, as tables mark it.
    value, rank
        Its metric, the mean over seeds; its rank among the complete rows and itself.
    beats_floors
        Whether it is better than the best floor; None for floors.
    """

    status: Status
    label: str = ""
    seeds: int = 0
    mark: str = ""
    value: float | None = None
    rank: float | None = None
    beats_floors: bool | None = None

    @property
    def cell(self) -> str:
        """Its rank, or why it has none."""
        if self.status == "failed":
            return "failed"
        return self.mark or ("-" if self.rank is None else f"{self.rank:g}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A row over all data sets.

    Parameters
    ----------
    label, floor
        What it is called over all data sets; whether it is a floor.
    complete
        Whether it has a rank on every data set, be it for a failure.
    n_datasets, n_failed
        On how many data sets it has a rank, and on how many of them it failed.
    mean_rank
        Over the data sets on which it has one.
    beats_floors
        The share of these data sets on which it is better than the best floor; undefined for floors.
    wins, pairs
        How many pairs of a complete row and a data set it wins, ties half, of how many.
    on
        By data set.
    """

    label: str
    floor: bool
    complete: bool
    n_datasets: int
    n_failed: int
    mean_rank: Estimate
    beats_floors: Estimate
    wins: float
    pairs: int
    on: Mapping[str, OnDataset]

    @property
    def name(self) -> str:
        """What it is called, with its marks."""
        return f"{self.label}{f' {FLOOR}' if self.floor else ''}{'' if self.complete else f' {PARTIAL}'}"

    @property
    def cells(self) -> list[str]:
        """Mean rank, interval, detector, floors beaten, interval, then its rank on each data set, as text."""
        beaten = [found.beats_floors for found in self.on.values() if found.beats_floors is not None]
        return [
            _number(self.mean_rank.value, 2),
            _interval(self.mean_rank, ".1f"),
            self.name,
            f"{sum(beaten)} of {len(beaten)}" if beaten else "-",
            _interval(self.beats_floors, ".0%"),
            *(found.cell for found in self.on.values()),
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One data set of a ranking over several.

    Parameters
    ----------
    dataset, dataset_version, split
        What of it counts.
    best_floor
        Label and value of the best floor; None if no floor takes part.
    n_resamples
        Of its sessions; None if none were drawn: it counts as it is.
    core_minutes
        Of all its rows.
    """

    dataset: str
    dataset_version: int
    split: str
    best_floor: tuple[str, float] | None
    n_resamples: int | None
    core_minutes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """In which share of the data sets one row is better than another, ties half, and on how many both have a rank."""

    first: str
    second: str
    rate: Estimate
    n_datasets: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteRanking:
    """The rows of several data sets under a protocol, by mean rank.

    Parameters
    ----------
    suite
        Name and version; empty for all data sets that there are.
    protocol, protocol_version, metric
        What they are ranked on.
    parts
        The data sets.
    missing
        Data sets of the suite that no store has.
    standings
        Complete rows by mean rank, then the others.
    pairings
        Each two rows that share a data set, in the order of the standings.
    n_draws
        How many times data sets were drawn.
    notes
        What readers must know.
    """

    suite: str
    protocol: str
    protocol_version: int
    metric: Metric
    parts: tuple[Part, ...]
    missing: tuple[str, ...]
    standings: tuple[Standing, ...]
    pairings: tuple[Pairing, ...]
    n_draws: int
    notes: tuple[str, ...] = ()

    @property
    def datasets(self) -> tuple[str, ...]:
        """Names of the data sets."""
        return tuple(part.dataset for part in self.parts)

    @property
    def core_minutes(self) -> float:
        """What all rows cost."""
        return sum(part.core_minutes for part in self.parts)

    @property
    def n_complete(self) -> int:
        """How many rows are complete."""
        return sum(standing.complete for standing in self.standings)

    @property
    def title(self) -> str:
        """What is ranked."""
        wanted = f" of {len(self.parts) + len(self.missing)}" if self.missing else ""
        suite = f", suite {self.suite}" if self.suite else ""
        return (
            f"{self.metric.title} over {len(self.parts)}{wanted} data sets{suite}, "
            f"protocol {self.protocol} {self.protocol_version}"
        )

    @property
    def table(self) -> Table:
        """Title, header and rows."""
        header = ["mean rank", "90 % interval", "detector", "beats the best floor", "90 % interval"]
        parts = [part.dataset + (f" ({part.split})" if part.split != "overall" else "") for part in self.parts]
        rows = [standing.cells for standing in self.standings]
        return self.title, [*header, *parts], rows

    def only(self, labels: Container[str]) -> SuiteRanking:
        """Return the ranking with some rows; ranks stay those among all rows."""
        return replace(
            self,
            standings=tuple(standing for standing in self.standings if standing.label in labels),
            pairings=tuple(pair for pair in self.pairings if pair.first in labels and pair.second in labels),
        )

    @property
    def legend(self) -> str:
        """What the columns mean, and what the rows cost."""
        inside = [part.dataset for part in self.parts if part.n_resamples is not None]
        as_they_are = [part.dataset for part in self.parts if part.n_resamples is None]
        drawn = f"{self.n_draws:,} draws of the data sets, with replacement"
        if inside:
            drawn += f", and for each drawn one a resample of its sessions ({', '.join(inside)})"
        if inside and as_they_are:
            drawn += f"; {', '.join(as_they_are)} as they are"
        drawn += "; seeds are averaged, not drawn"
        return (
            f"Mean over the data sets of a row's rank there, 1 for the best, floors (marked {FLOOR}) included; equal "
            f"values share their mean rank, failures the last one. Ranks count the {self.n_complete} rows that ran on "
            f"every data set; {PARTIAL} did not, is ranked among these and itself, has means over what it has, and is "
            f"listed last. Nothing is imputed. Beats the best floor: on how many data sets, by that data set's floors. "
            f"Intervals: 5 % to 95 % over {drawn}. {minutes_text(self.core_minutes)} on all data sets together."
        )

    def to_json(self) -> str:
        """Return all of it as one JSON object."""
        return json.dumps({"schema": SCHEMA, **self.content()}, indent=1) + "\n"

    def content(self) -> dict[str, object]:
        """Return what its JSON object holds."""
        return {
            **asdict(self),
            "metric": self.metric.name,
            "core_minutes": self.core_minutes,
            "n_complete": self.n_complete,
        }

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame with one row per detector."""
        return pd.DataFrame.from_records([_flat(standing) for standing in self.standings])

    def to_csv(self) -> str:
        """Return the rows as CSV, full precision, empty where undefined."""
        return csv_text(self.to_frame())

    def to_markdown(self) -> str:
        """Return the table, its legend and its notes as Markdown."""
        title, header, rows = self.table
        notes = (f"- {plain(note)}" for note in self.notes)
        return "\n".join([f"### {plain(title)}", "", *plain_table(header, rows), "", self.legend, "", *notes]) + "\n"


def _flat(standing: Standing) -> dict[str, object]:
    flat: dict[str, object] = {
        "detector": standing.label,
        "floor": standing.floor,
        "complete": standing.complete,
        "datasets": standing.n_datasets,
        "failed": standing.n_failed,
    }
    for name, estimate in (("rank", standing.mean_rank), ("beats_floors", standing.beats_floors)):
        flat |= {name if part == "value" else f"{name}_{part}": value for part, value in asdict(estimate).items()}
    flat |= {"wins": standing.wins, "pairs": standing.pairs}
    for dataset, found in standing.on.items():
        flat |= {f"{dataset}_{name}": getattr(found, name) for name in ("status", "label", "value", "rank")}
    return {name: "" if value is None else value for name, value in flat.items()}


def _interval(estimate: Estimate, form: str) -> str:
    if estimate.low is None or estimate.high is None:
        return "-"
    return f"{estimate.low:{form}} to {estimate.high:{form}}"


def _number(value: float | None, decimals: int) -> str:
    return "-" if value is None else f"{value:.{decimals}f}"
