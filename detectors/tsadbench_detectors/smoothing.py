"""Trailing median and mean: they smooth a row's statistic without looking ahead."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tsadbench.base import FloatArray


def trailing_median(values: FloatArray, rows: int) -> FloatArray:
    """Return the median of each value and the ``rows - 1`` before it; at the start, of those that exist.

    Parameters
    ----------
    values
        [n_rows], of one recording.
    rows
        How many values a median is taken over, at least 1.

    Returns
    -------
    FloatArray
        [n_rows]

    Examples
    --------
    >>> trailing_median(np.array([1.0, 2.0, 9.0, 3.0, 4.0]), 3)
    array([1. , 1.5, 2. , 3. , 4. ])
    """
    if rows == 1:
        return values
    return pd.Series(values).rolling(rows, min_periods=1).median().to_numpy(np.float64)


def trailing_mean(values: FloatArray, rows: int) -> FloatArray:
    """Return the mean of each value and the ``rows - 1`` before it; at the start, of those that exist.

    Parameters
    ----------
    values
        [n_rows, ...], of one recording; NaN in its first rows counts as not existing, and stays.
    rows
        How many values a mean is taken over, at least 1.

    Returns
    -------
    FloatArray
        Of the same shape.

    Examples
    --------
    >>> trailing_mean(np.array([np.nan, 2.0, 4.0, 9.0]), 2)
    array([nan, 2. , 3. , 6.5])
    """
    # Summed anew for every row: a running sum never forgets what an extreme value has cost it in digits.
    present = ~np.isnan(values)
    total, count = np.zeros_like(values), np.zeros(values.shape)
    for shift in range(min(rows, len(values))):
        earlier = slice(0, len(values) - shift)
        total[shift:] += np.where(present[earlier], values[earlier], 0.0)
        count[shift:] += present[earlier]
    return np.where(present, total / np.maximum(count, 1.0), np.nan)
