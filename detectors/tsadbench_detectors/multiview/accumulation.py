"""Causal means over a power of two of rows, without a running sum."""

from __future__ import annotations

import numpy as np

from tsadbench.base import FloatArray


def mean_of_last(values: FloatArray, rows: int) -> FloatArray:
    """Return the mean of each value and the ``rows - 1`` before it; at the start, of those that exist.

    Sums of 2, 4, 8, ... values are added in pairs. That takes log2(rows) additions a value, and the last bits of a mean
    depend on its own values alone, unlike those of a running sum.

    Parameters
    ----------
    values
        [n_rows, ...], of one recording.
    rows
        How many values a mean is taken over: a power of two.

    Examples
    --------
    >>> mean_of_last(np.array([4.0, 2.0, 6.0, 8.0, 2.0]), 4)
    array([4. , 3. , 4. , 5. , 4.5])
    """
    sums = values
    length = 1
    while length < rows:
        longer = sums.copy()
        longer[length:] += sums[:-length]
        sums, length = longer, 2 * length
    counts = np.minimum(np.arange(1, len(values) + 1), rows)
    return sums / counts.reshape(-1, *(1,) * (values.ndim - 1))
