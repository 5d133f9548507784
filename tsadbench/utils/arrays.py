"""Array types for the interfaces between modules, runs of a mask, means of defined values."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
Float32Array: TypeAlias = NDArray[np.float32]
BoolArray: TypeAlias = NDArray[np.bool_]
IntArray: TypeAlias = NDArray[np.int64]

_Scalar = TypeVar("_Scalar", bound=np.generic)


def read_only(array: NDArray[_Scalar]) -> NDArray[_Scalar]:
    """Return the array if it is read-only and C-contiguous, or else a read-only copy."""
    if array.flags.writeable or not array.flags.c_contiguous:
        array = np.array(array, order="C", copy=True)
        array.flags.writeable = False
    return array


def mask_runs(mask: BoolArray) -> list[tuple[int, int]]:
    """Return the first row of each run of True and the row after its last, in order.

    >>> mask_runs(np.array([True, False, True, True]))
    [(0, 1), (2, 4)]
    """
    edges = np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8))
    return list(zip(np.flatnonzero(edges == 1).tolist(), np.flatnonzero(edges == -1).tolist(), strict=True))


def mean_defined(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values that are not None; None if all are."""
    defined = [value for value in values if value is not None]
    return fmean(defined) if defined else None
