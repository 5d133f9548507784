"""Pickled numpy arrays, read without numpy: a pickle says which functions are called on what, and is never trusted.

Whatever a pickle asks for by name, it gets a stand-in that only notes what it was called with; the array is made from
these notes once they are checked. Format: PEP 307, PEP 3154, PEP 574 and numpy's ``__reduce__``.
"""

from __future__ import annotations

import io
import pickle
import pickletools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from math import prod

import numpy as np

from tsadbench.datasets.reading.array_table import COPY_AGAIN, Arrays, ArrayTable, reason, table_of
from tsadbench.datasets.reading.text import MalformedError
from tsadbench.utils.text import printable

# What a pickled array is made of. Without dictionaries: a small pickle can hold keys that take forever to hash.
_OPCODES = frozenset(
    (
        *("PROTO", "FRAME", "STOP", "MARK", "POP", "NONE", "NEWTRUE", "NEWFALSE", "GLOBAL", "STACK_GLOBAL"),
        *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "BINSTRING", "SHORT_BINSTRING"),
        *("BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE"),
        *("TUPLE", "EMPTY_TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "LIST", "EMPTY_LIST", "APPEND", "APPENDS"),
        *("GET", "BINGET", "LONG_BINGET", "PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE", "REDUCE", "BUILD"),
    )
)
_PUTS = frozenset(("PUT", "BINPUT", "LONG_BINPUT"))
# The memory of an unpickler grows with the largest number under which it is told to keep something.
_MOST_OPCODES = 10_000
_DTYPE = re.compile(r"([<>|=]?)([biufc])(\d{1,2})")
_MOST_DIMENSIONS = 32
_ADVICE = "get the file from its source again"
_UNKNOWN = f"the pickle describes its array in an unknown way; {COPY_AGAIN}"
_FOREIGN = "expected an array of numbers alone"


def read_pickle(content: bytes, prefix: str = "") -> Arrays:  # noqa: ARG001 - an array's columns have no names
    """Return the array of a pickle, called ""; nothing that the pickle asks for is ever run.

    A MalformedError if it asks for anything but numpy's arrays, or is damaged.
    """
    try:
        _check_opcodes(content)
        found = _Unpickler(io.BytesIO(content), encoding="latin1").load()
    except MalformedError:
        raise
    except Exception as error:  # a damaged pickle ends in nearly every exception that there is
        raise MalformedError(f"not a pickle, or a damaged one ({reason(error)}); {COPY_AGAIN}") from error
    return Arrays({"": partial(_table, found)})


class _Unpickler(pickle.Unpickler):
    """Hands out stand-ins for the globals that arrays need, and refuses every other one."""

    def find_class(self, module: str, name: str, /) -> object:
        """Return the stand-in for a global."""
        make = _GLOBALS.get((module, name))
        if make is None:
            asked = printable(f"{module}.{name}")[:80]
            text = f"the pickle asks for {asked!r}, and could run programs by it: {_FOREIGN}; {_ADVICE}"
            raise MalformedError(text)
        return _StandIn(make)


def _check_opcodes(content: bytes) -> None:
    """Raise a MalformedError if a pickle holds what no array needs; nothing is run."""
    for count, (opcode, argument, _) in enumerate(pickletools.genops(io.BytesIO(content))):
        many = count > _MOST_OPCODES or (opcode.name in _PUTS and int(argument or 0) > _MOST_OPCODES)
        if opcode.name not in _OPCODES or many:
            what = "a very long list of instructions" if many else f"the instruction {opcode.name}"
            raise MalformedError(f"the pickle has {what}: {_FOREIGN}; {_ADVICE}")


class _StandIn:
    """What a pickle gets for a global: it can be called, and keeps nothing that a pickle tells it to keep."""

    __slots__ = ("_make",)

    def __init__(self, make: Callable[..., object]) -> None:
        self._make = make

    def __call__(self, *arguments: object) -> object:
        return self._make(*arguments)

    def __setstate__(self, state: object) -> None:
        raise MalformedError(f"the pickle changes a function: {_FOREIGN}; {_ADVICE}")


@dataclass(slots=True)
class _Dtype:
    """A kind of numbers, as a pickle describes it."""

    kind: str
    size: int
    order: str

    def __setstate__(self, state: object) -> None:
        """Take the byte order; a kind with fields, or of a length of its own, is none of numbers."""
        match state:
            case (int(), "<" | ">" | "=" | "|" as order, None, None, None, *_):
                self.order = str(order)
            case _:
                raise MalformedError(_other_dtype("a structured array"))


@dataclass(slots=True)
class _Array:
    """An array, as a pickle describes it."""

    shape: object = None
    dtype: object = None
    data: object = None
    fortran: bool = False

    def __setstate__(self, state: object) -> None:
        """Take what the array holds."""
        match state:
            case (int(), shape, dtype, bool() | int() as fortran, data):
                self.shape, self.dtype, self.data, self.fortran = shape, dtype, data, bool(fortran)
            case _:
                raise MalformedError(_UNKNOWN)


def _dtype(text: object = "", *_: object) -> _Dtype:
    """Stand in for ``numpy.dtype("f8", align, copy)``."""
    name = text if isinstance(text, str) else ""
    found = _DTYPE.fullmatch(name)
    if found is None:
        raise MalformedError(_other_dtype(printable(name)[:40] or "another kind"))
    return _Dtype(found[2], int(found[3]), found[1] or "=")


def _other_dtype(found: str) -> str:
    shown = "Python objects" if found.startswith("O") else found
    return f"expected an array of numbers, found {shown}; save it as numbers"


def _from_buffer(data: object = None, dtype: object = None, shape: object = None, order: object = "C") -> _Array:
    """Stand in for ``numpy._core.numeric._frombuffer``, of pickles of protocol 5."""
    return _Array(shape, dtype, data, order == "F")


def _encoded(text: object = "", encoding: object = "latin1") -> bytes:
    """Stand in for ``_codecs.encode``, with which protocols 0 to 2 write bytes."""
    if not isinstance(text, str) or encoding != "latin1":
        raise MalformedError(f"the pickle encodes a text: {_FOREIGN}; {_ADVICE}")
    return text.encode("latin1")


def _not_called(*_: object) -> object:
    raise MalformedError(f"the pickle calls what arrays never call: {_FOREIGN}; {_ADVICE}")


_GLOBALS: Mapping[tuple[str, str], Callable[..., object]] = {
    ("numpy", "dtype"): _dtype,
    ("numpy", "ndarray"): _not_called,
    ("_codecs", "encode"): _encoded,
    **{(f"numpy.{core}.multiarray", "_reconstruct"): lambda *_: _Array() for core in ("core", "_core")},
    **{(f"numpy.{core}.numeric", "_frombuffer"): _from_buffer for core in ("core", "_core")},
}


def _table(array: object) -> ArrayTable:
    """Return the table of an array that a pickle describes."""
    if not isinstance(array, _Array):
        raise MalformedError("expected a pickled array of numpy, found something else; save an array")
    data, shape, dtype = array.data, array.shape, array.dtype
    if isinstance(data, str):  # of Python 2
        data = data.encode("latin1")
    if isinstance(data, list):
        raise MalformedError(_other_dtype("Python objects"))
    sizes = shape if isinstance(shape, tuple) and len(shape) <= _MOST_DIMENSIONS else (None,)
    whole = all(isinstance(size, int) and size >= 0 for size in sizes)
    if not (whole and isinstance(dtype, _Dtype) and isinstance(data, (bytes, bytearray))):
        raise MalformedError(_UNKNOWN)
    expected = prod(sizes) * dtype.size
    if len(data) != expected:
        raise MalformedError(f"an array {list(sizes)} should have {expected} bytes, it has {len(data)}; {COPY_AGAIN}")
    try:
        kind = np.dtype(f"{dtype.order}{dtype.kind}{dtype.size}")
    except TypeError as error:
        raise MalformedError(_other_dtype(f"{dtype.kind}{dtype.size}")) from error
    values = np.frombuffer(data, kind).reshape(sizes, order="F" if array.fortran else "C")
    return table_of(values, "")
