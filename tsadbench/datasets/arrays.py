"""Reads Parquet and files of arrays (MATLAB, R, NumPy) in a box, so that a forged file can do no harm."""

from __future__ import annotations

import codecs
import io
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import pandas as pd

from tsadbench.registry import Source
from tsadbench.sandbox.box import Box
from tsadbench.sandbox.construction import Construction
from tsadbench.sandbox.limits import BoxFailure, Limits
from tsadbench.utils.extras import extra

PARQUET, R = (".parquet", ".pq"), (".rda", ".rdata")
ARRAYS = (".mat", ".pkl", ".pickle", ".npy", ".dat", *PARQUET, *R)
_MOST_BYTES = 2**31
# Limits per file, and per MiB on disk: the sizes that a file claims for its arrays are not trusted.
_SECONDS, _MEMORY_MIB = (30, 0.5), (1024.0, 64.0)
# Separates the names of an array and its column.
_OF = "\n"


def read_arrays(path: Path) -> dict[str, pd.DataFrame]:
    """Return the arrays of a file as tables by the arrays' names; an OSError or a ValueError if it cannot be read.

    Columns of arrays have no names (`RangeIndex`); columns of Parquet files and R data frames have names.
    """
    if (size := path.stat().st_size) > _MOST_BYTES:
        raise ValueError(f"it has {size / 2**30:.0f} GiB; split it into several files")
    tables: dict[str, dict[str, npt.NDArray[np.generic]]] = {}
    for name, content in in_box(arrays_of, np.fromfile(path, np.uint8), path.suffix.lower()).items():  # no pickles
        array, _, column = name.partition(_OF)
        tables.setdefault(array, {})[column] = np.load(io.BytesIO(content), allow_pickle=False)
    return {name: pd.DataFrame(of[""] if [*of] == [""] else of, copy=False) for name, of in tables.items()}


def in_box(
    question: Callable[..., dict[str, bytes]], content: npt.NDArray[np.uint8], *arguments: object
) -> dict[str, bytes]:
    """Call a function of tsadbench with a file's content in a box with limits; a ValueError if that fails."""
    per_mib = content.size / 2**20
    limits = Limits(_SECONDS[0] + per_mib * _SECONDS[1], _MEMORY_MIB[0] + per_mib * _MEMORY_MIB[1])
    source = Source("a stranger's file", f"{question.__module__}:{question.__name__}", "tsadbench")
    try:
        with Box(Construction(source), limits=limits, construct=False) as box:
            return box.parts(question, content, *arguments)
    except BoxFailure as failure:
        ended = "the process that read it ended; the file is damaged or too large"
        raise ValueError(failure.reason if failure.status == "error" else ended) from failure


# The rest runs in the box.


def arrays_of(content: npt.NDArray[np.uint8], suffix: str) -> dict[str, bytes]:
    """Return the arrays in a file's content in NumPy's format, by array and column name.

    Raises a ValueError if an array is not a table of numbers.
    """
    found = {}
    for name, array in _arrays(suffix, io.BytesIO(content.data)):
        if array.dtype.kind in "biufUM" and array.ndim in (1, 2) and array.shape[1:] != (0,):
            stored = io.BytesIO()
            np.save(stored, array.astype(array.dtype.newbyteorder("="), copy=False), allow_pickle=False)
            found[name] = stored.getvalue()
        elif suffix != ".mat":  # MATLAB files may hold other variables
            raise ValueError(f"expected numbers in rows and columns, found {array.dtype.name} of {list(array.shape)}")
    if not found:
        raise ValueError("the file has no array of numbers")
    return found


def _arrays(suffix: str, file: BinaryIO) -> Iterator[tuple[str, npt.NDArray[np.generic]]]:
    """Yield the arrays of a file with their names; data frames column by column."""
    if suffix == ".mat":
        import scipy.io

        arrays = scipy.io.loadmat(file)  # type: ignore[arg-type]  # the stubs only know paths
        yield from ((name + _OF, array) for name, array in arrays.items() if not name.startswith("__"))
    elif suffix in R:
        with extra("reading R files", "r"):
            import rdata

        for name, table in rdata.conversion.convert(rdata.parser.parse_file(file)).items():
            if isinstance(table, pd.DataFrame):
                yield from _columns(name, table)
            else:
                yield name + _OF, np.asarray(table)
    elif suffix in PARQUET:
        with extra("reading Parquet files", "parquet"):
            import pyarrow.parquet

        yield from _columns("", pyarrow.parquet.read_table(file, use_threads=False).to_pandas())
    elif suffix == ".dat":  # numbers between spaces
        yield _OF, np.loadtxt(file)
    else:
        content = np.load(file, allow_pickle=False) if suffix == ".npy" else _Unpickler(file, encoding="latin1").load()
        yield _OF, np.asarray(content)


def _columns(name: str, table: pd.DataFrame) -> Iterator[tuple[str, npt.NDArray[np.generic]]]:
    """Yield the columns of a data frame with their names: numbers, times, and everything else as text."""
    if not table.columns.is_unique:
        raise ValueError(f"two columns have the same name; the columns are {[*map(str, table.columns)][:20]}")
    for column, cells in table.items():
        cells = cells.convert_dtypes(convert_string=False) if cells.dtype == object else cells
        how: dict[str, Any] = {"dtype": np.str_, "na_value": ""}
        if cells.dtype.kind == "M":
            how = {"dtype": "datetime64[ns]"}
        elif pd.api.types.is_numeric_dtype(cells.dtype):
            how = {} if isinstance(cells.dtype, np.dtype) else {"dtype": np.float64, "na_value": np.nan}
        else:
            cells = cells.astype(object)
        yield f"{name}{_OF}{column}", cells.to_numpy(**how)


class _Unpickler(pickle.Unpickler):
    """Unpickles arrays of numbers; a pickle that needs anything else is refused before it runs."""

    def find_class(self, module: str, name: str, /) -> object:
        """Return the classes and functions that arrays need."""
        if (found := _GLOBALS.get((module.replace("_core", "core"), name))) is None:
            raise ValueError(f"the pickle needs {f'{module}.{name}'[:80]!a}; expected only an array of numbers")
        return found


_GLOBALS = {
    ("numpy", "dtype"): np.dtype,
    ("numpy", "ndarray"): np.ndarray,
    ("_codecs", "encode"): codecs.encode,  # used for bytes by old protocols
    ("numpy.core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
    ("numpy.core.numeric", "_frombuffer"): np.empty(0).__reduce_ex__(5)[0],
}
