"""Arrays in files as tables, and how large a file of arrays may be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from tsadbench.datasets.reading.csv import CHUNK_CELLS
from tsadbench.datasets.reading.table import Table
from tsadbench.datasets.reading.text import MalformedError

# Of a file, and of what it says that it holds: a small file may decompress to far more than the memory.
MOST_BYTES = 2**31
TOO_LARGE = f"its arrays hold more than {MOST_BYTES // 2**30} GiB; split it into several files"
COPY_AGAIN = "copy it again"

Column: TypeAlias = "npt.NDArray[np.generic] | pd.api.extensions.ExtensionArray"


@dataclass(frozen=True, slots=True, eq=False)
class ArrayTable:
    """The columns of one array, in memory.

    Parameters
    ----------
    header
        The columns' names; empty ones if the array has none.
    columns
        One array a column, all of equal length.
    """

    header: tuple[str, ...]
    columns: Sequence[Column]

    @property
    def n_rows(self) -> int:
        """How many rows it has."""
        return len(self.columns[0]) if self.columns else 0

    def line(self, row: int) -> None:
        """Return None: a file of arrays has no lines."""

    def chunks(self, columns: Sequence[int]) -> Iterator[pd.DataFrame]:
        """Yield some columns' rows in order; columns are named by their numbers."""
        rows = max(1, CHUNK_CELLS // max(1, len(columns)))
        for start in range(0, self.n_rows, rows):
            yield pd.DataFrame({column: self.columns[column][start : start + rows] for column in columns})


class Arrays(Mapping[str, Table]):
    """The arrays of one file. What is wrong with an array is reported when it is asked for, so others can be read.

    Parameters
    ----------
    readers
        A function for each array, which returns its table or raises a `MalformedError`.
    """

    def __init__(self, readers: Mapping[str, Callable[[], ArrayTable]]) -> None:
        self._readers = dict(readers)

    def __getitem__(self, name: str) -> ArrayTable:
        """Return the table of an array. A MalformedError if it cannot be a table of numbers."""
        return self._readers[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._readers)

    def __len__(self) -> int:
        return len(self._readers)


def table_of(array: npt.NDArray[np.generic], name: str) -> ArrayTable:
    """Return the table of an array of numbers; one of a single dimension is a column.

    Parameters
    ----------
    array
        [n_rows, n_columns] or [n_rows], booleans, integers or floats.
    name
        Its name, for messages; may be empty.

    Raises
    ------
    MalformedError
        If it has other dimensions, or holds something else.
    """
    what = f"array {name!r}" if name else "its array"
    if array.dtype.kind not in "biuf":
        raise MalformedError(f"{what}: expected real numbers, found {array.dtype.name}; save it as numbers")
    if array.ndim not in (1, 2):
        raise MalformedError(f"{what}: expected rows by columns, found the shape {list(array.shape)}; save it so")
    matrix = array.reshape(-1, 1) if array.ndim == 1 else array
    columns = [as_column(matrix[:, number]) for number in range(matrix.shape[1])]
    if not columns:
        raise MalformedError(f"{what}: expected rows by columns, found the shape {list(array.shape)}; save it so")
    return ArrayTable(("",) * len(columns), columns)


def as_column(column: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """Return a column as pandas reads it: in this machine's byte order, 0 and 1 for booleans."""
    if column.dtype.kind == "b":
        return column.view(np.uint8)
    return column.astype(column.dtype.newbyteorder("="), copy=False)


def reason(error: BaseException) -> str:
    """Return what a library says of a file, in one short line."""
    return " ".join(str(error).split())[:120] or type(error).__name__
