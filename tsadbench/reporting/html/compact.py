"""Reduce long series for a page without losing a peak."""

from __future__ import annotations

import base64
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tsadbench.utils.arrays import BoolArray, FloatArray, IntArray, mask_runs

_LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True, slots=True)
class Buckets:
    """Neighbouring rows that a page shows as one point, or as two: the lowest and the highest value among them.

    Parameters
    ----------
    starts
        [n_buckets], the first row of each.
    n_rows
        Of the series.
    """

    starts: IntArray
    n_rows: int

    @classmethod
    def at_most(cls, n_points: int, n_rows: int) -> Buckets:
        """Return one bucket per row, or half as many buckets as points if that gives too many points."""
        n = n_rows if n_rows <= n_points else max(1, n_points // 2)
        return cls(np.unique(np.linspace(0, n_rows, n, endpoint=False).astype(np.intp)), n_rows)

    @property
    def whole(self) -> bool:
        """Whether each row has a bucket of its own."""
        return len(self.starts) == self.n_rows

    def rows(self) -> IntArray:
        """Return the row of each point, [n_points]."""
        if self.whole:
            return self.starts
        ends = np.append(self.starts[1:], self.n_rows)
        return np.stack([self.starts, np.maximum(self.starts, ends - 1)], axis=1).ravel()

    def envelope(self, values: FloatArray) -> FloatArray:
        """Return the points of a series: each bucket's lowest and highest value, in the order of their rows.

        Parameters
        ----------
        values
            [n_rows]; a bucket that holds only NaN gives NaN.

        Returns
        -------
        FloatArray
            [n_points].
        """
        if self.whole:
            return values
        lowest = np.fmin.reduceat(values, self.starts)
        highest = np.fmax.reduceat(values, self.starts)
        swapped = self._first(values, lowest) > self._first(values, highest)
        return np.where(swapped, [highest, lowest], [lowest, highest]).T.ravel()

    def _first(self, values: FloatArray, targets: FloatArray) -> IntArray:
        """Return the first row of each bucket that holds the bucket's target value, [n_buckets]."""
        sizes = np.diff(self.starts, append=self.n_rows)
        rows = np.where(values == np.repeat(targets, sizes), np.arange(self.n_rows), self.n_rows)
        first: IntArray = np.minimum.reduceat(rows, self.starts)
        return first

    def highest(self, values: FloatArray) -> FloatArray:
        """Return each bucket's highest value by column, [n_buckets, n_columns]; NaN counts as 0."""
        highest: FloatArray = np.maximum.reduceat(np.nan_to_num(values), self.starts, axis=0)
        return highest

    def runs(self, rows: BoolArray) -> list[list[int]]:
        """Return the runs of buckets in which a row is True, as rows: [first, end), the last one excluded."""
        ends = np.append(self.starts, self.n_rows)
        return [[int(ends[first]), int(ends[end])] for first, end in mask_runs(self.any(rows))]

    def any(self, rows: BoolArray) -> BoolArray:
        """Return whether a row of each bucket is True, [n_buckets]."""
        found: BoolArray = np.logical_or.reduceat(rows, self.starts)
        return found


def packed(values: ArrayLike) -> str:
    """Return numbers as base64 of little-endian float32; numbers out of its range become its largest."""
    within = np.clip(np.asarray(values, dtype=np.float64), -_LARGEST, _LARGEST)
    return base64.b64encode(within.astype("<f4").tobytes()).decode()


def packed_shares(shares: FloatArray) -> str:
    """Return shares, 0 to 1, as base64 of one byte each."""
    return base64.b64encode(np.round(np.clip(shares, 0, 1) * 255).astype(np.uint8).tobytes()).decode()


def packed_flags(flags: BoolArray) -> str:
    """Return flags as base64 of one bit each, the first one the highest of its byte."""
    return base64.b64encode(np.packbits(flags).tobytes()).decode()


def thinned(x: FloatArray, y: FloatArray, n_points: int) -> tuple[FloatArray, FloatArray]:
    """Return at most ``n_points`` points of a curve in the unit square, evenly spaced along it, with both ends."""
    if len(x) <= n_points:
        return x, y
    along = np.concatenate([[0.0], np.cumsum(np.hypot(np.diff(x), np.diff(y)))])
    chosen = np.unique(np.searchsorted(along, np.linspace(0.0, along[-1], n_points)).clip(0, len(x) - 1))
    chosen[-1] = len(x) - 1
    return x[chosen], y[chosen]
