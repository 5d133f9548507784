"""R's files, as ``save`` writes them, by the package rdata, which knows the format; tables are made here."""

from __future__ import annotations

import bz2
import lzma
import warnings
import zlib
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
import pandas as pd
from packaging.version import Version

from tsadbench.datasets.reading.array_table import (
    COPY_AGAIN,
    MOST_BYTES,
    TOO_LARGE,
    Arrays,
    ArrayTable,
    Column,
    as_column,
    reason,
    table_of,
)
from tsadbench.datasets.reading.text import MalformedError, cleaned
from tsadbench.utils.extras import extra

if TYPE_CHECKING:
    from rdata.parser import RObject, RObjectInfo

# Texts among which some may be missing; before pandas 3, "str" makes texts of these too.
_TEXT: Literal["str", "string"] = "str" if Version(pd.__version__) >= Version("3") else "string"
_SAVED = (b"RDX2\n", b"RDX3\n")
_MOST_COLUMNS = 1_000_000
_LZMA_MEMORY = 2**30


class _Stream(Protocol):
    """What the decompressors have in common."""

    @property
    def eof(self) -> bool:
        """Whether the stream has ended."""

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        """Return at most so many bytes."""


def read_r(content: bytes, prefix: str = "") -> Arrays:
    """Return the data frames and matrices of a file that R's ``save`` has written, by their names.

    Dates and times are seconds since 1970 or days, as R keeps them; factors are their texts. A MissingExtraError if
    rdata is not installed. A MalformedError if it is no such file, or a damaged one, or too large.
    """
    with extra("reading files of R", "r"):
        from rdata.parser import DEFAULT_ALTREP_MAP, parse_data
    whole = _inflated(content)
    if not whole.startswith(_SAVED):
        raise MalformedError('not a file of R\'s save(), or saved as text; write it with  save(x, file = "x.rda")')
    left = [MOST_BYTES]

    def bounded(kind: bytes, state: RObject) -> tuple[RObjectInfo, object]:
        """Expand a sequence that R keeps as its first value, step and length."""
        left[0] -= 8 * int(state.value[0])
        if left[0] < 0:
            raise MalformedError(TOO_LARGE)
        return DEFAULT_ALTREP_MAP[kind](state)

    sequences = {kind: partial(bounded, kind) for kind in (b"compact_intseq", b"compact_realseq")}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parsed = parse_data(whole, altrep_constructor_dict={**DEFAULT_ALTREP_MAP, **sequences})
        objects = _pairs(parsed.object)
    except MalformedError:
        raise
    except Exception as error:  # a damaged file ends in nearly every exception that there is
        raise MalformedError(f"not a file of R, or a damaged one ({reason(error)}); {COPY_AGAIN}") from error
    if not objects:
        raise MalformedError(f"it holds no object; {COPY_AGAIN}")
    return Arrays({name: partial(_table, name, found, prefix) for name, found in objects.items()})


def _inflated(content: bytes) -> bytes:
    """Return what a compressed file holds."""
    stream: _Stream
    if content.startswith(b"\x1f\x8b"):
        stream = zlib.decompressobj(wbits=31)
    elif content.startswith(b"BZh"):
        stream = bz2.BZ2Decompressor()
    elif content.startswith(b"\xfd7zXZ"):
        stream = lzma.LZMADecompressor(memlimit=_LZMA_MEMORY)
    else:
        return content
    try:
        whole = stream.decompress(content, MOST_BYTES + 1)
    except (zlib.error, lzma.LZMAError, OSError, ValueError, MemoryError) as error:
        raise MalformedError(f"it is damaged ({reason(error)}); {COPY_AGAIN}") from error
    if len(whole) > MOST_BYTES:
        raise MalformedError(TOO_LARGE)
    if not stream.eof:
        raise MalformedError(f"it is cut off; {COPY_AGAIN}")
    return whole


def _table(name: str, found: RObject, prefix: str) -> ArrayTable:
    """Return the table of a data frame, a matrix or a vector."""
    try:
        attributes = {} if found.attributes is None else _pairs(found.attributes)
        if found.info.type.name == "VEC":
            names, columns = _texts(attributes.get("names")), [_column(column) for column in found.value]
        else:
            columns, names = _matrix(name, found, attributes)
    except MalformedError:
        raise
    except Exception as error:  # as above
        raise MalformedError(f"object {name!r}: expected a data frame or a matrix ({reason(error)})") from error
    header = cleaned((text or "" for text in names), prefix) or [""] * len(columns)
    lengths = {len(column) for column in columns}
    if not columns or len(lengths) != 1 or len(header) != len(columns):
        raise MalformedError(f"object {name!r}: expected a data frame or a matrix, found a list of other things")
    return ArrayTable(tuple(header), columns)


def _matrix(name: str, found: RObject, attributes: Mapping[str, RObject]) -> tuple[list[Column], list[str | None]]:
    """Return the columns of a matrix, and their names if it has any."""
    values = _column(found)
    if not isinstance(values, np.ndarray):
        return [values], []
    shape = attributes["dim"].value.tolist() if "dim" in attributes else [len(values)]
    table = table_of(values.reshape(shape, order="F"), name)
    sides = attributes["dimnames"].value if "dimnames" in attributes else ()
    return list(table.columns), [name for side in sides[1:2] for name in _texts(side)]


def _column(found: RObject) -> Column:
    """Return a vector of numbers or texts; a factor as its texts."""
    kind, values = found.info.type.name, found.value
    attributes = {} if found.attributes is None else _pairs(found.attributes)
    if kind == "STR":
        return pd.array(_texts(found), dtype=_TEXT)
    if kind not in ("LGL", "INT", "REAL"):
        raise MalformedError(f"expected columns of numbers or texts, found one of R's type {kind}; save numbers")
    missing = np.ma.getmaskarray(values)
    if "levels" in attributes:
        levels = _texts(attributes["levels"])
        codes = zip(np.ma.getdata(values).tolist(), missing.tolist(), strict=True)
        return pd.array([None if gone else levels[code - 1] for code, gone in codes], dtype=_TEXT)
    numbers = as_column(np.ma.getdata(values))
    if missing.any():  # NA of whole numbers and of logical values
        return np.where(missing, np.nan, numbers)
    return numbers


def _pairs(node: RObject) -> dict[str, RObject]:
    """Return a pairlist's values by their tags, in order."""
    found: dict[str, RObject] = {}
    while node.info.type.name == "LIST" and len(found) <= _MOST_COLUMNS:
        symbol = node.tag
        while symbol is not None and symbol.info.type.name == "REF":
            symbol = symbol.referenced_object
        if symbol is not None:
            found[_text(symbol.value) or ""] = node.value[0]
        node = node.value[1]
    return found


def _texts(found: RObject | None) -> list[str | None]:
    """Return a character vector's texts, None for NA."""
    return [_text(cell) for cell in found.value] if found is not None and found.info.type.name == "STR" else []


def _text(cell: RObject) -> str | None:
    return None if cell.value is None else bytes(cell.value).decode("utf-8", errors="replace")
