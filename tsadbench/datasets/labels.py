"""Labels of a recording's rows: values of a column or of a file, or a file of intervals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from tsadbench.base.dataset import Cause
from tsadbench.base.file_format import FileFormat
from tsadbench.datasets.card import Card, LabelFile, LabelIntervals, LabelValues, canonical
from tsadbench.datasets.formats import Table, header_fault, numbers_of, read_files, row_issues
from tsadbench.datasets.times import time_fault, time_in_seconds
from tsadbench.utils.arrays import BoolArray, FloatArray
from tsadbench.utils.issues import SHOWN, Issue
from tsadbench.utils.parameters import nearest


def labels_of_cells(cells: pd.Series, labels: LabelValues, places: pd.MultiIndex, issues: list[Issue]) -> BoolArray:
    """Return where a label is one of the anomalous values [n_rows]; values that are not declared are reported."""
    codes, found = pd.factorize(cells.astype(object), use_na_sentinel=False)
    values = ["" if pd.isna(value) else canonical(value) for value in found]
    is_anomalous, is_normal = (np.isin(values, [*map(canonical, of)]) for of in (labels.anomalous, labels.normal))
    wrong = np.flatnonzero(~(is_anomalous | is_normal)[codes])
    expected = f"column {cells.name!r}: expected one of the labels {labels.anomalous} or {labels.normal}"
    issues += row_issues(places, wrong, [f"{expected}, found {values[code]!r}" for code in codes[wrong[:SHOWN]]])
    return np.asarray(is_anomalous[codes], dtype=np.bool_)


def read_labels(
    card: Card, labels: LabelFile | LabelIntervals, name: str, path: Path, issues: list[Issue]
) -> tuple[Table | None, FileFormat]:
    """Read a file of labels: written as the data files, but by default with the columns' names in the first line."""
    first = {"header_line": 1, "units_line": False, "remove_prefix": ""}
    form = card.file_format(labels.model_copy(update=first | labels.model_dump(include={*first}, exclude_none=True)))
    if isinstance(labels, LabelFile):
        tables, found = read_files(
            {name: path}, lambda _: form, values=[*map(str, (*labels.anomalous, *labels.normal))]
        )
    else:
        tables, found = read_files({name: path}, lambda _: form, texts=[labels.recording, "sensors"])
    issues += found
    return next(iter(tables[name].values())) if tables else None, form


class Intervals:
    """The anomalous intervals of all recordings, from a card's file; what is wrong with them is in `issues`."""

    def __init__(self, card: Card, labels: LabelIntervals, path: Path, sensors: Sequence[str]) -> None:
        self.issues: list[Issue] = []
        self._labels, self._sensors, self._is_log = labels, sensors, False
        self._events = pd.DataFrame(columns=["line", "recording", "start", "end", "sensors", "is_used"])
        table, form = read_labels(card, labels, labels.file, path, self.issues)
        if table is not None:
            self._settle(table, form)

    def _settle(self, table: Table, form: FileFormat) -> None:
        """Take the events from the file, and report what is wrong with them."""
        labels, frame, events = self._labels, table.frame, list[tuple[object, ...]]()
        self._is_log = labels.recording not in frame and labels.unit == "time"
        needed = dict.fromkeys([labels.start, labels.end, *([] if self._is_log else [labels.recording])], "column")
        if fault := header_fault(list(frame.columns), needed):
            self.issues.append(Issue(labels.file, fault, table.header_line))
            return
        times = (self._moments(table, column, form) for column in (labels.start, labels.end))
        texts = (frame[one].astype(str) if one in frame else [""] * len(frame) for one in (labels.recording, "sensors"))
        for (_, line), recording, blamed, start, end in zip(table.places, *texts, *times, strict=True):
            sensors, fault = tuple(filter(None, map(str.strip, blamed.split(";")))), ""
            if unknown := [sensor for sensor in sensors if sensor not in self._sensors]:
                fault = f"there is no sensor {unknown[0]!r}{nearest(unknown[0], self._sensors)}"
            if fault := f"the end, {end:.17g}, lies before the start, {start:.17g}" if end < start else fault:
                self.issues.append(Issue(labels.file, fault, line))
            elif start <= end:
                events.append((line, recording.strip(), start, end, sensors, False))
        found = pd.DataFrame(events, columns=self._events.columns)
        self._events = found.sort_values(["start", "end"], kind="stable", ignore_index=True)

    def _moments(self, table: Table, column: str, form: FileFormat) -> FloatArray:
        """Return rows or seconds, NaN for a cell that is wrong, which is reported."""
        cells, unit = table.frame[column], self._labels.unit
        if unit == "time" and form.time:
            forms = form.time_formats
            numbers = max((time_in_seconds(cells, one) for one in forms), key=lambda one: int(np.isfinite(one).sum()))
        else:
            forms, (numbers, _) = (f"{unit}, counted from 0",), numbers_of(cells, form)
        is_row = (numbers >= 0) & (numbers % 1 == 0)
        is_right = np.isfinite(numbers) & (is_row | (unit != "rows"))
        wrong = np.flatnonzero(~is_right)
        texts = [f"column {column!r}: {time_fault(cell, forms)}" for cell in cells.iloc[wrong[:SHOWN]]]
        self.issues += row_issues(table.places, wrong, texts)
        return np.where(is_right, numbers, np.nan)

    def label(self, id_: str, n_rows: int, time: FloatArray | None, step: float) -> tuple[BoolArray, tuple[Cause, ...]]:
        """Return which rows of a recording are anomalous, and which sensors the events show in.

        Each row stands for ``step`` seconds from its time on.
        """
        events = self._events if self._is_log else self._events[self._events["recording"] == id_]
        starts, ends = (events[key].to_numpy(np.float64) for key in ("start", "end"))
        if time is None or self._labels.unit == "rows":
            starts, stops = starts.astype(np.int64), ends.astype(np.int64) + 1
        else:  # counted from the first row, because a sum with seconds since 1970 would lose digits
            time = time - time[0] if self._labels.unit == "seconds" else time
            starts = np.searchsorted(time + step, starts, side="right" if step else "left")
            stops = np.searchsorted(time, ends, side="right")
        inside = (starts < stops) & (stops <= n_rows)
        self._events.loc[events.index[inside], "is_used"] = True
        rows, causes = np.zeros(n_rows, dtype=np.bool_), list[Cause]()
        for start, stop, sensors in zip(starts[inside], stops[inside], events["sensors"][inside], strict=True):
            rows[start:stop] = True
            causes += [Cause(int(start), int(stop), sensors)] if sensors else []
        return rows, tuple(causes)

    def note(self, ids: Sequence[str]) -> str:
        """Return how many intervals of a log book contain no row; if all of them do, or others, they are reported."""
        unused = self._events[~self._events["is_used"].astype(bool)]
        if self._is_log and len(unused) < len(self._events):
            of = f"of the {len(self._events)} intervals in {self._labels.file}"
            return f"{len(unused)} {of} contain no row of any recording" if len(unused) else ""
        for line, recording in zip(unused["line"], unused["recording"], strict=True):
            text = f"the interval does not lie within a recording {recording!r}; there are {[*ids[:10]]}"
            self.issues.append(Issue(self._labels.file, f"{text} (labels.unit, labels.time_format)", line))
        return ""
