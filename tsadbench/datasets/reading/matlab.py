"""MATLAB's files up to version 7, by scipy."""

from __future__ import annotations

import io
import struct
import warnings
import zlib
from collections import Counter
from functools import partial
from math import prod

import scipy.io

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
# A file of version 5 begins with a text of 116 bytes, an offset, and two bytes for its version and byte order.
_HEADER, _ORDER = 128, 126
_COMPRESSED = 15
_BYTES_AT_ONCE = 2**20
_VERSION_7_3 = "it is a MATLAB file of version 7.3, or HDF5; save it with  save(file, '-v7')"


def read_matlab(content: bytes, prefix: str = "") -> Arrays:  # noqa: ARG001 - its arrays' columns have no names
    """Return the arrays of a MATLAB file; of cells, structs, texts and sparse matrices, each says so when asked for.

    Parameters
    ----------
    content
        The file's bytes.
    prefix
        Of no use: columns have no names here.

    Raises
    ------
    MalformedError
        If it is no MATLAB file, a damaged one, one of version 7.3, or one whose arrays are too large.
    """
    if content[:8] == b"\x89HDF\r\n\x1a\n" or content[:10] == b"MATLAB 7.3":
        raise MalformedError(_VERSION_7_3)
    try:
        _check_inflated(content)
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
    return Arrays({name: partial(_array, content, name, shape, kind) for name, shape, kind in found})


def _array(content: bytes, name: str, shape: tuple[int, ...], kind: str) -> ArrayTable:
    if kind not in _NUMBERS:
        raise MalformedError(f"array {name!r}: expected a matrix of numbers, found {kind}; save it as numbers")
    if prod(shape) > MOST_BYTES // 8:
        raise MalformedError(f"array {name!r}, {list(shape)}: {TOO_LARGE}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            file = io.BytesIO(content)
            array = scipy.io.loadmat(file, variable_names=[name])[name]  # type: ignore[arg-type]  # as above
    except Exception as error:  # as above
        raise MalformedError(f"array {name!r}: damaged ({reason(error)}); {COPY_AGAIN}") from error
    return table_of(array, name)


def _check_inflated(content: bytes) -> None:
    """Raise a MalformedError if the compressed arrays of a file of version 5 are too large, or one is cut off."""
    order = {b"IM": "<", b"MI": ">"}.get(content[_ORDER:_HEADER], "")
    place, left = _HEADER, MOST_BYTES
    while order and place + 8 <= len(content):
        kind, size = struct.unpack_from(f"{order}II", content, place)
        place += 8
        if place + size > len(content):
            raise MalformedError(f"it is cut off: {size} bytes should follow, {len(content) - place} do; {COPY_AGAIN}")
        if kind == _COMPRESSED:
            stream, rest = zlib.decompressobj(), content[place : place + size]
            while rest and not stream.eof and left >= 0:
                left -= len(stream.decompress(rest, _BYTES_AT_ONCE))
                rest = stream.unconsumed_tail
            if left < 0:
                raise MalformedError(TOO_LARGE)
        place += size
