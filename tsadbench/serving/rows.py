"""Rows of sensor values for a model, read as they arrive: a whole file and one that is still growing give the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

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
from tsadbench.datasets.times import BACKWARDS, joined, time_fault, time_in_seconds
from tsadbench.errors import DataError
from tsadbench.serving.missing import CarryForward
from tsadbench.utils.arrays import FloatArray, IntArray
from tsadbench.utils.text import first_of

# After as many rows in a row that cannot be scored, another recording begins: as many sampling steps as may lie between
# two recordings of one session (`tsadbench.datasets.sessions`).
BREAK = 10

# Receives the place of a skipped line and what is wrong with it.
OnSkip: TypeAlias = Callable[[str], None]


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows as they were read.

    Parameters
    ----------
    values
        [n_rows, n_sensors], in the order of the model's sensors; NaN where a value is missing and may not be filled.
    time
        [n_rows] seconds since 1970, or since the first row if only a period is known; None without either.
    numbers
        [n_rows] their numbers in the input, counted from 0; those of skipped lines are left out.
    """

    values: FloatArray
    time: FloatArray | None
    numbers: IntArray

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: slice | Sequence[int]) -> Rows:
        return Rows(self.values[rows], None if self.time is None else self.time[rows], self.numbers[rows])

    @property
    def whole(self) -> IntArray:
        """The rows without a missing value, which can be scored."""
        return np.flatnonzero(~np.isnan(self.values).any(axis=1))

    @staticmethod
    def joined(parts: Sequence[Rows]) -> Rows:
        """Return rows of one input together."""
        time = [part.time for part in parts if part.time is not None]
        return Rows(
            np.concatenate([part.values for part in parts]),
            np.concatenate(time) if time else None,
            np.concatenate([part.numbers for part in parts]),
        )


def recordings(rows: Rows, before: int | None = None) -> list[IntArray]:
    """Return the rows that can be scored, those of each recording together.

    ``before`` is the number of the last such row of the same input: the first recording goes on from there.
    """
    whole = rows.whole
    numbers = rows.numbers[whole]
    breaks = np.diff(numbers, prepend=numbers[:1] if before is None else before) > BREAK
    return np.split(whole, np.flatnonzero(breaks))


@dataclass(frozen=True, slots=True)
class Header:
    """Where a recording has the columns that a model needs: their numbers, counted from 0.

    Parameters
    ----------
    line
        Number of the last line above the rows, counted from 1; 0 in a Parquet file.
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
    """Reads one input, line by line.

    A skipped line is as if it were not there. After `BREAK` skipped lines in a row the recording ends: no value is
    carried over the break, and times may begin again.

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
    on_skip
        Receives each malformed line, which is skipped then; None: such a line is an error.
    """

    def __init__(
        self,
        name: str,
        file_format: FileFormat,
        sensors: Sequence[str],
        *,
        needs_time: bool = False,
        on_skip: OnSkip | None = None,
    ) -> None:
        self.header: Header | None = None
        self._name = name
        self._format = file_format
        self._sensors = tuple(sensors)
        self._needed = dict.fromkeys(file_format.time if needs_time else (), "time column")
        self._needed |= dict.fromkeys(sensors, "sensor")
        self._states = [states_of(file_format, sensor) for sensor in sensors]
        self._on_skip = on_skip
        self._first_lines: list[str] = []
        self._n_rows = self._n_blank = self._n_skipped_in_a_row = 0
        self._time_format: str | None = None
        self._begin()

    def _begin(self) -> None:
        """Begin a recording."""
        self._carry = CarryForward(self._format, len(self._sensors))
        self._last_time = -np.inf

    def read(self, lines: Sequence[str]) -> Iterator[Rows]:
        """Yield the rows that the next lines hold.

        A DataError if the header is malformed or lacks a sensor, and after the rows before it at a malformed line,
        unless such lines are skipped.
        """
        lines, header = self._below_header(lines), self.header
        if header is None:
            return
        rows, faults = self._cells(lines, header)
        if rows:
            texts = [[row[column] for column in header.sensors] for row in rows]
            time = [pd.Series([row[column].strip() for row in rows], dtype="str") for column in header.time]
            values = None if faults else self._plain_numbers(texts)
            if values is None:
                values = self._numbers([pd.Series(cells, dtype=object) for cells in zip(*texts, strict=True)], faults)
            yield from self._rows(values, time, faults)

    def read_table(self, table: Table) -> Iterator[Rows]:
        """Yield the rows of a table without lines; as `read`."""
        header = self.header = self._match(0, list(table.frame.columns))
        faults = dict[int, str]()
        values = self._numbers([table.frame.iloc[:, column] for column in header.sensors], faults)
        yield from self._rows(values, [table.frame.iloc[:, column] for column in header.time], faults)

    def end(self) -> Header:
        """Return the header; a DataError if the input has ended before it."""
        if self.header is None:
            raise DataError(f"{self._name}: none of its first lines names the columns; correct the names")
        return self.header

    def _below_header(self, lines: Sequence[str]) -> Sequence[str]:
        """Return those of the next lines that lie below the header, which is looked for until it is found."""
        if self.header is not None:
            return lines
        self._first_lines += lines
        form = self._format
        named = enumerate((names_of(split(line, form.separator), form) for line in self._first_lines), start=1)
        header = next((one for one in named if is_header(*one, form, self._sensors)), None)
        if header is None or len(self._first_lines) < header[0] + form.units_line:
            if header is None and len(self._first_lines) >= (
                SEARCHED_LINES if form.header_line == "search" else form.header_line
            ):
                self.end()
            return []
        if len(self._sensors) > 1 and (fault := other_separator(header[1], form)):
            raise DataError(f"{self._name}, line {header[0]}: {fault}")
        self.header = self._match(header[0] + form.units_line, header[1])
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

    def _cells(self, lines: Sequence[str], header: Header) -> tuple[list[list[str]], dict[int, str]]:
        """Return the cells of the next lines, and what is wrong with malformed ones, whose cells are empty then."""
        rows, faults = list[list[str]](), dict[int, str]()
        for line in lines:
            if is_blank(line, self._format.separator):
                self._n_blank += 1  # at the end, empty lines are no fault
                continue
            for _ in range(self._n_blank):
                faults[len(rows)] = BLANK_LINE
                rows.append([""] * header.n_columns)
            self._n_blank = 0
            cells = split(line, self._format.separator)
            if len(cells) != header.n_columns:
                faults[len(rows)] = cells_fault(header.n_columns, len(cells), self._format.separator)
                cells = [""] * header.n_columns
            rows.append(cells)
        return rows, faults

    def _rows(self, values: FloatArray, time: Sequence[pd.Series], faults: dict[int, str]) -> Iterator[Rows]:
        """Yield the next rows, given the columns that make up their times, and what is wrong with some."""
        moments = joined(time) if time else None
        seconds = None if moments is None else self._seconds(moments, faults)
        numbers = np.arange(self._n_rows, self._n_rows + len(values))
        self._n_rows += len(values)
        if seconds is None and self._format.period is not None:
            seconds = np.asarray(numbers * self._format.period, dtype=np.float64)
        rows = Rows(values, seconds, numbers)
        if faults or (seconds is not None and (np.diff(seconds, prepend=self._last_time) < 0).any()):
            yield from self._sound(rows, faults)
        else:
            self._n_skipped_in_a_row = 0
            yield self._filled(rows)

    def _sound(self, rows: Rows, faults: Mapping[int, str]) -> Iterator[Rows]:
        """Yield the rows that are not malformed."""
        kept = list[int]()
        for row, number in enumerate(rows.numbers.tolist()):
            fault = faults.get(row, "")
            if rows.time is not None and not fault:
                fault = BACKWARDS if rows.time[row] < self._last_time else ""
                self._last_time = max(self._last_time, float(rows.time[row]))
            if not fault:
                self._n_skipped_in_a_row = 0
                kept.append(row)
                continue
            if self._on_skip is None:
                yield self._filled(rows[kept])
                raise DataError(self._told(number, fault))
            self._on_skip(self._told(number, fault))
            self._n_skipped_in_a_row += 1
            if self._n_skipped_in_a_row == BREAK:
                yield self._filled(rows[kept])
                kept = []
                self._begin()
        yield self._filled(rows[kept])

    def _filled(self, rows: Rows) -> Rows:
        """Return rows with missing values filled where that is allowed."""
        self._carry.fill(rows.values)
        if rows.time is not None and len(rows):
            self._last_time = float(rows.time[-1])
        return rows

    def _told(self, number: int, text: str) -> str:
        """Return what is wrong with a row, with its place."""
        line = 0 if self.header is None else self.header.line
        # Every line between the header and the end is a row.
        place = f"line {line + 1 + number}" if line else f"row {number}"
        return f"{self._name}, {place}: {text}"

    def _seconds(self, moments: pd.Series, faults: dict[int, str]) -> FloatArray:
        """Return times in the format that fits the first row with a time; add what is none to the faults."""
        forms = self._format.time_formats if self._time_format is None else (self._time_format,)
        read = {form: time_in_seconds(moments, form) for form in forms}
        no_time = {form: ~np.isfinite(seconds) for form, seconds in read.items()}
        form = min(forms, key=lambda form: int(np.argmin(no_time[form])) if not no_time[form].all() else len(moments))
        if not no_time[form].all():
            self._time_format = form
        for row in np.flatnonzero(no_time[form]).tolist():
            faults.setdefault(row, time_fault(moments.iloc[row], [form]))
        return read[form]

    def _numbers(self, columns: Sequence[pd.Series], faults: dict[int, str]) -> FloatArray:
        """Return columns as numbers [n_rows, n_sensors]; add rows with a cell that holds none to the faults."""
        values = np.empty((len(columns[0]), len(columns)))
        for sensor, (cells, states) in enumerate(zip(columns, self._states, strict=True)):
            values[:, sensor], wrong = numbers_of(cells, self._format, states)
            for row in np.flatnonzero(wrong).tolist():
                if row not in faults:
                    faults[row] = f"column {self._sensors[sensor]!r}: {number_fault(cells.iloc[row], states)}"
        return values

    def _plain_numbers(self, texts: Sequence[Sequence[str]]) -> FloatArray | None:
        """Return rows of numbers alone, as `_numbers` does but faster for few rows; None if there is anything else."""
        if self._format.decimal != "." or self._format.missing or any(self._states):
            return None
        if not all(cell.isascii() and "_" not in cell for row in texts for cell in row):
            return None
        try:
            values = np.array([[float(cell) for cell in row] for row in texts])
        except ValueError:
            return None
        return values if np.isfinite(values).all() else None
