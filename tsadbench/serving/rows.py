"""Rows of sensor values for a model, read as they arrive: a whole file and one that is still growing give the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tsadbench.base.file_format import FileFormat
from tsadbench.datasets.reading.cells import columns_of_numbers, infinite_fault, number_fault, rows_of_numbers
from tsadbench.datasets.reading.header import find_header, header_faults, lines_needed, matching, no_header
from tsadbench.datasets.reading.missing import CarryForward
from tsadbench.datasets.reading.states import state_fault, states_of
from tsadbench.datasets.reading.table import Table
from tsadbench.datasets.reading.text import BLANK_LINE, MalformedError, cells_fault, is_blank, split
from tsadbench.datasets.reading.times import BACKWARDS, joined, time_fault, time_in_seconds
from tsadbench.errors import DataError
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
    """

    values: FloatArray
    time: FloatArray | None

    def __len__(self) -> int:
        return len(self.values)


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
    """

    def __init__(self, name: str, file_format: FileFormat, sensors: Sequence[str]) -> None:
        self.header: Header | None = None
        # What is wrong with the first malformed row; nothing after it is read.
        self.fault: DataError | None = None
        self._name = name
        self._format = file_format
        self._sensors = tuple(sensors)
        self._states = [states_of(file_format, sensor) for sensor in sensors]
        self._first_lines: list[str] = []
        self._n_rows = 0
        self._ended_by_blank = False
        self._carry = CarryForward(file_format, len(self._sensors))
        self._clock = _Clock(file_format)

    def read(self, lines: Sequence[str]) -> Rows:
        """Return the rows that the next lines hold, up to the first malformed line (`fault`).

        Raises
        ------
        DataError
            If the header is malformed or lacks a sensor.
        """
        rest = lines if self.header is not None else self._read_header(lines)
        if self.header is None:
            return Rows(np.empty((0, len(self._sensors))), None)
        rows, text = self._cells(rest, self.header)
        flaw = None if text is None else (len(rows), text)
        values = np.empty((0, len(self._sensors)))
        if rows:
            texts = [[row[column] for column in self.header.sensors] for row in rows]
            values, wrong = rows_of_numbers(texts, self._format, self._states)
            if wrong is not None:
                flaw = wrong[0], self._no_number(wrong[1], texts[wrong[0]][wrong[1]])
        time = [pd.Series([row[column].strip() for row in rows], dtype="str") for column in self.header.time]
        return self._sound(values, time, flaw)

    def read_table(self, table: Table) -> Iterator[Rows]:
        """Yield the rows of a table without lines, up to the first that is malformed (`fault`)."""
        self.header = header = self._match(0, table.header)
        for frame in table.chunks([*header.sensors, *header.time]):
            columns = [frame[column] for column in header.sensors]
            values, wrong = columns_of_numbers(columns, self._format, self._states)
            flaw = None
            if wrong is not None:
                flaw = wrong[0], self._no_number(wrong[1], columns[wrong[1]].iloc[wrong[0]])
            yield self._sound(values, [frame[column] for column in header.time], flaw)
            if self.fault is not None:
                return

    def end(self) -> None:
        """Raise a DataError if a row was malformed, or if the input has ended before its header."""
        if self.header is None:
            raise DataError(f"{self._name}: {no_header(self._format, self._first_lines)}")
        if self.fault is not None:
            raise self.fault

    def _read_header(self, lines: Sequence[str]) -> Sequence[str]:
        """Look for the header in the first lines; return the lines after it."""
        self._first_lines += lines
        sensors = set(self._sensors)
        try:
            header = find_header(self._first_lines, self._format, sensors.issubset, one_column=len(sensors) == 1)
        except MalformedError as error:
            raise DataError(f"{self._name}: {error.text}") from error
        if header is None:
            if len(self._first_lines) >= lines_needed(self._format):
                self.end()
            return []
        self.header = self._match(*header)
        rest, self._first_lines = self._first_lines[self.header.line :], []
        return rest

    def _match(self, line: int, names: Sequence[str]) -> Header:
        """Return where columns of these names have what the model needs."""
        faults = list(header_faults(names, dict.fromkeys(self._sensors, "sensor"), self._format.time))
        if faults:
            raise DataError("\n  ".join([f"{self._name}: {faults[0]}", *faults[1:]]))
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
        used = {*self._sensors, *self._format.time, *matching(names, self._format.unused)}
        unused = [name for name in names if name and name not in used]
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

    def _sound(self, values: FloatArray, time: Sequence[pd.Series], flaw: tuple[int, str] | None) -> Rows:
        """Return the rows up to the first malformed one.

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
            flaw = row, self._about(sensor, infinite_fault(values[row, sensor]))
        values = values[: None if flaw is None else flaw[0]]
        gap = min(self._carry.fill(values), key=lambda gap: gap.row, default=None)
        if gap is not None:
            flaw = gap.row, self._about(gap.sensor, gap.text)
            values = values[: gap.row]
        seconds: FloatArray | None = None
        if time:
            seconds, wrong = self._clock.seconds(joined([cells.iloc[: len(values)] for cells in time]))
            if wrong is not None:
                flaw = wrong
                values, seconds = values[: wrong[0]], seconds[: wrong[0]]
        first, self._n_rows = self._n_rows, self._n_rows + len(values)
        if flaw is not None:
            line = 0 if self.header is None else self.header.line
            # Every line between the header and the end is a row.
            place = f"line {line + 1 + first + flaw[0]}" if line else f"row {first + flaw[0]}"
            self.fault = DataError(f"{self._name}, {place}: {flaw[1]}")
        if seconds is None and self._format.period is not None:
            seconds = np.arange(first, self._n_rows, dtype=np.float64) * self._format.period
        return Rows(values, seconds)

    def _no_number(self, sensor: int, cell: object) -> str:
        states = self._states[sensor]
        return self._about(sensor, state_fault(cell, states) if states else number_fault(cell))

    def _about(self, sensor: int, text: str) -> str:
        return f"column {self._sensors[sensor]!r}: {text}"


class _Clock:
    """Reads times as they arrive, in the first format that fits the first row.

    They may repeat, but not run backwards.
    """

    def __init__(self, file_format: FileFormat) -> None:
        self._forms = file_format.time_formats
        self._form: str | None = None
        self._last = -np.inf

    def seconds(self, cells: pd.Series) -> tuple[FloatArray, tuple[int, str] | None]:
        """Return the next rows' times, and the first row that is wrong, with what is wrong with it."""
        if len(cells) == 0:
            return np.empty(0), None
        if self._form is None:
            fitting = (form for form in self._forms if np.isfinite(time_in_seconds(cells.iloc[:1], form)[0]))
            self._form = next(fitting, self._forms[0])
        seconds = time_in_seconds(cells, self._form)
        no_time = ~np.isfinite(seconds)
        wrong = np.flatnonzero(no_time | (np.diff(seconds, prepend=self._last) < 0))
        if len(wrong) == 0:
            self._last = seconds[-1]
            return seconds, None
        row = int(wrong[0])
        return seconds, (row, time_fault(cells.iloc[row], [self._form]) if no_time[row] else BACKWARDS)
