"""Labels of a recording's rows: values of a column or of a file, or a file of intervals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from tsadbench.base.dataset import Cause
from tsadbench.base.file_format import FileFormat
from tsadbench.datasets.card import Card, LabelFile, LabelIntervals, LabelValues, canonical, listed
from tsadbench.datasets.formats import Table, header_fault, numbers_of, read_files, row_issues
from tsadbench.datasets.times import time_fault, time_in_seconds
from tsadbench.utils.arrays import BoolArray, FloatArray
from tsadbench.utils.issues import Issue
from tsadbench.utils.parameters import nearest


def labels_of_cells(cells: pd.Series, labels: LabelValues, places: pd.MultiIndex) -> tuple[BoolArray, list[Issue]]:
    """Return where a label is one of the anomalous values [n_rows]; values that are not declared are reported."""
    codes, found = pd.factorize(cells.astype(object), use_na_sentinel=False)
    values = ["" if pd.isna(value) else canonical(value) for value in found]
    is_anomalous, is_normal = (np.isin(values, [*map(canonical, of)]) for of in (labels.anomalous, labels.normal))
    wrong = np.flatnonzero(~(is_anomalous | is_normal)[codes])
    expected = f"column {cells.name!r}: expected one of the labels {labels.anomalous} or {labels.normal}"
    issues = row_issues(places, wrong, lambda row: f"{expected}, found {values[codes[row]]!r}", "label")
    return np.asarray(is_anomalous[codes], dtype=np.bool_), list(issues)


def _read(
    card: Card, labels: LabelFile | LabelIntervals, name: str, path: Path, **wanted: Sequence[str]
) -> tuple[Table | None, FileFormat, list[Issue]]:
    """Read a file of labels: written as the data files, but by default with the columns' names in the first line."""
    own = labels.model_dump(include={"header_line", "units_line", "remove_prefix"}, exclude_none=True)
    first = {"header_line": 1, "units_line": False, "remove_prefix": ""}
    form = card.file_format(labels.model_copy(update=first | own))
    tables, issues = read_files({name: path}, lambda _: form, **wanted)
    return next(iter(tables[name].values())) if tables else None, form, issues


def labels_of_file(
    card: Card, labels: LabelFile, name: str, path: Path, n_rows: int
) -> tuple[BoolArray | None, list[Issue]]:
    """Return the labels of one recording from its own file, None if it is of another form; and what is wrong."""
    table, _, issues = _read(card, labels, name, path, values=[*map(str, (*labels.anomalous, *labels.normal))])
    if table is None:
        return None, issues
    columns = [str(column) for column in table.frame.columns]
    column = columns[0] if labels.column is None and len(columns) == 1 else labels.column or "labels.column"
    fault = header_fault(columns, {column: "label column"})
    if not fault and len(table.frame) != n_rows:
        fault = f"expected {n_rows} labels, one for each row, found {len(table.frame)}"
    if fault:
        return None, [Issue(name, fault, table.header_line)]
    return labels_of_cells(table.frame.iloc[:, columns.index(column)], labels, table.places)


class Intervals:
    """The anomalous intervals of all recordings, from a card's file; what is wrong with them is in `issues`."""

    def __init__(self, card: Card, labels: LabelIntervals, path: Path, sensors: Sequence[str]) -> None:
        self._labels, self._sensors, self._is_log = labels, sensors, False
        self._events = pd.DataFrame({key: [] for key in ("recording", "start", "end", "sensors", "is_used")})
        table, form, self.issues = _read(card, labels, labels.file, path, texts=[labels.recording, "sensors"])
        if table is not None:
            self._settle(
                table, form, listed(labels.time_format or card.columns.time_format) if card.columns.time else ()
            )

    def _report(self, line: int, text: str, kind: str) -> None:
        self.issues.append(Issue(self._labels.file, text, line, kind))

    def _settle(self, table: Table, form: FileFormat, time_formats: Sequence[str]) -> None:
        """Take the events from the file, and report what is wrong with them."""
        labels, frame, given = self._labels, table.frame, self._labels.model_fields_set
        self._is_log = labels.recording not in frame and labels.unit == "time" and "recording" not in given
        needed = dict.fromkeys([labels.start, labels.end, *([] if self._is_log else [labels.recording])], "column")
        if fault := header_fault(list(frame.columns), needed):
            self.issues.append(Issue(labels.file, fault, table.header_line))
            return
        starts, ends = (self._moments(table, column, form, time_formats) for column in (labels.start, labels.end))
        texts = (frame[one].astype(str) if one in frame else [""] * len(frame) for one in (labels.recording, "sensors"))
        kept = []
        for line, recording, blamed, start, end in zip(
            table.places.get_level_values(1), *texts, starts, ends, strict=True
        ):
            sensors = tuple(filter(None, map(str.strip, blamed.split(";"))))
            for sensor in set(sensors).difference(self._sensors):
                self._report(line, f"there is no sensor {sensor!r}{nearest(sensor, self._sensors)}", "sensor")
            if end < start:
                self._report(line, f"the end, {end:.17g}, lies before the start, {start:.17g}", "order")
            elif start <= end:
                kept.append((line, recording.strip(), start, end, sensors, False))
        events = pd.DataFrame(kept, columns=["line", *self._events.columns])
        self._events = events.set_index("line").sort_values(["start", "end"], kind="stable")

    def _moments(self, table: Table, column: str, form: FileFormat, time_formats: Sequence[str]) -> FloatArray:
        """Return rows or seconds, NaN for a cell that is wrong, which is reported."""
        cells, in_rows = table.frame[column], self._labels.unit == "rows"
        if self._labels.unit == "time" and time_formats:
            read = (time_in_seconds(cells, one) for one in time_formats)
            numbers = max(read, key=lambda one: int(np.isfinite(one).sum()))
        else:
            time_formats = ["a row, counted from 0"] if in_rows else ["seconds"]
            numbers, _ = numbers_of(cells, form)
            numbers = np.where(in_rows & ((numbers < 0) | (numbers % 1 > 0)), np.nan, numbers)
        wrong, text = np.flatnonzero(~np.isfinite(numbers)), f"column {column!r}: "
        self.issues += row_issues(
            table.places, wrong, lambda row: text + time_fault(cells.iloc[row], time_formats), text
        )
        return np.where(np.isfinite(numbers), numbers, np.nan)

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

    def note(self, ids: Iterable[str]) -> str:
        """Return how many intervals of a log book contain no row; that of all of them, and other such, are reported."""
        unused = self._events[~self._events["is_used"].astype(bool)]
        if not self._is_log or len(unused) == len(self._events):
            known = f"there are the recordings {list(dict.fromkeys(ids))[:10]}; check labels.time_format"
            for line, recording in unused["recording"].items():
                self._report(
                    int(str(line)),
                    f"the interval is not within the rows of a recording {recording!r}; {known}",
                    "unused",
                )
            return ""
        of = f"of the {len(self._events)} intervals in {self._labels.file}"
        return f"{len(unused)} {of} contain no row of any recording" if len(unused) else ""
