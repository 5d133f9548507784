"""Rows of sensor values from lines of text as they come: the same for a whole file as for one that is still growing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tsadbench.base.file_format import FileFormat
from tsadbench.datasets.cards.csv import SEARCHED_LINES, split
from tsadbench.errors import DataError
from tsadbench.serving.clock import Clock
from tsadbench.serving.filling import Filling
from tsadbench.serving.header import Header, read_header
from tsadbench.serving.row_error import Flaw
from tsadbench.utils.arrays import FloatArray

# What pandas, by which data sets are read, takes for a missing value.
MISSING = frozenset(
    (
        "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA",
        "NULL", "NaN", "None", "n/a", "nan", "null",
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows as a detector takes them.

    Parameters
    ----------
    values
        [n_rows, n_sensors], finite, in the order of the model's sensors.
    time
        [n_rows] seconds since 1970, or since the first row where only a period is known; None without either.
    """

    values: FloatArray
    time: FloatArray | None

    def __len__(self) -> int:
        return len(self.values)


class RowReader:
    """Reads one recording, line by line.

    Parameters
    ----------
    name
        What messages call it, for instance the file's name.
    layout
        How it is written.
    sensors
        The model's.
    """

    def __init__(self, name: str, layout: FileFormat, sensors: Sequence[str]) -> None:
        self.header: Header | None = None
        # What was wrong with the first line that was not as it must be; nothing after it is read.
        self.fault: DataError | None = None
        self._unit = "line"
        self._name = name
        self._layout = layout
        self._sensors = tuple(sensors)
        self._first_lines: list[str] = []
        self._n_lines = 0
        self._n_rows = 0
        self._blank: int | None = None
        self._filling = Filling(layout, self._sensors)
        self._clock = Clock(layout)
        self._missing = MISSING | set(layout.missing)
        # Numbers that stand for a missing value, however they are written: -999, -999.0.
        self._missing_numbers = [number for number in map(_as_number, layout.missing) if number is not None]

    def read(self, lines: Sequence[str]) -> Rows:
        """Return the rows that the next lines hold, up to the first line that is not as it must be (`fault`).

        Raises
        ------
        DataError
            If the header lacks a sensor.
        """
        rest = lines if self.header is not None else self._take_header(lines)
        if self.header is None:
            return self._rows([], [])
        numbers: list[list[float]] = []
        times: list[str] = []
        try:
            for line in rest:
                self._n_lines += 1
                cells = self._cells(line, self.header)
                if cells is not None:
                    numbers.append(self._numbers(cells, self.header))
                    times.append(" ".join(cells[place].strip() for place in self.header.time))
        except DataError as error:
            self.fault = error
        return self._rows(numbers, times)

    def end(self) -> None:
        """Raise a DataError where something was wrong, or the input has ended before its header."""
        if self.header is None:
            self._take_header([], ended=True)
        if self.fault is not None:
            raise self.fault

    def take(self, header: Header, values: FloatArray, time: FloatArray | None) -> Rows:
        """Return rows that are numbers already, NaN where a value is missing; ``fault`` as `read`."""
        self.header, self._unit = header, "row"
        return self._sound(values, [], time)

    def _take_header(self, lines: Sequence[str], *, ended: bool = False) -> Sequence[str]:
        """Look for the header in the first lines; return the lines after it."""
        self._first_lines += lines
        last = ended or len(self._first_lines) >= self._needed
        found = read_header(self._first_lines[: self._needed], self._layout, self._sensors, last=last)
        if found is None and not ended:
            return []
        found = usable(found, self._name)
        self.header, self._n_lines = found, found.line
        rest, self._first_lines = self._first_lines[found.line :], []
        return rest

    @property
    def _needed(self) -> int:
        wanted = self._layout.header_line
        return SEARCHED_LINES if wanted == "search" else wanted

    def _cells(self, line: str, header: Header) -> list[str] | None:
        """Return a line's cells; None for a line without any, after which no other may follow."""
        separator = self._layout.separator
        if not line.strip(f"{separator} \t"):
            self._blank = self._blank or self._n_lines
            return None
        if self._blank is not None:
            raise DataError(f"{self._name}, line {self._blank}: the line is empty, but others follow; remove it")
        cells = line.split(separator) if '"' not in line else split(line, separator)
        if len(cells) != header.n_columns:
            raise self._wrong(
                f"expected {header.n_columns} cells separated by {separator!r}, found {len(cells)}; correct the line"
            )
        return cells

    def _numbers(self, cells: Sequence[str], header: Header) -> list[float]:
        texts = [cells[place] for place in header.sensors]
        try:
            numbers = [float(text) for text in texts]
        except ValueError:
            pass
        else:
            # Python reads 1_000 as a thousand, and 1.000 for whom the comma is the decimal mark is none.
            if self._layout.decimal == "." and not any("_" in text for text in texts):
                return numbers
        return [self._number(text.strip(), sensor) for text, sensor in zip(texts, self._sensors, strict=True)]

    def _number(self, cell: str, sensor: str) -> float:
        if cell in self._missing:
            return math.nan
        text = cell
        if self._layout.decimal != ".":
            text = "" if "." in cell else cell.replace(self._layout.decimal, ".")
        number = _as_number(text)
        if number is None:
            raise self._wrong(f"column {sensor!r}: expected a number, found {cell[:40]!r}; correct the cell")
        return number

    def _rows(self, numbers: Sequence[Sequence[float]], times: Sequence[str]) -> Rows:
        values = np.array(numbers, dtype=np.float64).reshape(len(numbers), len(self._sensors))
        if self._missing_numbers:
            values[np.isin(values, self._missing_numbers)] = np.nan
        return self._sound(values, times if self.header is not None and self.header.time else [], None)

    def _sound(self, values: FloatArray, times: Sequence[str], time: FloatArray | None) -> Rows:
        """Return the rows up to the first that is not as it must be."""
        flaw = self._infinite(values)
        values = values[: None if flaw is None else flaw.row]
        gap = self._filling.fill(values)
        flaw = gap or flaw
        values = values[: None if gap is None else gap.row]
        if times:
            time, wrong = self._clock.seconds(times[: len(values)])
            flaw = wrong or flaw
            values = values[: None if wrong is None else wrong.row]
        first, self._n_rows = self._n_rows, self._n_rows + len(values)
        if flaw is not None:
            self.fault = DataError(f"{self._name}, {self._place(first + flaw.row)}: {flaw.text}")
        if time is None and self._layout.period is not None:
            time = np.arange(first, self._n_rows, dtype=np.float64) * self._layout.period
        return Rows(values, None if time is None else time[: len(values)])

    def _infinite(self, values: FloatArray) -> Flaw | None:
        found = np.argwhere(np.isinf(values))
        if len(found) == 0:
            return None
        row, sensor = map(int, found[0])
        text = f"column {self._sensors[sensor]!r}: expected a finite number, found {values[row, sensor]}"
        return Flaw(row, f"{text}; correct the cell")

    def _place(self, row: int) -> str:
        """Return where a row stands, for messages; every line between header and end is a row."""
        return f"row {row}" if self._unit == "row" or self.header is None else f"line {self.header.line + 1 + row}"

    def _wrong(self, text: str) -> DataError:
        return DataError(f"{self._name}, line {self._n_lines}: {text}")


def usable(header: Header | None, name: str) -> Header:
    """Return a header that does; raise a DataError where there is none, or one that does not."""
    if header is None:
        raise DataError(f"{name}: it is empty; expected a line with the sensors' names, and rows")
    if header.faults:
        raise DataError("\n  ".join([f"{name}: {header.faults[0]}", *header.faults[1:]]))
    return header


def _as_number(text: str) -> float | None:
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None
