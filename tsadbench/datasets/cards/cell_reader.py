"""Cells of a recording as numbers and labels, and everything that is wrong with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from tsadbench.base.file_format import FileFormat
from tsadbench.datasets.cards.contents import Place
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
from tsadbench.datasets.reading.long import Changes
from tsadbench.datasets.reading.states import state_fault, states_of
from tsadbench.utils.arrays import BoolArray, FloatArray, IntArray
from tsadbench.utils.issues import SHOWN, Issue


class CellReader:
    """Reads the cells of one recording, and collects what is wrong with them.

    Parameters
    ----------
    place
        Where a row stands.
    """

    def __init__(self, place: Callable[[int], Place]) -> None:
        self.issues: list[Issue] = []
        self._place = place

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
        column = rows.iloc[:, 1]
        # Numbers stay numbers: as texts they would have a decimal point, whatever the file's mark is.
        numeric = pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_bool_dtype(column.dtype)
        # Once: pandas takes long to pick from texts.
        cells = column.to_numpy() if numeric else column.astype(object).to_numpy()
        for sensor, own in changes.rows_of(rows.iloc[:, 0], start):
            numbers = self.numbers(pd.Series(cells[own]), sensor, start, file_format, own)
            changes.add(start + own, numbers)

    def numbers(
        self, cells: pd.Series, sensor: str, start: int, file_format: FileFormat, own: IntArray | None = None
    ) -> FloatArray:
        """Return a column's numbers, NaN if the cell is empty, 0 if it was reported already."""
        own = np.arange(len(cells)) if own is None else own
        states = states_of(file_format, sensor)
        numbers, wrong = numbers_of(cells, file_format, states)
        first = [cells.iloc[row] for row in wrong[:SHOWN]]
        self._report_numbers(sensor, own[wrong[:SHOWN]].tolist(), first, len(wrong), start, states)
        return self._finite(numbers, sensor, start + own)

    def wide_numbers(
        self,
        values: FloatArray,
        table: CsvFile,
        columns: Sequence[int],
        sensors: Sequence[str],
        file_format: FileFormat,
    ) -> None:
        """Read a file of very many columns line by line, as `numbers` does column by column."""
        # By column: the first rows that hold no number, and their cells; how many there are.
        wrong: dict[int, list[tuple[int, str]]] = {}
        counts = Counter[int]()
        for row, cells in enumerate(table.rows(columns)):
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
        self.report(sensor, text, int(rows[infinite[0]]), f"infinite {sensor}", len(infinite))
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

    def report(self, column: str, text: str, row: int, kind: str, count: int = 1) -> None:
        """Report what is wrong with a row of a column."""
        self.issues.append(self._place(row).issue(f"column {column!r}: {text}", kind, count))

    def _report_first(
        self, column: str, texts: Iterable[str], rows: Sequence[int], count: int, start: int, kind: str
    ) -> None:
        """Report the first rows of so many that are wrong alike; the last of them stands for all that follow."""
        for number, (text, row) in enumerate(zip(texts, rows, strict=True), start=1):
            self.report(column, text, start + row, kind, 1 if number < SHOWN else count - SHOWN + 1)
