"""Labels as intervals: a file of starts and ends, by recording."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from tsadbench.base.dataset import Cause
from tsadbench.datasets.cards.files import File, find_file
from tsadbench.datasets.cards.labels import label_format
from tsadbench.datasets.cards.opening import open_tables
from tsadbench.datasets.cards.schema import Card
from tsadbench.datasets.cards.sections import LabelFiles
from tsadbench.datasets.reading.cells import as_number
from tsadbench.datasets.reading.csv import CsvFile
from tsadbench.datasets.reading.header import header_faults
from tsadbench.datasets.reading.text import MalformedError
from tsadbench.datasets.reading.times import time_fault, time_in_seconds
from tsadbench.utils.arrays import BoolArray, FloatArray
from tsadbench.utils.grouping import grouped
from tsadbench.utils.issues import Issue
from tsadbench.utils.parameters import nearest

_COLUMNS = ("recording", "start", "end")


@dataclass(frozen=True, slots=True)
class Interval:
    """An anomalous interval of a recording.

    Parameters
    ----------
    start, end
        Its first and last row, counted from 0; or seconds, both within it.
    sensors
        The sensors that the event shows in, if they are known.
    line
        Where it is declared.
    """

    start: float
    end: float
    sensors: tuple[str, ...]
    line: int


class Intervals:
    """The anomalous intervals of all recordings.

    Parameters
    ----------
    file
        The name of their file, for messages.
    labels
        The table of the card that names it.
    of
        The intervals by recording, by start.
    log
        Those of a log book, which name no recording: each counts in every recording that has rows in it.
    """

    def __init__(
        self, file: str, labels: LabelFiles, of: Mapping[str, Sequence[Interval]], log: Sequence[Interval] = ()
    ) -> None:
        self._file = file
        self._labels = labels
        self._of = of
        self._log = tuple(log)
        self._without_rows = set(log)

    @property
    def note(self) -> str:
        """What tables should say of a log book some of whose intervals contain no row; else empty."""
        if not self._without_rows:
            return ""
        count = len(self._without_rows)
        return f"{count} of the {len(self._log)} intervals in {self._file} contain no row of any recording"

    def unmatched(self) -> list[Issue]:
        """Return what is wrong with a log book, once all recordings have been labelled: no interval contains a row."""
        if not self._log or len(self._without_rows) < len(self._log):
            return []
        text = (
            f"none of its {len(self._log)} intervals contains a row of any recording; correct labels.time_format, or "
            "name the right file"
        )
        return [Issue(self._file, text, self._log[0].line)]

    def unknown(self, ids: Iterable[str]) -> list[Issue]:
        """Return what is wrong with intervals of recordings that are none of these."""
        known = list(dict.fromkeys(ids))
        return [
            Issue(
                self._file,
                f"there is no recording {name!r}; there are {known[:10]}",
                intervals[0].line,
                "unknown",
                len(intervals),
            )
            for name, intervals in self._of.items()
            if name not in known
        ]

    def label(
        self, id_: str, n_rows: int, time: FloatArray | None, *, step: float = 0.0
    ) -> tuple[BoolArray, tuple[Cause, ...], list[Issue]]:
        """Return which rows of a recording are anomalous."""
        rows, causes, issues = np.zeros(n_rows, dtype=np.bool_), list[Cause](), list[Issue]()
        if time is not None and n_rows and self._labels.origin == "recording":
            time = time - time[0]  # a sum with seconds since 1970 would lose digits
        for interval in self._of.get(id_, ()):
            start, stop = self._rows(interval, n_rows, time, step)
            if start >= stop or not 0 <= start < stop <= n_rows:
                issues.append(self._outside(id_, interval, n_rows, time))
                continue
            rows[start:stop] = True
            if interval.sensors:
                causes.append(Cause(start, stop, interval.sensors))
        for interval in self._log if time is not None else ():
            start, stop = self._rows(interval, n_rows, time, step)
            if start < stop:
                self._without_rows.discard(interval)
                rows[start:stop] = True
                causes += [Cause(start, stop, interval.sensors)] if interval.sensors else []
        return rows, tuple(causes), issues

    def _rows(self, interval: Interval, n_rows: int, time: FloatArray | None, step: float) -> tuple[int, int]:
        """Return an interval's first row, and the row after its last one."""
        if self._labels.unit == "rows":
            return int(interval.start), int(interval.end) + 1
        if time is None or n_rows == 0:
            return 0, 0
        first = np.searchsorted(time + step, interval.start, side="right" if step else "left")
        return int(first), int(np.searchsorted(time, interval.end, side="right"))

    def _outside(self, id_: str, interval: Interval, n_rows: int, time: FloatArray | None) -> Issue:
        if self._labels.unit == "rows":
            held = f"has rows 0 to {n_rows - 1}" if n_rows else "has no rows"
        elif time is None:
            held = "has no times; name columns.time or columns.period"
        else:
            held = f"has no row from {interval.start:.17g} to {interval.end:.17g} s"
            if n_rows:
                held += f": its rows run from {time[0]:.17g} to {time[-1]:.17g} s"
        return Issue(
            self._file, f"the interval lies outside of recording {id_!r}, which {held}", interval.line, "outside"
        )


def read_intervals(
    card: Card, labels: LabelFiles, folders: Sequence[Path], sensors: Sequence[str]
) -> tuple[Intervals | None, list[Issue]]:
    """Return the anomalous intervals of a card's file (None if it cannot be read), and what is wrong with them."""
    name = str(labels.intervals)
    folder = next((folder for folder in folders if (folder / name).exists()), folders[-1])
    try:
        file = File(find_file(folder, name, "labels.intervals"), name, name)
    except MalformedError as error:
        return None, [Issue(name, error.text)]
    file_format = label_format(card, labels)
    recording, *moments = _columns(labels)
    tables, issues = open_tables(file, file_format, lambda names: set(moments) <= set(names))
    table = tables.get("")
    if table is None:
        return None, issues
    if not isinstance(table, CsvFile):
        return None, [Issue(name, "expected a CSV file; write the intervals as one")]
    in_times = labels.unit == "time" and labels.origin == "time"
    is_log = in_times and labels.recording is None and recording not in table.header
    needed = moments if is_log else [recording, *moments]
    faults = list(header_faults(table.header, dict.fromkeys(needed, "column"), ["sensors"]))
    if not is_log and recording not in table.header and labels.recording is None:
        faults.append('without a column that names recordings, start and end must be times: set unit = "time"')
    if faults:
        return None, [Issue(name, fault, table.header_line) for fault in faults]
    return _Declared(card, labels, name, table, sensors).read(needed)


def _columns(labels: LabelFiles) -> tuple[str, str, str]:
    """Return what the file calls the columns with recordings, starts and ends."""
    recording, start, end = _COLUMNS
    return labels.recording or recording, labels.start or start, labels.end or end


class _Declared:
    """Reads the rows of a file of intervals, and collects what is wrong with them."""

    def __init__(self, card: Card, labels: LabelFiles, name: str, table: CsvFile, sensors: Sequence[str]) -> None:
        self._card, self._labels, self._name, self._table = card, labels, name, table
        self._sensors = tuple(sensors)
        self._issues: list[Issue] = []

    def read(self, columns: Sequence[str]) -> tuple[Intervals, list[Issue]]:
        """Return the intervals, from columns with recordings, starts and ends, or with starts and ends alone."""
        named = [*columns, *(["sensors"] if "sensors" in self._table.header else [])]
        is_log = len(columns) == 2
        rows = [
            [""] * is_log + [cell.strip().strip('"').strip() for cell in cells]
            for cells in self._table.rows([self._table.header.index(column) for column in named])
        ]
        starts, ends = (
            self._numbers(column, [row[place] for row in rows]) for place, column in enumerate(columns[-2:], 1)
        )
        found: list[tuple[str, Interval]] = []
        for place, (row, start, end) in enumerate(zip(rows, starts, ends, strict=True)):
            if np.isnan(start) or np.isnan(end):
                continue
            if end < start:
                self._report(place, f"the end, {row[2]}, lies before the start, {row[1]}; correct either", "order")
                continue
            blamed = tuple(filter(None, map(str.strip, row[3].split(";")))) if len(row) > 3 else ()
            for sensor in blamed:
                if sensor not in self._sensors:
                    self._report(place, f"there is no sensor {sensor!r}{nearest(sensor, self._sensors)}", "sensor")
            found.append((row[0], Interval(start, end, blamed, self._table.line(place))))
        if is_log:
            log = [interval for _, interval in found]
            return Intervals(self._name, self._labels, {}, log), sorted(self._issues, key=lambda one: one.line or 0)
        of: dict[str, Sequence[Interval]] = {}
        for id_, pairs in grouped(found, lambda pair: pair[0]).items():
            of[id_] = sorted((interval for _, interval in pairs), key=lambda interval: (interval.start, interval.end))
            self._check_apart(id_, of[id_])
        return Intervals(self._name, self._labels, of), sorted(self._issues, key=lambda issue: issue.line or 0)

    def _report(self, place: int, text: str, kind: str) -> None:
        self._issues.append(Issue(self._name, text, self._table.line(place), kind))

    def _numbers(self, column: str, cells: Sequence[str]) -> FloatArray:
        """Return rows or seconds, NaN for a cell that is wrong, which is reported."""
        labels, numbers = self._labels, np.full(len(cells), np.nan)
        if labels.unit == "rows":
            for place, cell in enumerate(cells):
                if cell.isascii() and cell.isdigit() and len(cell) < 16:
                    numbers[place] = int(cell)
                else:
                    text = f"column {column!r}: expected a row, counted from 0, found {cell[:40]!r}"
                    self._report(place, f"{text}; correct it", f"row {column}")
            return numbers
        if labels.origin == "recording" or not self._card.times:
            for place, cell in enumerate(cells):
                number = as_number(cell, label_format(self._card, labels).decimal)
                if number is None or not np.isfinite(number):
                    text = f"column {column!r}: expected seconds, found {cell[:40]!r}; correct it"
                    self._report(place, text, f"seconds {column}")
                else:
                    numbers[place] = number
            return numbers
        forms = self._labels.time_formats or self._card.columns.time_formats
        read = [time_in_seconds(pd.Series(list(cells), dtype="object"), form) for form in forms]
        numbers = max(read, key=lambda seconds: int(np.count_nonzero(np.isfinite(seconds))))
        for place in map(int, np.flatnonzero(~np.isfinite(numbers))):
            self._report(place, f"column {column!r}: {time_fault(cells[place], forms)}", f"time {column}")
        return np.where(np.isfinite(numbers), numbers, np.nan)

    def _check_apart(self, id_: str, intervals: Sequence[Interval]) -> None:
        """Report intervals that overlap: both ends belong to an interval, but moments in time may touch."""
        touching = self._labels.unit == "time"
        last: Interval | None = None
        for interval in intervals:
            if last is not None and (interval.start < last.end or (interval.start == last.end and not touching)):
                lines = sorted((last.line, interval.line))
                text = f"the interval of recording {id_!r} overlaps that of line {lines[0]}; merge or part them"
                self._issues.append(Issue(self._name, text, lines[1], "overlap"))
            last = interval if last is None or interval.end > last.end else last
