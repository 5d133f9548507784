"""Long tables: each row holds one value of one sensor, a sample or a change of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tsadbench.datasets.reading.header import header_faults
from tsadbench.datasets.reading.resampling import By, Grid
from tsadbench.datasets.reading.table import Table
from tsadbench.datasets.reading.text import MalformedError
from tsadbench.utils.arrays import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class LongTable:
    """A long table, whose sensors are known.

    Parameters
    ----------
    table
        The table as it lies in the file.
    name, value
        Its columns with the sensor's name and with its value, counted from 0.
    others
        Its columns that hold times or labels.
    sensors
        The sensors' names, in the order in which they occur first.
    """

    table: Table
    name: int
    value: int
    others: tuple[str, ...]
    sensors: tuple[str, ...]

    @property
    def header(self) -> tuple[str, ...]:
        """The names of columns with times or labels, and of the sensors."""
        return (*self.others, *self.sensors)

    @property
    def n_rows(self) -> int:
        """How many rows it has in the file."""
        return self.table.n_rows

    def line(self, row: int) -> int | None:
        """Return the line of one of the file's rows, counted from 1, or None if it has no lines."""
        return self.table.line(row)

    def chunks(self, columns: Sequence[int]) -> Iterator[pd.DataFrame]:
        """Yield some of the file's columns as it has them; columns are named by their numbers there."""
        return self.table.chunks(columns)


def open_long(table: Table, name: str, value: str, others: Sequence[str]) -> LongTable:
    """Return a table whose columns are the sensors that a long one names.

    A MalformedError if the columns with names and values are missing, or a row names no sensor.
    """
    faults = list(header_faults(table.header, {name: "column of sensors' names", value: "column of values"}))
    if faults:
        raise MalformedError("; ".join(faults), getattr(table, "header_line", None))
    column = table.header.index(name)
    names: dict[str, None] = {}
    start = 0
    for rows in table.chunks([column]):
        nameless = np.flatnonzero(rows[column].isna().to_numpy())
        if len(nameless):
            text = f"column {name!r}: expected a sensor's name, found an empty cell; correct it"
            raise MalformedError(text, table.line(start + int(nameless[0])))
        names |= dict.fromkeys(cleaned_names(rows[column].unique()))
        start += len(rows)
    kept = tuple(other for other in table.header if other in set(others))
    return LongTable(table, column, table.header.index(value), kept, tuple(names))


def cleaned_names(names: Iterable[object]) -> list[str]:
    """Return the names of sensors as texts without the spaces around them."""
    return [str(name).strip() for name in names]


class Changes:
    """The values of all sensors, row by row of a long table, until they are laid on a grid.

    Parameters
    ----------
    n_rows
        How many rows the table has.
    sensors
        The sensors that are wanted.
    """

    def __init__(self, n_rows: int, sensors: Sequence[str]) -> None:
        self._place = {sensor: number for number, sensor in enumerate(sensors)}
        self._numbers = np.full(n_rows, np.nan)
        self._sensors = np.full(n_rows, len(sensors))

    def rows_of(self, names: pd.Series, start: int) -> Iterator[tuple[str, IntArray]]:
        """Yield each wanted sensor among the names of the next rows, and which of them, counted from 0, are its."""
        codes, found = pd.factorize(names.astype(object))
        order = np.argsort(codes, kind="stable")  # of all names at once: there may be very many
        starts = np.searchsorted(codes[order], np.arange(len(found) + 1))
        for code, sensor in enumerate(cleaned_names(found)):
            if sensor in self._place:
                rows = order[starts[code] : starts[code + 1]]
                self._sensors[start + rows] = self._place[sensor]
                yield sensor, rows

    def add(self, rows: IntArray, numbers: FloatArray) -> None:
        """Take the numbers in these rows of the table; NaN if one is missing."""
        self._numbers[rows] = numbers

    def laid_on(self, grid: Grid, by: By) -> FloatArray:
        """Return the values [n_rows of the grid, n_sensors]; NaN where there is none."""
        order = np.argsort(self._sensors, kind="stable")
        starts = np.searchsorted(self._sensors[order], np.arange(len(self._place) + 1))
        laid = np.empty((grid.n_rows, len(self._place)))
        for sensor in range(len(self._place)):
            rows = order[starts[sensor] : starts[sensor + 1]]
            laid[:, sensor] = grid.series(self._numbers[rows], grid.bins[rows], by)
        return laid
