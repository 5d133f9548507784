"""Helpers for detectors that score single rows: blocks, evenly spaced rows, the trailing median."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from tsadbench.base import FloatArray, IntArray, Recording


def by_blocks(function: Callable[[FloatArray], FloatArray], values: FloatArray, at_once: int) -> FloatArray:
    """Return ``function(values)``, computed for ``at_once`` rows at a time, so that intermediate arrays stay small.

    Examples
    --------
    >>> by_blocks(lambda rows: rows.max(axis=1), np.array([[1.0, 2.0], [4.0, 3.0], [5.0, 6.0]]), at_once=2)
    array([2., 4., 6.])
    """
    return np.concatenate([function(values[start : start + at_once]) for start in range(0, len(values), at_once)])


def evenly_spaced_rows(recordings: Sequence[Recording], at_most: int) -> tuple[FloatArray, IntArray]:
    """Return the pooled rows, or ``at_most`` evenly spaced ones, [n_chosen, n_sensors], and their numbers [n_chosen].

    Examples
    --------
    >>> recordings = [Recording(name, np.full((3, 1), value), ("x",)) for name, value in (("a", 1.0), ("b", 2.0))]
    >>> rows, numbers = evenly_spaced_rows(recordings, at_most=3)
    >>> rows[:, 0].tolist(), numbers.tolist()
    ([1.0, 1.0, 2.0], [0, 2, 4])
    """
    rows = np.concatenate([recording.values for recording in recordings])
    count = min(len(rows), at_most)
    numbers = np.arange(count, dtype=np.int64) * len(rows) // count
    return rows[numbers], numbers


def trailing_median(values: FloatArray, rows: int) -> FloatArray:
    """Return the median of each value and the ``rows - 1`` before it, or fewer at the start.

    Examples
    --------
    >>> trailing_median(np.array([1.0, 2.0, 9.0, 3.0, 4.0]), 3)
    array([1. , 1.5, 2. , 3. , 4. ])
    """
    if rows == 1:
        return values
    return pd.Series(values).rolling(rows, min_periods=1).median().to_numpy(np.float64)
