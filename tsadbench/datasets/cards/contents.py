"""What a file holds: its rows as numbers, and everything that is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pandas as pd

from tsadbench.datasets.cards.columns import places_of
from tsadbench.datasets.cards.csv import Csv
from tsadbench.datasets.cards.files import File
from tsadbench.datasets.cards.parquet import Parquet
from tsadbench.datasets.cards.schema import Columns, Missing, canonical
from tsadbench.utils.arrays import BoolArray, FloatArray, IntArray
from tsadbench.utils.issues import SHOWN, Issues

Open: TypeAlias = Csv | Parquet

_OTHER_MARK = re.compile(r"[+-]?\d+[.,]\d+")
_UNITS = {"seconds": 1.0, "milliseconds": 1e-3}


@dataclass(frozen=True, slots=True, eq=False)
class Contents:
    """The rows of one file.

    Parameters
    ----------
    values
        [n_rows, n_sensors], finite where nothing was wrong.
    time
        [n_rows] seconds since 1970, or since the first row where a period is given; None without either.
    labels
        [n_rows], True where anomalous; None where the file has no labels.
    filled
        How many values were missing and are filled.
    """

    values: FloatArray
    time: FloatArray | None
    labels: BoolArray | None
    filled: int = 0


@dataclass(frozen=True, slots=True)
class _Report:
    """Issues of one file, told by row."""

    file: File
    opened: Open
    issues: Issues

    def note(self, column: str, text: str, row: int, kind: str | None = None, count: int = 1) -> None:
        """Note what is wrong with a column at a row; a file without lines is told the row instead."""
        where = "" if isinstance(self.opened, Csv) else f" (row {row}, counted from 0)"
        self.issues.add(self.file.name, f"column {column!r}: {text}{where}", self.opened.line(row), kind, count)

    def note_all(self, column: str, texts: Sequence[str], rows: Sequence[int], kind: str, count: int) -> None:
        """Note the first of many alike; ``count`` says how many there are in all."""
        for number, (text, row) in enumerate(zip(texts, rows, strict=True), start=1):
            self.note(column, text, row, kind, 1 if number < len(rows) else count - number + 1)


def read(
    file: File,
    opened: Open,
    sensors: Sequence[str],
    columns: Columns,
    missing: Missing,
    issues: Issues,
) -> Contents:
    """Read a file whose header is as it must be, and note everything that is wrong with its rows.

    Beside the values it holds one chunk of rows in another form at a time.

    Parameters
    ----------
    file, opened
        The file, and how it is read.
    sensors
        The data set's sensors.
    columns, missing
        What the card says of columns and of missing values.
    issues
        Where to note what is wrong.
    """
    report = _Report(file, opened, issues)
    places = places_of(opened.header, sensors, columns)
    n_rows = opened.n_rows
    values = np.empty((n_rows, len(sensors)))
    labels = None if places.label is None else np.zeros(n_rows, dtype=np.bool_)
    clock = _Clock(columns) if places.time else None
    start = 0
    for rows in opened.chunks(places.all, missing.values):
        stop = start + len(rows)
        if stop > n_rows:
            break
        for i, place in enumerate(places.sensors):
            values[start:stop, i] = _numbers(rows[place], sensors[i], start, report)
        if labels is not None and places.label is not None:
            labels[start:stop] = _labels(rows[places.label], start, columns, report)
        if clock is not None:
            clock.add([rows[place] for place in places.time])
        start = stop
    if start != n_rows:
        text = (
            f"expected {n_rows} rows, one a line, found another number; has a quoted cell a line break in it? remove it"
        )
        issues.add(file.name, text)
        values[start:] = 0.0
    filled = _settle(values, sensors, missing, report)
    time: FloatArray | None = None
    if clock is not None:
        time = clock.seconds(report)
    elif columns.period is not None:
        time = np.arange(n_rows, dtype=np.float64) * columns.period
    return Contents(values, time, labels, filled)


def _numbers(cells: pd.Series, sensor: str, start: int, report: _Report) -> FloatArray:
    """Return a column's numbers, NaN where the cell is empty; cells that are none, or infinite, are noted."""
    if pd.api.types.is_numeric_dtype(cells.dtype) and not pd.api.types.is_bool_dtype(cells.dtype):
        numbers = cells.to_numpy(np.float64, na_value=np.nan)
    else:
        cells = cells.astype("object")
        texts = cells.map(lambda cell: None if isinstance(cell, bool) else cell)
        numbers = pd.to_numeric(texts, errors="coerce").to_numpy(np.float64, na_value=np.nan, copy=True)
        wrong = np.flatnonzero(np.isnan(numbers) & cells.notna().to_numpy())
        shown = wrong[:SHOWN].tolist()
        faults = [_number_fault(str(cells.iloc[row]).strip()) for row in shown]
        report.note_all(sensor, faults, [start + row for row in shown], f"number {sensor}", len(wrong))
        numbers[wrong] = 0.0  # noted already: not missing as well
    infinite = np.flatnonzero(np.isinf(numbers))
    if len(infinite):
        text = f"expected a finite number, found {numbers[infinite[0]]}; correct the cell"
        report.note(sensor, text, start + int(infinite[0]), f"infinite {sensor}", len(infinite))
        numbers = np.where(np.isinf(numbers), 0.0, numbers)
    return numbers


def _number_fault(cell: str) -> str:
    advice = "correct the cell, name it in missing.values, or put the column under ignore"
    if _OTHER_MARK.fullmatch(cell):
        advice = "another decimal mark? then set decimal"
    return f"expected a number, found {cell[:40]!r}; {advice}"


def _labels(cells: pd.Series, start: int, columns: Columns, report: _Report) -> BoolArray:
    """Return where the label is one of the anomalous values; other values than the declared ones are noted."""
    anomalous = {canonical(value) for value in columns.anomalous}
    normal = {canonical(value) for value in columns.normal}
    codes, values = pd.factorize(cells.astype("object"))
    # The last place is that of empty cells, whose code is -1.
    is_anomalous = np.array([*(canonical(value) in anomalous for value in values), False])
    is_unknown = np.array([*(canonical(value) not in anomalous | normal for value in values), True])
    wrong = np.flatnonzero(is_unknown[codes])
    shown = wrong[:SHOWN].tolist()
    found = ["an empty cell" if codes[row] < 0 else repr(str(values[codes[row]])) for row in shown]
    declared = f"{columns.anomalous} or {columns.normal}"
    faults = [
        f"expected one of the declared values, {declared}, found {one}; declare it or correct it" for one in found
    ]
    report.note_all(columns.label, faults, [start + row for row in shown], "label", len(wrong))
    return np.asarray(is_anomalous[codes], dtype=np.bool_)


class _Clock:
    """The times of one file, by the chunk; every format that has fitted so far is still in the running."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._parts: dict[str, list[FloatArray]] = {form: [] for form in columns.time_formats}
        # Row and text of the first cell that is no time in the format that lasted longest.
        self._failed = (0, "")
        self._n_rows = 0

    def add(self, columns: Sequence[pd.Series]) -> None:
        """Take the times of the next rows; the texts of several columns are joined by spaces."""
        texts = columns[0]
        for more in columns[1:]:
            texts = texts.astype("str").str.strip() + " " + more.astype("str").str.strip()
        for form in list(self._parts):
            seconds = time_in_seconds(texts, form)
            wrong = np.flatnonzero(~np.isfinite(seconds))
            if len(wrong):
                del self._parts[form]
                self._failed = max(self._failed, (self._n_rows + int(wrong[0]), str(texts.iloc[wrong[0]])))
            else:
                self._parts[form].append(seconds)
        self._n_rows += len(texts)

    def seconds(self, report: _Report) -> FloatArray | None:
        """Return the times [n_rows], or None, and the reason in the report, where no format fits them all."""
        column = ", ".join(self._columns.times)
        if not self._parts:
            row, text = self._failed
            formats = " or ".join(self._columns.time_formats)
            report.note(column, f"expected a time written as {formats}, found {text!r}; set columns.time_format", row)
            return None
        parts = next(iter(self._parts.values()))
        time = np.concatenate(parts) if parts else np.empty(0)
        back = np.flatnonzero(np.diff(time) < 0) + 1
        if len(back):
            text = "the time lies before that of the row above; sort the rows by time"
            report.note(column, text, int(back[0]), count=len(back))
        return time


def time_in_seconds(cells: pd.Series, form: str) -> FloatArray:
    """Return times in seconds since 1970, UTC where no zone is named; NaN for what is no time in this format.

    Parameters
    ----------
    cells
        Texts, numbers or times.
    form
        "ISO8601", "seconds", "milliseconds" or a format of `datetime.strptime`.
    """
    if form in _UNITS and not pd.api.types.is_datetime64_any_dtype(cells.dtype):
        numbers = pd.to_numeric(cells, errors="coerce").to_numpy(np.float64, na_value=np.nan)
        return numbers * _UNITS[form]
    if pd.api.types.is_datetime64_any_dtype(cells.dtype):
        times = pd.to_datetime(cells, utc=True)
    else:
        times = pd.to_datetime(cells.astype("str").str.strip(), format=form, errors="coerce", utc=True)
    since_1970 = (times - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(seconds=1)
    return np.asarray(since_1970.to_numpy(np.float64, na_value=np.nan), dtype=np.float64)


def _settle(values: FloatArray, sensors: Sequence[str], missing: Missing, report: _Report) -> int:
    """Fill missing values as the card says, in place, and note what it does not allow; return how many were filled."""
    filled = 0
    for i, sensor in enumerate(sensors):
        gaps = np.isnan(values[:, i])
        count = int(np.count_nonzero(gaps))
        if count == 0:
            continue
        # Rows since the sensor's last value; where there is none yet, since the first row.
        last_known = np.maximum.accumulate(np.where(gaps, 0, np.arange(len(gaps))))
        since = np.arange(len(gaps)) - last_known
        fault = _missing_fault(gaps, since, missing)
        if fault is None:
            values[:, i] = values[last_known, i]
            filled += count
        else:
            text, row = fault
            report.note(sensor, text, row, f"missing {sensor}", count)
    return filled


def _missing_fault(gaps: BoolArray, since: IntArray, missing: Missing) -> tuple[str, int] | None:
    """Return why missing values may not be filled, and at which row, or None."""
    first = int(np.argmax(gaps))
    if gaps.all():
        return "it has no value at all; put the column under ignore", 0
    if missing.policy == "error":
        advice = 'fill it in, put the column under ignore, or set missing.policy = "forward-fill"'
        return f"a value is missing; {advice}", first
    if gaps[0]:
        return "the first value is missing, and nothing lies before it to be carried forward; cut such rows off", 0
    if missing.at_most is not None and since.max() > missing.at_most:
        row = int(np.argmax(since > missing.at_most))
        return (
            f"more than {missing.at_most} values in a row are missing (missing.at_most); cut the recording there",
            row,
        )
    return None
