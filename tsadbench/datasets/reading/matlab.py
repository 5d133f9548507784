"""MATLAB's files up to version 7, by scipy."""

from __future__ import annotations

import io
import struct
import warnings
import zlib
from collections import Counter
from functools import partial
from math import prod

from tsadbench.datasets.reading.array_table import (
    COPY_AGAIN,
    MOST_BYTES,
    TOO_LARGE,
    Arrays,
    ArrayTable,
    reason,
    table_of,
)
from tsadbench.datasets.reading.text import MalformedError

_NUMBERS = frozenset(
    ("double", "single", "logical", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)))
)
# The format: "MAT-File Level 5 File Format", MathWorks. The header is a text of 116 bytes, an offset, and two bytes
# each for the version and the byte order. Elements have a type and a size; small ones, both in four bytes.
_HEADER, _ORDER = 128, 126
_ORDERS = {b"IM": "<", b"MI": ">"}
_MATRIX, _COMPRESSED = 14, 15
_FLAGS, _DIMENSIONS, _NAME = 6, 5, 1
# Classes of arrays of numbers; bytes of a number, by the type of an element.
_CLASSES = range(6, 16)
_SIZES = {1: 1, 2: 1, 3: 2, 4: 2, 5: 4, 6: 4, 7: 4, 9: 8, 12: 8, 13: 8}
_COMPLEX = 0x800
# What comes before the numbers of an array is shorter.
_HEAD = 4096
_BYTES_AT_ONCE = 2**20
_VERSION_7_3 = "it is a MATLAB file of version 7.3, or HDF5; save it with  save(file, '-v7')"


def read_matlab(content: bytes, prefix: str = "") -> Arrays:  # noqa: ARG001 - its arrays' columns have no names
    """Return the arrays of a MATLAB file; of cells, structs, texts and sparse matrices, each says so when asked for.

    A MalformedError if it is no MATLAB file, a damaged one, one of version 7.3, or one whose arrays are too large.
    """
    if content[:8] == b"\x89HDF\r\n\x1a\n" or content[:10] == b"MATLAB 7.3":
        raise MalformedError(_VERSION_7_3)
    try:
        faults = _faults(content)
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)  # "returned data may be corrupt"
            import scipy.io

            found = scipy.io.whosmat(io.BytesIO(content))  # type: ignore[arg-type]  # the stubs know paths alone
    except NotImplementedError as error:
        raise MalformedError(_VERSION_7_3) from error
    except MalformedError:
        raise
    except Exception as error:  # a damaged file ends in nearly every exception that there is
        raise MalformedError(f"not a MATLAB file, or a damaged one ({reason(error)}); {COPY_AGAIN}") from error
    twice = [name for name, count in Counter(name for name, _, _ in found).items() if count > 1]
    if twice:
        raise MalformedError(f"the array {twice[0]!r} is in it twice; save it again")
    if not found:
        raise MalformedError(f"it holds no array; {COPY_AGAIN}")
    if content[_ORDER:_HEADER] not in _ORDERS:  # of version 4, which scipy reads in Python
        faults = [""] * len(found)
    if len(faults) != len(found):
        raise MalformedError(f"a damaged MATLAB file, {len(found)} of its {len(faults)} parts are arrays; {COPY_AGAIN}")
    readers = {}
    for (name, shape, kind), fault in zip(found, faults, strict=True):
        readers[name] = partial(_array, content, name, shape, kind, fault)
    return Arrays(readers)


def _array(content: bytes, name: str, shape: tuple[int, ...], kind: str, fault: str) -> ArrayTable:
    if kind not in _NUMBERS:
        raise MalformedError(f"array {name!r}: expected a matrix of numbers, found {kind}; save it as numbers")
    if prod(shape) > MOST_BYTES // 8:
        raise MalformedError(f"array {name!r}, {list(shape)}: {TOO_LARGE}")
    if fault:
        raise MalformedError(f"array {name!r}: {fault}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            import scipy.io

            file = io.BytesIO(content)
            array = scipy.io.loadmat(file, variable_names=[name])[name]  # type: ignore[arg-type]  # as above
    except Exception as error:  # as above
        raise MalformedError(f"array {name!r}: damaged ({reason(error)}); {COPY_AGAIN}") from error
    return table_of(array, name)


def _faults(content: bytes) -> list[str]:
    """Return what is wrong with each array of a file of version 5, empty for those that scipy may read.

    Scipy trusts sizes and types, and ends the process over wrong ones. A MalformedError if the file is cut off, or its
    arrays are too large once they are decompressed.
    """
    order = _ORDERS.get(content[_ORDER:_HEADER], "")
    if not order and 0 not in content[:4]:
        raise MalformedError(f"not a MATLAB file, or a damaged one; {COPY_AGAIN}")
    place, left, faults = _HEADER, MOST_BYTES, list[str]()
    while order and place + 8 <= len(content):
        kind, size = struct.unpack_from(f"{order}II", content, place)
        if place + 8 + size > len(content):
            found = len(content) - place - 8
            raise MalformedError(f"it is cut off: {size} bytes should follow, {found} do; {COPY_AGAIN}")
        element = content[place : place + 8 + size]
        head = element[:_HEAD]
        if kind == _COMPRESSED:
            stream, rest, head = zlib.decompressobj(), element[8:], b""
            while rest and not stream.eof and left >= 0:
                part = stream.decompress(rest, _BYTES_AT_ONCE)
                head += part[: _HEAD - len(head)]
                left -= len(part)
                rest = stream.unconsumed_tail
            if left < 0:
                raise MalformedError(TOO_LARGE)
        try:
            faults.append(_fault(head, order))
        except (struct.error, IndexError):
            faults.append(f"its head is damaged; {COPY_AGAIN}")
        place += 8 + size
    return faults


def _fault(head: bytes, order: str) -> str:
    """Return what is wrong with the beginning of an array: its class, dimensions, name, and the size of its numbers."""
    if struct.unpack_from(f"{order}I", head)[0] != _MATRIX:
        return f"it is no matrix; {COPY_AGAIN}"
    place, kinds, starts, sizes = 8, list[int](), list[int](), list[int]()
    while len(kinds) < 4:  # flags, dimensions, name, numbers
        word, size = struct.unpack_from(f"{order}II", head, place)
        small = word >> 16
        kinds.append(word & 0xFFFF if small else word)
        starts.append(place + 4 if small else place + 8)
        sizes.append(small or size)
        place += 8 if small else 8 + -(-size // 8) * 8
        if len(kinds) == 1 and struct.unpack_from(f"{order}I", head, starts[0])[0] & 0xFF not in _CLASSES:
            return ""  # a cell, a struct or a text, which is not read
    flags = struct.unpack_from(f"{order}I", head, starts[0])[0]
    shape = struct.unpack_from(f"{order}{sizes[1] // 4}i", head, starts[1])
    whole = kinds[:3] == [_FLAGS, _DIMENSIONS, _NAME] and sizes[0] == 8 and min(shape, default=-1) >= 0
    if not whole or kinds[3] not in _SIZES or sizes[3] != prod(shape) * _SIZES[kinds[3]]:
        return f"its size is not that of its numbers; {COPY_AGAIN}"
    return "expected real numbers, found complex ones; save it as numbers" if flags & _COMPLEX else ""
