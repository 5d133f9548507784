"""The result of a comparison of stored detectors, in all its formats."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import pandas as pd

from tsadbench.analysis.significance.comparison_tables import (
    NAMES,
    described,
    detectors_table,
    differences_table,
    sessions_table,
)
from tsadbench.analysis.significance.inference import Inference
from tsadbench.analysis.significance.pairs import Pair
from tsadbench.analysis.significance.per_recording import ComparedDetector
from tsadbench.base.protocol import Metric
from tsadbench.leaderboard.formatting import csv_text, number, plain, plain_table
from tsadbench.leaderboard.latex import PREAMBLE, escape, floating, label_text, numeral, small_print, tabular
from tsadbench.leaderboard.presentation import Table

SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Comparison:
    """Detectors of a run store, compared by one metric over the sessions of a split; all other metrics describe.

    ``rope`` is the region of practical equivalence. ``recordings`` [n_recordings, n_detectors] are means of that metric
    over seeds, NaN where undefined; sessions on which it is undefined are ``left_out``. ``contenders`` include those
    that failed. An oracle's title ends in a star.
    """

    dataset: str
    protocol: str
    protocol_version: int
    split: str
    metric: Metric
    rope: float
    recordings: pd.DataFrame
    sessions: Mapping[str, tuple[str, ...]]
    left_out: Mapping[str, str]
    contenders: tuple[ComparedDetector, ...]
    inference: Inference
    titles: Mapping[str, str]
    notes: tuple[str, ...]

    @property
    def subject(self) -> str:
        """What was measured: metric, data set, split and protocol."""
        rules = f"{self.protocol} {self.protocol_version}"
        return f"{self.metric.title} on {self.dataset}, split {self.split}, protocol {rules}"

    @property
    def title(self) -> str:
        """The subject, with the numbers of recordings and sessions."""
        n = len(self.sessions)
        return f"{self.subject}: {len(self.recordings)} recordings, {n} session{'s' if n > 1 else ''}"

    def to_json(self) -> str:
        """Return all of it as one JSON object."""
        inference = self.inference
        content = {
            "schema": SCHEMA,
            "dataset": self.dataset,
            "protocol": self.protocol,
            "protocol_version": self.protocol_version,
            "split": self.split,
            "metric": self.metric.name,
            "rope": self.rope,
            "detectors": [{**asdict(one), "mean_rank": inference.mean_ranks.get(one.label)} for one in self.contenders],
            "recordings": _by_unit(self.recordings),
            "clusters": [list(members) for members in self.sessions.values()],
            "sessions": {
                name: {"recordings": list(self.sessions[name]), "values": values}
                for name, values in _by_unit(inference.units).items()
            },
            "left_out": dict(self.left_out),
            "friedman": None if inference.friedman is None else asdict(inference.friedman),
            "pairs": [asdict(pair) for pair in inference.pairs],
            "tested": inference.tested,
            "conclusive": inference.conclusive,
            "conclusions": list(inference.conclusions),
            "notes": list(self.notes),
        }
        return json.dumps(content, indent=1, allow_nan=False) + "\n"

    def to_csv(self) -> str:
        """Return the pairs as CSV, full precision, empty where undefined."""
        return csv_text(self.to_frame())

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame with one row per pair, columns as in the CSV."""
        return pd.DataFrame.from_records([_flat(pair) for pair in self.inference.pairs])

    def to_markdown(self) -> str:
        """Return the tables, the conclusions and the notes as Markdown."""
        parts = [f"### {plain(self.title)}", ""]
        for title, header, rows in self.tables():
            parts += [f"{title}:", "", *plain_table(header, rows), ""]
        parts += [*(f"- {plain(sentence)}" for sentence in self.conclusions), "", self.legend]
        if self.notes:
            parts += ["", *(f"- {plain(note)}" for note in self.notes)]
        return "\n".join(parts) + "\n"

    def to_latex(self) -> str:
        """Return a LaTeX table (booktabs) for each table, what it shows and how to read it below the last."""
        below = small_print([*self.conclusions, self.legend, *self.notes])
        tables = self.tables()
        parts = [PREAMBLE]
        for title, header, rows in tables:
            n_names = sum(name in NAMES for name in header)
            lines = [
                " & ".join([*map(label_text, row[:n_names]), *map(numeral, row[n_names:])]) + r" \\" for row in rows
            ]
            parts.append(
                floating(
                    f"{escape(f'{self.title}. {title}')}.",
                    (self.dataset, f"{self.protocol} {self.protocol_version}", self.split, self.metric.name, title),
                    tabular("l" * n_names + "r" * (len(header) - n_names), header, [lines]),
                    below if title == tables[-1][0] else "",
                )
            )
        return "\n".join(parts)

    @property
    def conclusions(self) -> tuple[str, ...]:
        """What the inference says in words."""
        return self.inference.conclusions

    def tables(self) -> tuple[Table, ...]:
        """Return title, header and rows of each table: the detectors, the sessions if few, each pair's differences."""
        detectors = detectors_table(self.contenders, self.inference, self.metric, self.titles)
        if self.inference.tested:
            return detectors, differences_table(self.inference.pairs)
        return detectors, sessions_table(self.inference, self.sessions, self.metric), described(self.inference)

    @property
    def legend(self) -> str:
        """What the tables' columns mean."""
        corrected = ", after Holm's correction for all pairs" if len(self.inference.pairs) > 1 else ""
        tested = (
            f" Differences have a 95 % bootstrap interval of the mean; rank-biserial runs from -1 to 1. p: Wilcoxon's "
            f"signed-rank test, two-sided{corrected}; smallest p: the smallest that so many sessions can give."
        )
        return (
            f"Means over sessions, of each metric on all rows of a session, seeds averaged. {self.metric.title} was "
            f"chosen to compare, the other metrics describe (* chosen with the test labels: an upper bound, not a "
            f"result). Differences are first - second; win/tie/loss counts those beyond, within and below "
            f"{number(self.rope, 2)}, the region of practical equivalence.{tested if self.inference.tested else ''}"
        )

    def __str__(self) -> str:
        return self.to_markdown()

    def _repr_markdown_(self) -> str:
        return self.to_markdown()


def _by_unit(values: pd.DataFrame) -> dict[str, dict[str, float | None]]:
    """Return values by unit and detector; None where undefined."""
    rows = values.astype(object).where(values.notna(), None)
    return {str(unit): dict(row) for unit, row in rows.iterrows()}


def _flat(pair: Pair) -> dict[str, str | int | float | None]:
    interval, test = pair.interval, pair.wilcoxon
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
        "sessions_needed": pair.sessions_needed,
        "p": None if test is None else test.p,
        "p_holm": pair.p_holm,
        "smallest_p": None if test is None else test.smallest,
        "n_different": None if test is None else test.n_different,
        "wilcoxon": None if test is None else test.method,
    }
