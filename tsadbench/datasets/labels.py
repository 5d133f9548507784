"""Labels of a recording's rows: from a column, from a file of their own, or from a file of intervals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from tsadbench.base.dataset import Cause
from tsadbench.base.file_format import FileFormat
from tsadbench.datasets.card import Card, LabelFile, LabelIntervals, LabelValues, canonical, listed
from tsadbench.datasets.formats import BadFileError, Table, header_fault, numbers_of, read_csv, read_files
from tsadbench.datasets.times import time_fault, time_in_seconds
from tsadbench.utils.arrays import BoolArray, FloatArray, IntArray
from tsadbench.utils.grouping import grouped
from tsadbench.utils.issues import SHOWN, Issue
from tsadbench.utils.parameters import nearest


def labels_of_cells(cells: pd.Series, labels: LabelValues, table: Table, column: str) -> tuple[BoolArray, list[Issue]]:
    """Return where a label is one of the anomalous values [n_rows]; values that are not declared are reported."""
    codes, found = pd.factorize(cells.astype(object))
    values = [*map(canonical, found), "an empty cell"]  # of which the code is -1
    is_anomalous, is_normal = (np.isin(values, [*map(canonical, of)]) for of in (labels.anomalous, labels.normal))
    wrong = np.flatnonzero(~(is_anomalous | is_normal)[codes])
    expected = f"column {column!r}: expected one of the declared values, {labels.anomalous} or {labels.normal}"
    issues = [
        table.issue(row, f"{expected}, found {values[codes[row]]}", "label", count) for row, count in first_rows(wrong)
    ]
    return np.asarray(is_anomalous[codes], dtype=np.bool_), issues


def first_rows(rows: IntArray) -> list[tuple[int, int]]:
    """Return the first of many rows, each with how many it stands for."""
    return [(row, 1 if i < SHOWN - 1 else len(rows) - i) for i, row in enumerate(rows[:SHOWN].tolist())]


def label_format(card: Card, labels: LabelFile | LabelIntervals) -> FileFormat:
    """Return how files of labels are written: as the data files, but with the columns' names in the first line."""
    own = labels.model_dump(include={"header_line", "units_line", "remove_prefix"}, exclude_none=True)
    first = {"header_line": 1, "units_line": False, "remove_prefix": ""}
    return card.file_format(labels.model_copy(update=first | own))


def labels_of_file(card: Card, labels: LabelFile, name: str, path: Path, n_rows: int) -> tuple[BoolArray, list[Issue]]:
    """Return the labels of one recording from its own file, and what is wrong with them."""
    form = label_format(card, labels)
    declared = [str(value) for value in (*labels.anomalous, *labels.normal)]
    tables, issues = read_files({name: path}, lambda _: form, values=declared)
    if not issues:
        table = next(iter(tables[name].values()))
        columns = [str(column) for column in table.frame.columns]
        column = columns[0] if labels.column is None else labels.column
        fault = header_fault(columns, {column: "label column"})
        if labels.column is None and len(columns) != 1:
            fault = f"expected one column, found {columns[:10]}; name the labels' by labels.column"
        elif not fault and len(table.frame) != n_rows:
            fault = f"expected {n_rows} labels, one for each row, found {len(table.frame)}"
        if not fault:
            return labels_of_cells(table.frame.iloc[:, columns.index(column)], labels, table, column)
        issues = [Issue(name, fault, table.header_line)]
    return np.zeros(n_rows, dtype=np.bool_), issues


class Interval(NamedTuple):
    """An anomalous interval: its first and last row, counted from 0, or seconds; where it is declared."""

    start: float
    end: float
    line: int
    sensors: tuple[str, ...]
    recording: str = ""  # empty in a log book


class Intervals:
    """The anomalous intervals of all recordings, from a card's file; what is wrong with them is in `issues`."""

    def __init__(self, card: Card, labels: LabelIntervals, path: Path, sensors: Sequence[str]) -> None:
        self.issues: list[Issue] = []
        self._card, self._labels, self._sensors = card, labels, sensors
        self._log: list[Interval] = []  # those that name no recording: each counts in all that have rows in it
        self._of: dict[str, list[Interval]] = {}
        try:
            form = label_format(card, labels)
            self._read(read_csv(path, labels.file, form, texts=[labels.recording, "sensors"]), form)
        except BadFileError as error:
            self.issues += error.issues
        self._unused = set(self._log)

    def _report(self, line: int, text: str, kind: str, count: int = 1) -> None:
        self.issues.append(Issue(self._labels.file, text, line, kind, count))

    def _read(self, table: Table, form: FileFormat) -> None:
        labels, frame = self._labels, table.frame
        needed = dict.fromkeys((labels.start, labels.end), "column")
        is_log = labels.recording not in frame and labels.unit == "time" and "recording" not in labels.model_fields_set
        if not is_log:
            needed[labels.recording] = "column"
        if fault := header_fault(list(frame.columns), needed):
            raise BadFileError(Issue(labels.file, fault, table.header_line))
        starts, ends = (self._moments(table, column, form) for column in (labels.start, labels.end))
        texts = (frame[one].fillna("") if one in frame else [""] * len(frame) for one in (labels.recording, "sensors"))
        for row, (start, end, recording, blamed) in enumerate(zip(starts, ends, *texts, strict=True)):
            line = row + (table.first_line or 0)
            sensors = tuple(filter(None, map(str.strip, blamed.split(";"))))
            for sensor in sensors:
                if sensor not in self._sensors:
                    self._report(line, f"there is no sensor {sensor!r}{nearest(sensor, self._sensors)}", "sensor")
            if end < start:
                self._report(line, f"the end, {end:.17g}, lies before the start, {start:.17g}", "order")
            elif not np.isnan([start, end]).any():
                self._log.append(Interval(start, end, line, sensors, recording.strip()))
        if not is_log:
            self._of = {id_: sorted(own) for id_, own in grouped(self._log, lambda one: one.recording).items()}
            self._log = []
            self._check_apart()
        self.issues.sort(key=lambda issue: issue.line or 0)

    def _moments(self, table: Table, column: str, form: FileFormat) -> FloatArray:
        """Return rows or seconds, NaN for a cell that is wrong, which is reported."""
        cells, labels, columns = table.frame[column], self._labels, self._card.columns
        if labels.unit == "time" and columns.time:
            forms = listed(labels.time_format or columns.time_format)
            numbers = max((time_in_seconds(cells, one) for one in forms), key=lambda one: int(np.isfinite(one).sum()))
            faults = [time_fault(cell, forms) for cell in cells]
        else:
            numbers, _ = numbers_of(cells, form)
            if labels.unit == "rows":
                numbers = np.where((numbers >= 0) & (numbers == np.floor(numbers)), numbers, np.nan)
            what = "a row, counted from 0" if labels.unit == "rows" else "seconds"
            faults = [f"expected {what}, found {str(cell)[:40]!r}" for cell in cells]
        wrong = np.flatnonzero(~np.isfinite(numbers))
        self.issues += [table.issue(row, f"column {column!r}: {faults[row]}") for row in wrong.tolist()]
        return np.where(np.isfinite(numbers), numbers, np.nan)

    def _check_apart(self) -> None:
        """Report intervals that overlap: both ends belong to an interval, but moments in time may touch."""
        for id_, own in self._of.items():
            last = own[0]
            for one in own[1:]:
                if one.start < last.end or (one.start == last.end and self._labels.unit == "rows"):
                    first, second = sorted((last.line, one.line))
                    text = f"the interval of recording {id_!r} overlaps that of line {first}; merge or part them"
                    self._report(second, text, "overlap")
                last = max(last, one, key=lambda interval: interval.end)

    def check_known(self, ids: Iterable[str]) -> None:
        """Report intervals of recordings that are none of these."""
        known = list(dict.fromkeys(ids))
        for id_, own in self._of.items():
            if id_ not in known:
                text = f"there is no recording {id_!r}; there are {known[:10]}"
                self._report(own[0].line, text, "unknown", len(own))

    def note(self) -> str:
        """Return how many intervals of a log book contain no row; if that is all of them, they are reported."""
        if self._unused and len(self._unused) == len(self._log):
            text = f"none of its {len(self._log)} intervals contains a row of any recording; correct labels.time_format"
            self._report(self._log[0].line, text, "unused")
        file, count = self._labels.file, len(self._unused)
        return f"{count} of the {len(self._log)} intervals in {file} contain no row of any recording" if count else ""

    def label(self, id_: str, n_rows: int, time: FloatArray | None, step: float) -> tuple[BoolArray, tuple[Cause, ...]]:
        """Return which rows of a recording are anomalous, and which sensors the events show in.

        Each row stands for ``step`` seconds from its time on.
        """
        rows, causes = np.zeros(n_rows, dtype=np.bool_), list[Cause]()
        if time is not None and n_rows and self._labels.unit == "seconds":
            time = time - time[0]  # a sum with seconds since 1970 would lose digits
        for event in (*self._of.get(id_, ()), *self._log):
            if time is None or self._labels.unit == "rows":
                start, stop = int(event.start), int(event.end) + 1
            else:
                start = int(np.searchsorted(time + step, event.start, side="right" if step else "left"))
                stop = int(np.searchsorted(time, event.end, side="right"))
            if start < stop <= n_rows:
                self._unused.discard(event)
                rows[start:stop] = True
                causes += [Cause(start, stop, event.sensors)] if event.sensors else []
            elif event.recording:
                text = f"the interval lies outside of recording {id_!r}, which has {n_rows} rows"
                if time is not None and n_rows:
                    text += f" from {time[0]:.17g} to {time[-1]:.17g} s"
                self._report(event.line, text, "outside")
        return rows, tuple(causes)
