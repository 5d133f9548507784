"""Resampling: rows of a file are laid on a regular grid that begins at the file's first time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import pandas as pd

from tsadbench.utils.arrays import BoolArray, FloatArray, IntArray

By: TypeAlias = Literal["median", "mean", "last"]

# A grid of more rows than this, and of many times more rows than the file has, is a mistake in the times.
_MOST_ROWS, _MOST_TIMES_MORE = 1_000_000, 1_000


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """A regular grid, and which rows of a file each of its rows stands for: those from its time up to the next.

    Parameters
    ----------
    start, every
        The time of its first row, and seconds from row to row.
    bins
        [n_rows of the file], the row of the grid that stands for each; ascending.
    n_rows
        How many rows the grid has.
    """

    start: float
    every: float
    bins: IntArray
    n_rows: int

    @property
    def time(self) -> FloatArray:
        """The times [n_rows] of its rows, in seconds."""
        return self.start + self.every * np.arange(self.n_rows, dtype=np.float64)

    @property
    def first_rows(self) -> IntArray:
        """For each row [n_rows], the file's first row that it stands for; if there is none, the next row."""
        return np.searchsorted(self.bins, np.arange(self.n_rows))

    def values(self, values: FloatArray, by: By) -> FloatArray:
        """Return the sensors' values on the grid; NaN where there is none, except that the last one holds.

        Parameters
        ----------
        values
            [n_rows of the file, n_sensors], NaN if a value is missing, which counts nowhere.
        by
            What stands for several values.
        """
        laid = np.empty((self.n_rows, values.shape[1]))
        for sensor in range(values.shape[1]):
            laid[:, sensor] = self.series(values[:, sensor], self.bins, by)
        return laid

    def series(self, values: FloatArray, bins: IntArray, by: By) -> FloatArray:
        """Return one sensor's values on the grid [n_rows], from values in these rows of it."""
        given = ~np.isnan(values)
        values, bins = values[given], bins[given]
        laid = np.full(self.n_rows, np.nan)
        if len(values) == 0:
            return laid
        if by == "last":
            held = np.searchsorted(bins, np.arange(self.n_rows), side="right") - 1
            laid[held >= 0] = values[held[held >= 0]]
        else:
            groups = pd.Series(values).groupby(bins)
            found = groups.median() if by == "median" else groups.mean()
            laid[found.index.to_numpy()] = found.to_numpy()
        return laid

    def labels(self, labels: BoolArray) -> BoolArray:
        """Return where any row is anomalous [n_rows]; of none, whether the file's last one before is."""
        laid = np.bincount(self.bins, weights=labels, minlength=self.n_rows) > 0
        last = np.searchsorted(self.bins, np.arange(self.n_rows), side="right") - 1
        return np.where(self.bins[last] == np.arange(self.n_rows), laid, labels[last])


def grid_of(time: FloatArray, every: float) -> Grid:
    """Return the grid for rows at these ascending times [n_rows] in seconds, of which there is at least one."""
    # Seconds since 1970 in binary are inexact by up to a step of theirs: a row on a border belongs behind it.
    tolerance = 1e-9 + 2.0 * np.spacing(np.abs(time).max()) / every
    bins = np.floor((time - time[0]) / every + tolerance).astype(np.int64)
    return Grid(float(time[0]), every, bins, int(bins[-1]) + 1)


def grid_fault(time: FloatArray, every: float, *, held: bool) -> str | None:
    """Return why rows at these ascending times cannot be laid on a grid, or None if they can.

    Parameters
    ----------
    time
        [n_rows] seconds.
    every
        Seconds from row to row of the grid.
    held
        Whether rows are changes of a value that holds until the next: they have no step of their own.
    """
    if len(time) < 2:
        return None
    step = float(np.median(np.diff(time)))
    if not held and every < 0.99 * step:
        return (
            f"resample.every is {every:g} s, but half of its rows or more lie {step:g} s apart: resampling cannot make "
            f"rows that were not measured; set every to {step:g} s or more"
        )
    n_rows = (float(time[-1]) - float(time[0])) / every + 1.0
    if n_rows > _MOST_ROWS and n_rows > _MOST_TIMES_MORE * len(time):
        return (
            f"resample.every = {every:g} s would make {n_rows:,.0f} rows of its {len(time):,}: one time seems to lie "
            "far from the others; correct it, or set every to more"
        )
    return None
