"""Rows of sensor values for a model, read as they arrive: a whole file and one that is still growing give the same."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from tsadbench.base.file_format import FileFormat
from tsadbench.datasets.formats import (
    BLANK_LINE,
    SEARCHED_LINES,
    Table,
    cells_fault,
    header_fault,
    is_blank,
    is_header,
    matches,
    names_of,
    number_fault,
    numbers_of,
    other_separator,
    split,
    states_of,
)
from tsadbench.datasets.times import joined
from tsadbench.errors import DataError
from tsadbench.serving.clock import Clock
from tsadbench.serving.missing import CarryForward
from tsadbench.utils.arrays import FloatArray
from tsadbench.utils.text import first_of


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows as a detector takes them.

    Parameters
    ----------
    values
        [n_rows, n_sensors], finite, in the order of the model's sensors.
    time
        [n_rows] seconds since 1970, or since the first row if only a period is known; None without either.
    first
        Number of the first of them in the input, counted from 0.
    begins
        Whether they begin another recording than the rows before them.
    """

    values: FloatArray
    time: FloatArray | None
    first: int = 0
    begins: bool = False

    def __len__(self) -> int:
        return len(self.values)


class Flaw(NamedTuple):
    """A malformed row: its number, counted from the first of those handed in, and what is wrong with it."""

    row: int
    text: str


@dataclass(frozen=True, slots=True)
class Header:
    """Where a recording has the columns that a model needs: their numbers, counted from 0.

    Parameters
    ----------
    line
        Its number, counted from 1; 0 in a Parquet file.
    n_columns
        How many cells each line must have.
    sensors
        In the model's order.
    time
        The columns whose texts make up a time; empty if there is none.
    notes
        What a user should know: another order, columns that are not used.
    """

    line: int
    n_columns: int
    sensors: tuple[int, ...]
    time: tuple[int, ...]
    notes: tuple[str, ...]


class RowReader:
    """Reads one recording, line by line.

    Parameters
    ----------
    name
        What messages call it, for instance the file's name.
    file_format
        How it is written.
    sensors
        The model's.
    needs_time
        Whether its column of times must be there; otherwise rows are numbered without it.
    """

    def __init__(self, name: str, file_format: FileFormat, sensors: Sequence[str], *, needs_time: bool = False) -> None:
        self.header: Header | None = None
        # What is wrong with the first malformed row; nothing after it is read.
        self.fault: DataError | None = None
        self._name = name
        self._format = file_format
        self._sensors = tuple(sensors)
        self._needed = dict.fromkeys(file_format.time if needs_time else (), "time column")
        self._needed |= dict.fromkeys(sensors, "sensor")
        self._states = [states_of(file_format, sensor) for sensor in sensors]
        self._first_lines: list[str] = []
        self._n_rows = 0
        self._ended_by_blank = False
        self._carry = CarryForward(file_format, len(self._sensors))
        self._clock = Clock(file_format)

    def read(self, lines: Sequence[str]) -> Rows:
        """Return the rows that the next lines hold, up to the first malformed line (`fault`).

        A DataError if the header is malformed or lacks a sensor.
        """
        rows, flaw = self.parse(self.without_header(lines))
        if flaw is not None:
            self.fault = DataError(self.told(flaw.text))
        return rows

    def read_table(self, table: Table) -> Iterator[Rows]:
        """Yield the rows of a table without lines, up to the first that is malformed (`fault`)."""
        self.match(table)
        rows, flaw = self.parse_frame(table.frame)
        if flaw is not None:
            self.fault = DataError(self.told(flaw.text))
        yield rows

    def parse(self, lines: Sequence[str]) -> tuple[Rows, Flaw | None]:
        """Return the rows that lines below the header hold, up to the first malformed one."""
        if self.header is None:
            return Rows(np.empty((0, len(self._sensors))), None), None
        rows, text = self._cells(lines, self.header)
        flaw = None if text is None else Flaw(len(rows), text)
        values = np.empty((0, len(self._sensors)))
        if rows:
            texts = [[row[column] for column in self.header.sensors] for row in rows]
            columns = [pd.Series(cells, dtype=object) for cells in zip(*texts, strict=True)]
            values, wrong = self._plain_numbers(texts) or self._numbers(columns)
            if wrong is not None:
                flaw = Flaw(wrong[0], self._no_number(wrong[1], texts[wrong[0]][wrong[1]]))
        time = [pd.Series([row[column].strip() for row in rows], dtype="str") for column in self.header.time]
        return self._sound(values, time, flaw)

    def parse_frame(self, frame: pd.DataFrame) -> tuple[Rows, Flaw | None]:
        """Return the rows of a part of a table, whose header has been matched, up to the first malformed one."""
        header = self.header
        if header is None:
            raise DataError(f"{self._name}: its columns have not been matched")
        columns = [frame.iloc[:, column] for column in header.sensors]
        values, wrong = self._numbers(columns)
        flaw = None
        if wrong is not None:
            flaw = Flaw(wrong[0], self._no_number(wrong[1], columns[wrong[1]].iloc[wrong[0]]))
        return self._sound(values, [frame.iloc[:, column] for column in header.time], flaw)

    def match(self, table: Table) -> Header:
        """Find the columns of a table without lines."""
        self.header = self._match(0, list(table.frame.columns))
        return self.header

    def copy(self) -> RowReader:
        """Return a reader that goes on where this one is; what either reads does not move the other."""
        copied = copy.copy(self)
        copied._carry, copied._clock = copy.copy(self._carry), copy.copy(self._clock)
        return copied

    def skip(self, n_rows: int) -> None:
        """Pass over the next rows."""
        self._n_rows += n_rows

    def restart(self) -> None:
        """Begin another recording: nothing is carried over into it, and its times may lie before the last one."""
        self._carry = CarryForward(self._format, len(self._sensors))
        self._clock = Clock(self._format)

    def told(self, text: str) -> str:
        """Return what is wrong with the next row, with its place."""
        line = 0 if self.header is None else self.header.line
        # Every line between the header and the end is a row.
        place = f"line {line + 1 + self._n_rows}" if line else f"row {self._n_rows}"
        return f"{self._name}, {place}: {text}"

    def end(self) -> None:
        """Raise a DataError if a row was malformed, or if the input has ended before its header."""
        if self.header is None:
            raise DataError(f"{self._name}: none of its first lines names the columns; correct the names")
        if self.fault is not None:
            raise self.fault

    def without_header(self, lines: Sequence[str]) -> Sequence[str]:
        """Return those of the next lines that lie below the header, which is looked for until it is found.

        A DataError if the header is malformed or lacks a sensor.
        """
        if self.header is not None:
            return lines
        self._first_lines += lines
        form = self._format
        named = enumerate((names_of(split(line, form.separator), form) for line in self._first_lines), start=1)
        header = next((one for one in named if is_header(*one, form, self._sensors)), None)
        if header is None:
            if len(self._first_lines) >= (SEARCHED_LINES if form.header_line == "search" else form.header_line):
                self.end()
            return []
        if len(self._sensors) > 1 and (fault := other_separator(header[1], form)):
            raise DataError(f"{self._name}, line {header[0]}: {fault}")
        self.header = self._match(*header)
        rest, self._first_lines = self._first_lines[self.header.line :], []
        return rest

    def _match(self, line: int, names: Sequence[str]) -> Header:
        """Return where columns of these names have what the model needs."""
        times = dict.fromkeys((name for name in self._format.time if name in names), "time column")
        if fault := header_fault(names, self._needed | times):
            raise DataError(f"{self._name}: {fault}")
        column = {name: number for number, name in enumerate(names)}
        sensors = tuple(column[name] for name in self._sensors)
        has_time = set(self._format.time) <= set(names)
        time = tuple(column[name] for name in self._format.time) if has_time else ()
        return Header(line, len(names), sensors, time, tuple(self._notes(names, sensors)))

    def _notes(self, names: Sequence[str], sensors: tuple[int, ...]) -> Iterable[str]:
        if list(sensors) != sorted(sensors):
            yield "its sensors are in another order than when the model was fitted; they are taken by their names"
        lacking = [name for name in self._format.time if name not in names]
        if lacking:
            yield f"it has no column {lacking[0]!r} with times; rows are numbered instead"
        used = {*self._sensors, *self._format.time}
        unused = [name for name in names if name and name not in used and not matches(name, self._format.unused)]
        if unused:
            yield f"columns that the model does not know are not used: {first_of([*map(repr, unused)])}"

    def _cells(self, lines: Sequence[str], header: Header) -> tuple[list[list[str]], str | None]:
        """Return the cells of the next lines, and what is wrong with the first malformed line."""
        separator = self._format.separator
        rows: list[list[str]] = []
        for line in lines:
            if is_blank(line, separator):
                self._ended_by_blank = True  # no other line may follow
                continue
            if self._ended_by_blank:
                return rows, BLANK_LINE
            cells = split(line, separator)
            if len(cells) != header.n_columns:
                return rows, cells_fault(header.n_columns, len(cells), separator)
            rows.append(cells)
        return rows, None

    def _sound(self, values: FloatArray, time: Sequence[pd.Series], flaw: Flaw | None) -> tuple[Rows, Flaw | None]:
        """Return the rows up to the first malformed one, and that.

        Parameters
        ----------
        values
            [n_rows, n_sensors], NaN if a value is missing.
        time
            The columns whose texts make up a time.
        flaw
            Number of a malformed row and what is wrong with it; rows before it may be malformed, too.
        """
        infinite = np.argwhere(np.isinf(values[: None if flaw is None else flaw[0]]))
        if len(infinite):
            row, sensor = map(int, infinite[0])
            flaw = Flaw(row, self._about(sensor, number_fault(values[row, sensor])))
        values = values[: None if flaw is None else flaw.row]
        gap = min(self._carry.fill(values), key=lambda gap: gap.row, default=None)
        if gap is not None:
            flaw = Flaw(gap.row, self._about(gap.sensor, gap.text))
            values = values[: gap.row]
        seconds: FloatArray | None = None
        if time:
            seconds, wrong = self._clock.seconds(joined([cells.iloc[: len(values)] for cells in time]))
            if wrong is not None:
                flaw = Flaw(*wrong)
                values, seconds = values[: flaw.row], seconds[: flaw.row]
        first, self._n_rows = self._n_rows, self._n_rows + len(values)
        if seconds is None and self._format.period is not None:
            seconds = np.arange(first, self._n_rows, dtype=np.float64) * self._format.period
        return Rows(values, seconds, first), flaw

    def _no_number(self, sensor: int, cell: object) -> str:
        return self._about(sensor, number_fault(cell, self._states[sensor]))

    def _numbers(self, columns: Sequence[pd.Series]) -> tuple[FloatArray, tuple[int, int] | None]:
        """Return columns as numbers [n_rows, n_sensors]; row and sensor of the first cell that is none, or None."""
        read = [numbers_of(cells, self._format, states) for cells, states in zip(columns, self._states, strict=True)]
        first = [(int(np.argmax(wrong)), sensor) for sensor, (_, wrong) in enumerate(read) if wrong.any()]
        return np.column_stack([numbers for numbers, _ in read]), min(first, default=None)

    def _plain_numbers(self, texts: Sequence[Sequence[str]]) -> tuple[FloatArray, None] | None:
        """Return rows of numbers alone, as `_numbers` does but faster for few rows; None if there is anything else."""
        if self._format.decimal != "." or self._format.missing or any(self._states):
            return None
        if not all(cell.isascii() and "_" not in cell for row in texts for cell in row):
            return None
        try:
            values = np.array([[float(cell) for cell in row] for row in texts])
        except ValueError:
            return None
        return (values, None) if np.isfinite(values).all() else None

    def _about(self, sensor: int, text: str) -> str:
        return f"column {self._sensors[sensor]!r}: {text}"
