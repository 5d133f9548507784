"""What every reader of files returns: a table by the chunk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import pandas as pd


class Table(Protocol):
    """Rows of columns in a file, or in one array of a file that holds several.

    A function that opens a file of arrays returns a mapping from the arrays' names to tables, in the file's order; one
    array without a name is called "". It raises a `MalformedError` if the file is not what its ending says.
    """

    @property
    def header(self) -> tuple[str, ...]:
        """The columns' names; an array without names has empty ones, as many as columns."""

    @property
    def n_rows(self) -> int:
        """How many rows it has."""

    def line(self, row: int) -> int | None:
        """Return the line of a row, counted from 1, or None if the file has no lines."""

    def chunks(self, columns: Sequence[int]) -> Iterator[pd.DataFrame]:
        """Yield some columns' rows in order; columns are named by their numbers."""


@dataclass(frozen=True, slots=True)
class NamedTable:
    """A table whose columns a card names.

    Parameters
    ----------
    table
        The table.
    header
        The names of its columns.
    """

    table: Table
    header: tuple[str, ...]

    @property
    def n_rows(self) -> int:
        """How many rows it has."""
        return self.table.n_rows

    def line(self, row: int) -> int | None:
        """Return the line of a row, counted from 1, or None if the file has no lines."""
        return self.table.line(row)

    def chunks(self, columns: Sequence[int]) -> Iterator[pd.DataFrame]:
        """Yield some columns' rows in order; columns are named by their numbers."""
        return self.table.chunks(columns)


@dataclass(frozen=True, slots=True)
class JoinedTable:
    """The rows of several tables, one table after the other. All have the columns that are asked for, in any order.

    Parameters
    ----------
    tables
        At least one.
    """

    tables: tuple[Table, ...]

    @property
    def header(self) -> tuple[str, ...]:
        """The columns' names in the first table."""
        return self.tables[0].header

    @property
    def n_rows(self) -> int:
        """How many rows all of them have."""
        return sum(table.n_rows for table in self.tables)

    def part(self, row: int) -> tuple[int, int]:
        """Return which table, counted from 0, has a row, and the row's number in it."""
        last = len(self.tables) - 1
        for number, table in enumerate(self.tables):
            if row < table.n_rows or number == last:
                return number, row
            row -= table.n_rows
        return last, row

    def line(self, row: int) -> int | None:
        """Return the line of a row in its file, counted from 1, or None if the file has no lines."""
        number, row = self.part(row)
        return self.tables[number].line(row)

    def chunks(self, columns: Sequence[int]) -> Iterator[pd.DataFrame]:
        """Yield some columns' rows in order; columns are named by their numbers in the first table."""
        names = [self.header[column] for column in columns]
        for table in self.tables:
            own = [table.header.index(name) for name in names]
            for rows in table.chunks(own):
                yield rows[own].set_axis(list(columns), axis=1)
