"""Which row of one data set is which row of another: by label, without what only bounds the cost of a fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from tsadbench.analysis.significance.tables import Table
from tsadbench.base.protocol import Metric
from tsadbench.execution.record import Record
from tsadbench.leaderboard.marks import INCOMPLETE, LEAKY, UNFORGETTING
from tsadbench.leaderboard.ranking import Row, ranked_rows
from tsadbench.utils.arrays import FloatArray
from tsadbench.utils.grouping import grouped
from tsadbench.utils.parameters import Label, parse_label

# Parameters that only bound what a fit costs: large data sets are run with fewer steps.
BOUNDS = frozenset({"max_steps"})

MEANINGS = {
    LEAKY: "it is leaky",
    UNFORGETTING: "it does not forget",
    INCOMPLETE: "it left evaluated rows without a score",
}

# Each row's metric on a split and its resamples, [1 + n_resamples], by label.
Drawn: TypeAlias = Mapping[str, FloatArray]
Status: TypeAlias = Literal["ok", "failed", "marked", "undefined", "missing"]


@dataclass(frozen=True, slots=True, eq=False)
class Standings:
    """The rows of a data set on one split, by what they are called over all data sets.

    Parameters
    ----------
    table, split, metric
        Where they come from, and what ranks them.
    rows
        By their common names: those that take part, failed ones, and those that are marked.
    beside
        Labels of rows that another row of the same name stands for.
    drawn
        The rows' metrics on resamples, by label; those that have none are drawn as they are.
    """

    table: Table
    split: str
    metric: Metric
    rows: Mapping[str, Row]
    beside: tuple[str, ...]
    drawn: Drawn

    @classmethod
    def of(cls, table: Table, split: str, metric: Metric, drawn: Drawn) -> Standings:
        """Match the rows of a table; of several that bear one name an unbounded one that did not fail counts."""
        rows = ranked_rows([record for row in table.all_rows for record in row.records], split)
        alike = grouped(sorted(rows, key=_preference), lambda row: common_name(row.first))
        return cls(
            table=table,
            split=split,
            metric=metric,
            rows={name: same[0] for name, same in alike.items()},
            beside=tuple(row.label for same in alike.values() for row in same[1:]),
            drawn=drawn,
        )

    @property
    def dataset(self) -> str:
        """Name of the data set."""
        return self.table.first.dataset

    def status(self, name: str) -> Status:
        """Return how a row fared on the data set."""
        row = self.rows.get(name)
        if row is None:
            return "missing"
        if mark_of(row):
            return "marked"
        if not row.ok:
            return "failed"
        return "undefined" if self.value(name) is None else "ok"

    def value(self, name: str) -> float | None:
        """Return the metric of a row, the mean over seeds; None if it has none."""
        row = self.rows.get(name)
        return None if row is None or not row.ok else row.metrics[self.metric.name].mean

    def gains(self, names: Sequence[str]) -> FloatArray:
        """Return values of which the higher one is better, [n_names, 1 + n_resamples] (`suite_draws`).

        Resamples on which the metric of a row is undefined are left out.
        """
        taking_part = [name for name in names if self.status(name) == "ok"]
        n_columns = 1 + max((len(values) - 1 for values in self.drawn.values()), default=0)
        found = np.full((len(names), n_columns), np.nan)
        for place, name in enumerate(names):
            if self.status(name) == "failed":
                found[place] = -np.inf
            elif name in taking_part:
                value = self.value(name)
                found[place] = self.drawn.get(self.rows[name].label, np.nan if value is None else value)
                found[place, 0] = value
        ok = [place for place, name in enumerate(names) if name in taking_part]
        defined = ~np.isnan(found[ok]).any(axis=0)
        sign = -1.0 if self.metric.better == "lower" else 1.0
        found[ok] *= sign
        kept: FloatArray = found[:, defined] if defined.any() else found[:, :1]
        return kept


def common_name(record: Record) -> str:
    """Return a row's name over all data sets: its label without the bounds of its cost."""
    parsed = parse_label(record.label)
    return str(Label(parsed.target, {key: text for key, text in parsed.arguments.items() if key not in BOUNDS}))


def bounded(row: Row) -> bool:
    """Return whether the cost of a row's fits was bounded."""
    return bool(parse_label(row.label).arguments.keys() & BOUNDS)


def mark_of(row: Row) -> str:
    """Return the mark for which a row takes no part; empty if it does. Floors only must not leak."""
    if row.leaky:
        return LEAKY
    if row.floor or not row.ok or row.sound:
        return ""
    return INCOMPLETE if row.forgets else UNFORGETTING


def _preference(row: Row) -> tuple[bool, bool, str]:
    return not row.ok, bounded(row), row.label
