"""Pickled numpy arrays: a pickle that asks for anything else is refused before it is run."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import BinaryIO

import numpy as np


def read_pickle(file: BinaryIO) -> object:
    """Return the array of a pickle; a ValueError or a `pickle.UnpicklingError` if it is anything else."""
    return _Unpickler(file, encoding="latin1").load()


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str, /) -> object:
        """Return the stand-in for a global that arrays need."""
        if (module, name) not in _GLOBALS:
            raise ValueError(f"the pickle asks for {f'{module}.{name}'[:80]!a}; expected an array of numbers alone")
        return _GLOBALS[module, name]


class _NdArray:
    """What a pickle gets for `numpy.ndarray`, which reads any memory if it is called."""

    def __init__(self) -> None:
        raise ValueError("the pickle calls what arrays never call")


def _reconstruct(*_: object) -> object:
    """Stand in for numpy's function: the array gets its shape, type and bytes later, and checks that they agree."""
    return np.empty(0)


def _dtype(text: object, *_: object) -> np.dtype[np.generic]:
    """Stand in for `numpy.dtype`: types of numbers only."""
    if not isinstance(text, str):  # to print it may take forever
        raise ValueError("expected an array of numbers, found another kind")
    found = np.dtype(text, False, True)  # a copy: the pickle sets its byte order
    if found.kind not in "biuf":
        raise ValueError(f"expected an array of numbers, found {found.name}")
    return found


def _from_buffer(data: bytes, dtype: np.dtype[np.generic], shape: tuple[int, ...], order: str) -> object:
    """Stand in for numpy's function, of pickles of protocol 5."""
    return np.frombuffer(data, dtype).reshape(shape, order="F" if order == "F" else "C")


def _encode(text: str, *_: object) -> bytes:
    """Stand in for `codecs.encode`, with which old protocols write bytes."""
    return text.encode("latin1")


_GLOBALS: dict[tuple[str, str], Callable[..., object]] = {
    ("numpy", "dtype"): _dtype,
    ("numpy", "ndarray"): _NdArray,
    ("_codecs", "encode"): _encode,
    **{(f"numpy.{core}.multiarray", "_reconstruct"): _reconstruct for core in ("core", "_core")},
    **{(f"numpy.{core}.numeric", "_frombuffer"): _from_buffer for core in ("core", "_core")},
}
