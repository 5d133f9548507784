"""The trailing median: it smooths a row's statistic without looking ahead."""

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
