"""Reads files of arrays (MATLAB, R, NumPy) in a box, so that a forged file can do no harm."""

from __future__ import annotations

import codecs
import importlib.util
import io
import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import pandas as pd

from tsadbench.errors import MissingExtraError
from tsadbench.registry import Source
from tsadbench.sandbox.box import Box
from tsadbench.sandbox.construction import Construction
from tsadbench.sandbox.limits import BoxFailure, Limits
from tsadbench.utils.text import one_line

ARRAYS = (".mat", ".rda", ".rdata", ".pkl", ".pickle", ".npy", ".dat")
_MOST_BYTES, _MOST_MEMORY_MIB = 2**31, 8192.0
_SECONDS = 30, 0.5  # seconds per file, and per MiB
# Separates the names of an array and its column.
_OF = "\n"


def read_arrays(paths: Sequence[Path]) -> dict[Path, dict[str, pd.DataFrame] | str]:
    """Return the arrays of files as tables by the arrays' names, or why a file cannot be read.

    Columns of arrays have no names (`RangeIndex`); columns of R data frames have names. Raises a MissingExtraError if
    the package that reads R files is not installed.
    """
    if any(path.suffix.lower() in (".rda", ".rdata") for path in paths) and not importlib.util.find_spec("rdata"):
        raise MissingExtraError("reading R files", "r")
    source = Source("a file of arrays", f"{__name__}:arrays_of", "tsadbench")
    found: dict[Path, dict[str, pd.DataFrame] | str] = {}
    for path in paths:
        try:
            if (size := path.stat().st_size) > _MOST_BYTES:
                raise ValueError(f"it has {size / 2**30:.0f} GiB; split it into several files")
            limits = Limits(_SECONDS[0] + size / 2**20 * _SECONDS[1], _MOST_MEMORY_MIB)
            with Box(Construction(source), limits=limits, construct=False) as box:
                parts = box.parts(arrays_of, path.suffix.lower(), np.fromfile(path, np.uint8))
            tables: dict[str, dict[str, npt.NDArray[np.generic]]] = {}
            for name, content in parts.items():  # no pickles
                array, _, column = name.partition(_OF)
                tables.setdefault(array, {})[column] = np.load(io.BytesIO(content), allow_pickle=False)
            found[path] = {name: pd.DataFrame(of.get("", of), copy=False) for name, of in tables.items()}
        except BoxFailure as failure:
            ended = "the process that read it ended; the file is damaged or too large"
            found[path] = failure.reason if failure.status == "error" else ended
        except (OSError, ValueError) as error:
            found[path] = one_line(str(error), 200)
    return found


# The rest runs in the box.


def arrays_of(suffix: str, content: npt.NDArray[np.uint8]) -> dict[str, bytes]:
    """Return the arrays in a file's content in NumPy's format, by array and column name.

    Raises a ValueError if an array is not a table of numbers.
    """
    found = {}
    for name, array in _arrays(suffix, io.BytesIO(content.data)):
        if array.dtype.kind in "biufU" and array.ndim in (1, 2) and array.shape[1:] != (0,):
            stored = io.BytesIO()
            np.save(stored, array.astype(array.dtype.newbyteorder("="), copy=False), allow_pickle=False)
            found[name] = stored.getvalue()
        elif suffix != ".mat":  # the folder may hold other files
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
    elif suffix in (".rda", ".rdata"):
        import rdata

        for name, table in rdata.conversion.convert(rdata.parser.parse_file(file)).items():
            for column in table if isinstance(table, pd.DataFrame) else ():
                is_number = pd.api.types.is_numeric_dtype(table[column].dtype)
                kind = {"dtype": np.float64, "na_value": np.nan} if is_number else {"dtype": np.str_, "na_value": ""}
                yield f"{name}{_OF}{column}", table[column].astype(object).to_numpy(**kind)
            if not isinstance(table, pd.DataFrame):
                yield name + _OF, np.asarray(table)
    elif suffix == ".dat":  # numbers between spaces
        yield _OF, np.loadtxt(file)
    else:
        content = np.load(file, allow_pickle=False) if suffix == ".npy" else _Unpickler(file, encoding="latin1").load()
        yield _OF, np.asarray(content)


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
