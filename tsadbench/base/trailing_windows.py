"""A window for every row, also for a recording's first ones."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from tsadbench.errors import UsageError
from tsadbench.utils.arrays import FloatArray


def trailing_windows(rows: FloatArray, length: int) -> FloatArray:
    """Return for each row the window that ends with it, filled up with copies of the first row where rows are missing.

    With it, a detector with windows scores every row. The padding is for scoring only: while it learns, a detector
    leaves out the first ``length - 1`` windows, those that are filled up.

    Parameters
    ----------
    rows
        [n_rows, n_sensors], of one recording.
    length
        Rows of a window, at least 1.

    Returns
    -------
    ndarray
        [n_rows, length, n_sensors], oldest row first; a read-only view of rows that are kept once.

    Raises
    ------
    UsageError
        If ``length`` is below 1.

    Examples
    --------
    >>> rows = np.array([[1.0], [2.0], [3.0]])
    >>> trailing_windows(rows, 2)[:, :, 0]
    array([[1., 1.],
           [1., 2.],
           [2., 3.]])
    >>> trailing_windows(rows, 2)[1:, :, 0]  # to learn from
    array([[1., 2.],
           [2., 3.]])
    """
    if length < 1:
        raise UsageError(f"trailing_windows: expected windows of at least 1 row, found {length}")
    padded = np.concatenate([np.repeat(rows[:1], length - 1, axis=0), rows])
    return np.moveaxis(sliding_window_view(padded, length, axis=0), -1, 1)
