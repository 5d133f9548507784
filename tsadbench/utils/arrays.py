"""Array types for the interfaces between modules."""

from __future__ import annotations

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
