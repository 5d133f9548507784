"""Rows on a regular grid that begins with the first of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import pandas as pd

from tsadbench.utils.arrays import BoolArray, FloatArray, IntArray

By: TypeAlias = Literal["median", "mean", "last"]
# More rows than this, and so many times more than the file has, are a wrong time.
_MOST_ROWS, _MOST_TIMES_MORE = 1_000_000, 1_000


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """A regular grid: the times of its rows, and for each row of the file the row of the grid that it lies in."""

    time: FloatArray
    bins: IntArray

    @classmethod
    def of(cls, time: FloatArray, every: float) -> Grid:
        """Return the grid for rows at these ascending times [n_rows] in seconds, of which there is at least one."""
        # Seconds since 1970 in binary are inexact by up to a step of theirs: a row on a border belongs behind it.
        tolerance = 1e-9 + 2.0 * np.spacing(np.abs(time).max()) / every
        bins = np.floor((time - time[0]) / every + tolerance).astype(np.int64)
        return cls(time[0] + np.arange(bins[-1] + 1) * every, bins)

    def values(self, values: FloatArray, by: By, rows: IntArray | None = None) -> FloatArray:
        """Return one sensor's values on the grid, from all rows of the file or some; NaN where there is none."""
        found = pd.Series(values).groupby(self.bins if rows is None else self.bins[rows]).agg(by)
        laid = found.reindex(range(len(self.time)))
        return (laid.ffill() if by == "last" else laid).to_numpy(np.float64)

    def labels(self, labels: BoolArray) -> BoolArray:
        """Return where any row is anomalous; where there is none, whether the file's last one before is."""
        groups = pd.Series(labels.astype(float)).groupby(self.bins)
        rows = range(len(self.time))
        held = groups.max().reindex(rows).fillna(groups.last().reindex(rows).ffill())
        return held.to_numpy() > 0


def grid_fault(time: FloatArray, every: float, *, held: bool) -> str:
    """Return why rows at these ascending times cannot be laid on a grid; an empty text if they can.

    ``held`` says whether they are changes of a value that holds until the next: these have no step of their own.
    """
    if len(time) < 2:
        return ""
    step = float(np.median(np.diff(time)))
    if not held and every < 0.99 * step:
        return f"resample.every is {every:g} s, but its rows lie {step:g} s apart; set it to that or more"
    n_rows = (float(time[-1]) - float(time[0])) / every + 1.0
    if n_rows > _MOST_ROWS and n_rows > _MOST_TIMES_MORE * len(time):
        return f"resample.every = {every:g} s makes {n_rows:,.0f} rows of {len(time):,}; is this time correct?"
    return ""
