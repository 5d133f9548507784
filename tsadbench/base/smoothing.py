"""A causal mean of scores: for detectors that average their statistic, and for tables that average all rows alike."""

from __future__ import annotations

import numpy as np

from tsadbench.utils.arrays import FloatArray


def trailing_mean(values: FloatArray, rows: int) -> FloatArray:
    """Return the mean of each value and the ``rows - 1`` before it; at the start, of those that exist.

    Parameters
    ----------
    values
        [n_rows, ...], of one recording; NaN counts as not existing, and stays.
    rows
        How many values a mean is taken over, at least 1.

    Returns
    -------
    ndarray
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
