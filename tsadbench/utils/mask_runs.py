"""Runs of rows in which a mask is True."""

from __future__ import annotations

import numpy as np

from tsadbench.utils.arrays import BoolArray


def mask_runs(mask: BoolArray) -> list[tuple[int, int]]:
    """Return the first row of each run of True and the row after its last, in order.

    >>> mask_runs(np.array([True, False, True, True]))
    [(0, 1), (2, 4)]
    """
    edges = np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8))
    return list(zip(np.flatnonzero(edges == 1).tolist(), np.flatnonzero(edges == -1).tolist(), strict=True))
