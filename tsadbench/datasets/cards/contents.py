"""The rows of one file as numbers, and everything that is wrong with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from tsadbench.base.file_format import FileFormat
from tsadbench.datasets.cards.sections import Columns
from tsadbench.datasets.reading.cells import (
    blank_codes,
    canonical,
    finite_numbers,
    infinite_fault,
    number_fault,
    numbers_of,
    row_of_numbers,
)
from tsadbench.datasets.reading.csv import CsvFile
from tsadbench.datasets.reading.long import Changes, LongTable
from tsadbench.datasets.reading.resampling import Grid, grid_fault, grid_of
from tsadbench.datasets.reading.states import state_fault, states_of
from tsadbench.datasets.reading.table import Table
from tsadbench.datasets.reading.times import BACKWARDS, joined, time_fault, time_in_seconds
from tsadbench.utils.arrays import BoolArray, FloatArray, IntArray
from tsadbench.utils.issues import SHOWN, Issue


class Place(NamedTuple):
    """Where a row stands: the file's name for messages, the line (None if it has no lines), and the row in the file."""

    file: str
    line: int | None
    row: int

    def issue(self, text: str, kind: str | None = None, count: int = 1) -> Issue:
        """Return what is wrong with the row."""
        where = f" (row {self.row}, counted from 0)" if self.line is None else ""
        return Issue(self.file, f"{text}{where}", self.line, kind, count)


@dataclass(frozen=True, slots=True, eq=False)
class Contents:
    """The rows of one recording.

    Parameters
    ----------
    values
        [n_rows, n_sensors], NaN if a value is missing, otherwise finite.
    time
        [n_rows] seconds since 1970, or since the first row if a period is given; None without either.
    labels
        [n_rows], True where anomalous; None if the file has no labels.
    place
        Where a row of these, counted from 0, stands.
    issues
        What is wrong with the rows.
    """

    values: FloatArray
    time: FloatArray | None
    labels: BoolArray | None
    place: Callable[[int], Place]
    issues: tuple[Issue, ...]


def read_contents(
    name: str, table: Table, file_format: FileFormat, sensors: Sequence[str], columns: Columns
) -> Contents:
    """Read a file whose header is valid; in addition to the values, one chunk of rows is in memory at a time.

    Parameters
    ----------
    name
        The file's name, for messages.
    table, file_format
        How the file is read, and how it is written.
    sensors
        The data set's sensors.
    columns
        What the card says of columns.

    Raises
    ------
    OSError, ValueError
        If the file cannot be read.
    """
    reader = _RowReader(name, table)
    long = table if isinstance(table, LongTable) else None
    place = {column: number for number, column in enumerate(table.header if long is None else long.table.header)}
    times = [place[column] for column in file_format.time]
    label = None if columns.label is None else place.get(columns.label)
    n_rows = table.n_rows
    changes = None if long is None else Changes(n_rows, sensors)
    values = np.empty((n_rows if long is None else 0, len(sensors)))
    labels = None if label is None else np.zeros(n_rows, dtype=np.bool_)
    clock = _Clock(file_format) if times else None
    columns_of_sensors = [place[sensor] for sensor in sensors] if long is None else [long.name, long.value]
    by_line = isinstance(table, CsvFile) and table.is_wide and not file_format.states
    if by_line:
        reader.wide_numbers(values, columns_of_sensors, sensors, file_format)
    asked = [*([] if by_line else columns_of_sensors), *times, *([] if label is None else [label])]
    start = 0 if asked else n_rows
    for rows in table.chunks(asked) if asked else ():
        stop = start + len(rows)
        if stop > n_rows:
            break
        if changes is not None:
            reader.changes(changes, rows[columns_of_sensors], start, file_format)
        elif not by_line:
            reader.rows(values[start:stop], rows[columns_of_sensors], sensors, start, file_format)
        if labels is not None:
            labels[start:stop] = reader.labels(rows[label], start, columns, str(columns.label))
        if clock is not None:
            clock.add(joined([rows[column] for column in times]))
        start = stop
    if start != n_rows:
        text = f"expected {n_rows} rows, one a line, found another number; has a quoted cell a line break? remove it"
        reader.issues.append(Issue(name, text))
        values[start:] = 0.0
    time: FloatArray | None = None
    if clock is not None:
        time = reader.times(clock, file_format)
    elif file_format.period is not None:
        time = np.arange(n_rows, dtype=np.float64) * file_format.period
    grid = reader.grid(time, file_format, held=long is not None and file_format.resample_by == "last")
    if grid is not None:
        by = file_format.resample_by
        values = grid.values(values, by) if changes is None else changes.laid_on(grid, by)
        labels = None if labels is None else grid.labels(labels)
        time = grid.time
    elif changes is not None:
        values, labels = np.zeros((n_rows and 1, len(sensors))), None
    return Contents(values, time, labels, reader.place, tuple(reader.issues))


def read_labels(name: str, table: Table, column: int, columns: Columns) -> tuple[BoolArray, list[Issue]]:
    """Return one column's labels [n_rows], True where anomalous, and what is wrong with them.

    Raises
    ------
    OSError, ValueError
        If the file cannot be read.
    """
    reader = _RowReader(name, table)
    labels, start = np.zeros(table.n_rows, dtype=np.bool_), 0
    for rows in table.chunks([column]):
        stop = start + len(rows)
        labels[start:stop] = reader.labels(rows[column], start, columns, table.header[column] or "label")
        start = stop
    return labels, reader.issues


def join_contents(parts: Sequence[Contents], period: float | None) -> Contents:
    """Return the rows of several files, in their order, as those of one recording.

    Parameters
    ----------
    parts
        What each file holds; at least one.
    period
        Seconds from row to row if no column holds times.
    """
    if len(parts) == 1:
        return parts[0]
    starts = np.cumsum([0, *(len(part.values) for part in parts)])
    times = [part.time for part in parts if part.time is not None]
    labels = [part.labels for part in parts if part.labels is not None]
    time: FloatArray | None = None
    if period is not None:
        time = np.arange(starts[-1], dtype=np.float64) * period
    elif len(times) == len(parts):
        time = np.concatenate(times)

    def place(row: int) -> Place:
        part = min(int(np.searchsorted(starts, row, side="right")), len(parts)) - 1
        return parts[part].place(row - int(starts[part]))

    issues = [issue for part in parts for issue in part.issues]
    for start in map(int, starts[1:-1]):
        if time is not None and 0 < start < len(time) and time[start] < time[start - 1]:
            text = f"the time lies before the last one in {place(start - 1).file}, which it is joined to"
            issues.append(place(start).issue(f"{text}; correct join, or the order of files"))
    return Contents(
        values=np.concatenate([part.values for part in parts]),
        time=time,
        labels=np.concatenate(labels) if len(labels) == len(parts) else None,
        place=place,
        issues=tuple(issues),
    )


class _RowReader:
    """Reads columns of one file, and collects what is wrong with their cells."""

    def __init__(self, name: str, table: Table) -> None:
        self.issues: list[Issue] = []
        self._name = name
        self._table = table
        # Once rows are laid on a grid: the file's first row that each row of it stands for.
        self._first_rows: IntArray | None = None

    def rows(
        self, values: FloatArray, cells: pd.DataFrame, sensors: Sequence[str], start: int, file_format: FileFormat
    ) -> None:
        """Read the sensors' cells in the next rows [n_rows, n_sensors], in the order of the sensors."""
        block = finite_numbers(cells, file_format)
        if block is not None:
            values[:] = block
            return
        for i, sensor in enumerate(sensors):
            values[:, i] = self.numbers(cells.iloc[:, i], sensor, start, file_format)

    def changes(self, changes: Changes, rows: pd.DataFrame, start: int, file_format: FileFormat) -> None:
        """Read the next rows of a long table: a sensor's name and its value."""
        cells = rows.iloc[:, 1].astype(object).to_numpy()  # once: pandas takes long to pick from texts
        for sensor, own in changes.rows_of(rows.iloc[:, 0], start):
            numbers = self.numbers(pd.Series(cells[own], dtype=object), sensor, start, file_format, own)
            changes.add(start + own, numbers)

    def grid(self, time: FloatArray | None, file_format: FileFormat, *, held: bool) -> Grid | None:
        """Return the grid that the rows are to be laid on, None without resampling or if the times are wrong."""
        every = file_format.resample_every
        if every is None or time is None or len(time) == 0 or (np.diff(time) < 0).any():
            return None
        fault = grid_fault(time, every, held=held)
        if fault is not None:
            self.issues.append(Issue(self._name, fault, self._table.line(int(np.argmax(np.diff(time))) + 1)))
            return None
        grid = grid_of(time, every)
        self._first_rows = grid.first_rows
        return grid

    def numbers(
        self, cells: pd.Series, sensor: str, start: int, file_format: FileFormat, own: IntArray | None = None
    ) -> FloatArray:
        """Return a column's numbers, NaN if the cell is empty, 0 if it was reported already.

        Parameters
        ----------
        cells
            The cells.
        sensor
            Whose they are.
        start
            The row of the first one.
        file_format
            How the file is written.
        own
            The cells' rows, counted from `start`, if others lie between them.
        """
        own = np.arange(len(cells)) if own is None else own
        states = states_of(file_format, sensor)
        numbers, wrong = numbers_of(cells, file_format, states)
        first = [cells.iloc[row] for row in wrong[:SHOWN]]
        self._report_numbers(sensor, own[wrong[:SHOWN]].tolist(), first, len(wrong), start, states)
        return self._finite(numbers, sensor, start + own)

    def wide_numbers(
        self, values: FloatArray, columns: Sequence[int], sensors: Sequence[str], file_format: FileFormat
    ) -> None:
        """Read a file of very many columns line by line, as `numbers` does column by column."""
        # By column: the first rows that hold no number, and their cells; how many there are.
        wrong: dict[int, list[tuple[int, str]]] = {}
        counts = Counter[int]()
        for row, cells in enumerate(self._table.rows(columns) if isinstance(self._table, CsvFile) else ()):
            values[row], places = row_of_numbers(cells, file_format)
            counts.update(places)
            for i in places:
                if counts[i] <= SHOWN:
                    wrong.setdefault(i, []).append((row, cells[i]))
        blank_codes(values, file_format)
        for i, found in sorted(wrong.items()):
            rows, shown = zip(*found, strict=True)
            self._report_numbers(sensors[i], rows, shown, counts[i], 0)
        for i in map(int, np.flatnonzero(np.isinf(values).any(axis=0))):
            values[:, i] = self._finite(values[:, i], sensors[i], np.arange(len(values)))

    def _report_numbers(
        self,
        sensor: str,
        rows: Sequence[int],
        cells: Sequence[object],
        count: int,
        start: int,
        states: Mapping[str, float] | None = None,
    ) -> None:
        """Report rows whose cells hold no number: the first of so many, and what they hold."""
        advice = "correct the cell, name it in missing.values, or put the column under ignore"
        declare = f"declare it under [states], {advice}"
        texts = (state_fault(cell, states, declare) if states else number_fault(cell, advice) for cell in cells)
        self._report_first(sensor, texts, rows, count, start, f"number {sensor}")

    def _finite(self, numbers: FloatArray, sensor: str, rows: IntArray) -> FloatArray:
        """Return a column with 0 for infinite numbers, which are reported with their rows."""
        infinite = np.flatnonzero(np.isinf(numbers))
        if len(infinite) == 0:
            return numbers
        text = infinite_fault(numbers[infinite[0]])
        self._report(sensor, text, int(rows[infinite[0]]), f"infinite {sensor}", len(infinite))
        return np.where(np.isinf(numbers), 0.0, numbers)

    def labels(self, cells: pd.Series, start: int, columns: Columns, name: str) -> BoolArray:
        """Return where the label is one of the anomalous values; values that are not declared are reported."""
        anomalous = {canonical(value) for value in columns.anomalous}
        normal = {canonical(value) for value in columns.normal}
        codes, values = pd.factorize(cells.astype(object))
        # The last entry is for empty cells, whose code is -1.
        is_anomalous = np.array([*(canonical(value) in anomalous for value in values), False])
        is_unknown = np.array([*(canonical(value) not in anomalous | normal for value in values), True])
        wrong = np.flatnonzero(is_unknown[codes])
        found = ("an empty cell" if codes[row] < 0 else repr(str(values[codes[row]])) for row in wrong[:SHOWN])
        expected = f"expected one of the declared values, {columns.anomalous} or {columns.normal}"
        texts = (f"{expected}, found {cell}; declare it or correct it" for cell in found)
        self._report_first(name, texts, wrong[:SHOWN].tolist(), len(wrong), start, "label")
        return np.asarray(is_anomalous[codes], dtype=np.bool_)

    def times(self, clock: _Clock, file_format: FileFormat) -> FloatArray | None:
        """Return the times, or None if no format fits them all."""
        column, time = ", ".join(file_format.time), clock.seconds()
        if time is None:
            row, cell = clock.failed
            self._report(column, time_fault(cell, file_format.time_formats), row, "time")
            return None
        back = np.flatnonzero(np.diff(time) < 0) + 1
        if len(back):
            self._report(column, BACKWARDS, int(back[0]), "order", len(back))
        return time

    def place(self, row: int) -> Place:
        """Return where a row stands; one of a grid stands where the first row does that it is made of."""
        row = row if self._first_rows is None else int(self._first_rows[row])
        return Place(self._name, self._table.line(row), row)

    def _report(self, column: str, text: str, row: int, kind: str, count: int = 1) -> None:
        self.issues.append(self.place(row).issue(f"column {column!r}: {text}", kind, count))

    def _report_first(
        self, column: str, texts: Iterable[str], rows: Sequence[int], count: int, start: int, kind: str
    ) -> None:
        """Report the first rows of so many that are wrong alike; the last of them stands for all that follow."""
        for number, (text, row) in enumerate(zip(texts, rows, strict=True), start=1):
            self._report(column, text, start + row, kind, 1 if number < SHOWN else count - SHOWN + 1)


class _Clock:
    """The times of one file, by the chunk. Every format that has fitted so far is still possible."""

    def __init__(self, file_format: FileFormat) -> None:
        # Row and content of the first cell that is no time in the format that fitted longest.
        self.failed: tuple[int, object] = (0, "")
        self._parts: dict[str, list[FloatArray]] = {form: [] for form in file_format.time_formats}
        self._n_rows = 0

    def add(self, cells: pd.Series) -> None:
        """Take the times of the next rows."""
        for form in list(self._parts):
            seconds = time_in_seconds(cells, form)
            wrong = np.flatnonzero(~np.isfinite(seconds))
            if len(wrong):
                del self._parts[form]
                failed = self._n_rows + int(wrong[0])
                self.failed = max(self.failed, (failed, cells.iloc[wrong[0]]), key=lambda row_and_cell: row_and_cell[0])
            else:
                self._parts[form].append(seconds)
        self._n_rows += len(cells)

    def seconds(self) -> FloatArray | None:
        """Return the times [n_rows] in the first format that fits them all, or None."""
        parts = next(iter(self._parts.values()), None)
        return None if parts is None else np.concatenate([np.empty(0), *parts])
