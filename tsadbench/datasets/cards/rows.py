"""Read the rows of one recording from its files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from tsadbench.base.file_format import FileFormat
from tsadbench.datasets.cards.cell_reader import CellReader
from tsadbench.datasets.cards.contents import Contents, Place
from tsadbench.datasets.cards.sections import Columns
from tsadbench.datasets.reading.csv import CsvFile
from tsadbench.datasets.reading.long import Changes, LongTable
from tsadbench.datasets.reading.resampling import Grid, grid_fault, grid_of
from tsadbench.datasets.reading.table import JoinedTable, Table
from tsadbench.datasets.reading.times import BACKWARDS, joined, time_fault, time_in_seconds
from tsadbench.utils.arrays import BoolArray, FloatArray
from tsadbench.utils.issues import Issue


class RowReader:
    """Reads the rows of one recording; in addition to the values, one chunk of rows is in memory at a time.

    Parameters
    ----------
    names, tables
        What messages call the tables that hold the rows, in order, and the tables; their headers are valid.
    file_format
        How the files are written.
    columns
        What the card says of columns.
    """

    def __init__(
        self, names: Sequence[str], tables: Sequence[Table], file_format: FileFormat, columns: Columns
    ) -> None:
        self._names = names
        self._long = tables[0] if isinstance(tables[0], LongTable) else None
        # As they lie in the files: of long ones, the rows that each hold one value.
        in_files = [table.table if isinstance(table, LongTable) else table for table in tables]
        self._table = in_files[0] if len(in_files) == 1 else JoinedTable(tuple(in_files))
        self._format = file_format
        self._columns = columns
        self._cells = CellReader(self._place)

    @property
    def n_rows(self) -> int:
        """How many rows the files have."""
        return self._table.n_rows

    def labels(self, column: int) -> tuple[BoolArray, list[Issue]]:
        """Return one column's labels [n_rows], True where anomalous, and what is wrong with them.

        An OSError or a ValueError if the file cannot be read.
        """
        labels, start = np.zeros(self.n_rows, dtype=np.bool_), 0
        name = self._table.header[column] or "label"
        for rows in self._table.chunks([column]):
            stop = start + len(rows)
            labels[start:stop] = self._cells.labels(rows[column], start, self._columns, name)
            start = stop
        return labels, self._cells.issues

    def contents(self, sensors: Sequence[str], labels: BoolArray | None = None) -> Contents:
        """Return the rows, laid on a grid if the format says so.

        Parameters
        ----------
        sensors
            The data set's sensors.
        labels
            [n_rows], if a file of their own has them.

        Raises
        ------
        OSError, ValueError
            If a file cannot be read.
        """
        place = {column: number for number, column in enumerate(self._table.header)}
        label = None if self._columns.label is None else place.get(self._columns.label)
        times = [place[column] for column in self._format.time]
        changes = None if self._long is None else Changes(self.n_rows, sensors)
        values = np.empty((self.n_rows if changes is None else 0, len(sensors)))
        if label is not None:
            labels = np.zeros(self.n_rows, dtype=np.bool_)
        clock = _Clock(self._format) if times else None
        long = self._long
        asked = [place[sensor] for sensor in sensors] if long is None else [long.name, long.value]
        by_line = isinstance(self._table, CsvFile) and self._table.is_wide and not self._format.states
        if isinstance(self._table, CsvFile) and by_line:
            self._cells.wide_numbers(values, self._table, asked, sensors, self._format)
        read = [*([] if by_line else asked), *times, *([] if label is None else [label])]
        start = 0 if read else self.n_rows
        for rows in self._table.chunks(read) if read else ():
            stop = start + len(rows)
            if stop > self.n_rows:
                break
            if changes is not None:
                self._cells.changes(changes, rows[asked], start, self._format)
            elif not by_line:
                self._cells.rows(values[start:stop], rows[asked], sensors, start, self._format)
            if label is not None and labels is not None:
                labels[start:stop] = self._cells.labels(rows[label], start, self._columns, str(self._columns.label))
            if clock is not None:
                clock.add(joined([rows[column] for column in times]))
            start = stop
        if start != self.n_rows:
            text = "one a line, found another number; has a quoted cell a line break? remove it"
            self._cells.issues.append(Issue(self._names[0], f"expected {self.n_rows} rows, {text}"))
            values[start:] = 0.0
        contents = Contents(values, self._times(clock), labels, self._place, ())
        laid = self._laid_on_grid(contents, changes)
        return replace(laid, issues=tuple(self._cells.issues))

    def _place(self, row: int) -> Place:
        """Return where a row of the files stands."""
        part, own = self._table.part(row) if isinstance(self._table, JoinedTable) else (0, row)
        return Place(self._names[part], self._table.line(row), own)

    def _times(self, clock: _Clock | None) -> FloatArray | None:
        """Return the times, or None if there are none, or no format fits them all."""
        if clock is None:
            period = self._format.period
            return None if period is None else np.arange(self.n_rows, dtype=np.float64) * period
        column, time = ", ".join(self._format.time), clock.seconds()
        if time is None:
            row, cell = clock.failed
            self._cells.report(column, time_fault(cell, self._format.time_formats), row, "time")
            return None
        back = np.flatnonzero(np.diff(time) < 0) + 1
        if len(back):
            advice = ", or correct join or the order of files" if isinstance(self._table, JoinedTable) else ""
            self._cells.report(column, BACKWARDS + advice, int(back[0]), "order", len(back))
        return time

    def _laid_on_grid(self, contents: Contents, changes: Changes | None) -> Contents:
        """Return the rows on a regular grid, if the format says so and the times allow it."""
        grid = self._grid(contents.time, held=changes is not None and self._format.resample_by == "last")
        if grid is None:
            if changes is None:
                return contents
            return replace(contents, values=np.zeros((self.n_rows and 1, contents.values.shape[1])), labels=None)
        by, first_rows = self._format.resample_by, grid.first_rows
        return replace(
            contents,
            values=grid.values(contents.values, by) if changes is None else changes.laid_on(grid, by),
            labels=None if contents.labels is None else grid.labels(contents.labels),
            time=grid.time,
            place=lambda row: self._place(int(first_rows[row])),  # of the first row that it is made of
        )

    def _grid(self, time: FloatArray | None, *, held: bool) -> Grid | None:
        """Return the grid that the rows are to be laid on, None without resampling or if the times are wrong."""
        every = self._format.resample_every
        if every is None or time is None or len(time) == 0 or (np.diff(time) < 0).any():
            return None
        fault = grid_fault(time, every, held=held)
        if fault is not None:
            self._cells.issues.append(self._place(int(np.argmax(np.diff(time))) + 1).issue(fault))
            return None
        return grid_of(time, every)


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
