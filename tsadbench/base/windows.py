"""Windows of rows for detectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import DTypeLike

from tsadbench.errors import UsageError
from tsadbench.utils.arrays import FloatArray, IntArray


def trailing_windows(rows: FloatArray, length: int) -> FloatArray:
    """Return the window that ends at each row; copies of the first row pad the first windows.

    With these windows a detector scores every row; the first ``length - 1`` are not for training. The result
    [n_rows, length, n_sensors], oldest row first, is a read-only view of one recording's rows [n_rows, n_sensors].

    Examples
    --------
    >>> rows = np.array([[1.0], [2.0], [3.0]])
    >>> trailing_windows(rows, 2)[:, :, 0]
    array([[1., 1.],
           [1., 2.],
           [2., 3.]])
    >>> trailing_windows(rows, 2)[1:, :, 0]  # for training
    array([[1., 2.],
           [2., 3.]])
    """
    if length < 1:
        raise UsageError(f"trailing_windows: expected windows of at least 1 row, found {length}")
    padded = np.concatenate([np.repeat(rows[:1], length - 1, axis=0), rows])
    return np.moveaxis(sliding_window_view(padded, length, axis=0), -1, 1)


class Windows:
    """All windows of ``length`` consecutive rows within one series, in order.

    Windows are cut on demand, so memory grows with the batch, not with the series. It is a map-style data set for
    PyTorch's `DataLoader`; ``numpy.asarray`` returns all windows at once. Series [n_rows, n_sensors] shorter than a
    window have none.

    Examples
    --------
    >>> windows = Windows([np.arange(4.0).reshape(4, 1), np.arange(10.0, 13.0).reshape(3, 1)], 3)
    >>> len(windows)
    3
    >>> windows[[0, 2]][:, :, 0]
    array([[ 0.,  1.,  2.],
           [10., 11., 12.]])
    """

    def __init__(self, series: Sequence[FloatArray], length: int) -> None:
        counts = np.array([max(0, len(rows) - length + 1) for rows in series])
        first = np.cumsum([0, *map(len, series)])[:-1]
        self._starts: IntArray = np.concatenate([np.arange(n) + at for n, at in zip(counts, first, strict=True)])
        rows = np.concatenate(series)
        if len(rows) < length:
            rows = np.zeros((length, rows.shape[1]))  # no window starts there
        self._all = np.moveaxis(sliding_window_view(rows, length, axis=0), -1, 1)

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, index: int | slice | Sequence[int] | IntArray) -> FloatArray:
        """Return the window at an index, [length, n_sensors], or at several, [n_windows, length, n_sensors]."""
        chosen: FloatArray = self._all[self._starts[index]]
        return chosen if chosen.flags.writeable else chosen.copy()

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> FloatArray:
        return np.asarray(self[:], dtype=dtype)
