"""Labels of rows, from a column, a file per recording, or a file of intervals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from tsadbench.base.dataset import Cause
from tsadbench.base.file_format import FileFormat
from tsadbench.datasets.card import Card, LabelFile, LabelIntervals, LabelValues, canonical
from tsadbench.datasets.formats import header_fault, numbers_of, read_files, row_issues
from tsadbench.datasets.times import are_dates, fitting_times, time_fault
from tsadbench.utils.arrays import BoolArray, FloatArray
from tsadbench.utils.issues import SHOWN, Issue
from tsadbench.utils.parameters import nearest


def labels_of_cells(cells: pd.Series, labels: LabelValues, issues: list[Issue]) -> BoolArray:
    """Return which labels are anomalous, [n_rows]; report undeclared values."""
    codes, found = pd.factorize(cells.astype(object), use_na_sentinel=False)
    values = ["" if pd.isna(value) else canonical(value) for value in found]
    is_anomalous, is_normal = (np.isin(values, [*map(canonical, of)]) for of in (labels.anomalous, labels.normal))
    wrong = np.flatnonzero(~(is_anomalous | is_normal)[codes])
    expected = f"column {cells.name!r}: expected one of the labels {labels.anomalous} or {labels.normal}"
    issues += row_issues(cells.index, wrong, [f"{expected}, found {values[code]!r}" for code in codes[wrong[:SHOWN]]])
    return np.asarray(is_anomalous[codes], dtype=np.bool_)


def read_labels(
    card: Card, labels: LabelFile | LabelIntervals, path: Path, name: str, issues: list[Issue]
) -> tuple[pd.DataFrame | None, FileFormat]:
    """Read a file of labels: in the format of the data files, but by default with a header in the first line."""
    first = {"header_line": 1, "units_line": False, "remove_prefix": ""}
    form = card.file_format(labels.model_copy(update=first | labels.model_dump(include={*first}, exclude_none=True)))
    values = [*map(str, (*labels.anomalous, *labels.normal))] if isinstance(labels, LabelFile) else []
    texts = [labels.recording, "sensors"] if isinstance(labels, LabelIntervals) else []
    if isinstance(labels, LabelIntervals) and labels.unit == "time" and are_dates(form.time_formats):
        texts += [labels.start, labels.end]
    tables = read_files({name: path}, lambda _: form, issues, values=values, texts=texts)
    return next(iter(tables[name].values())) if tables else None, form


def read_events(
    card: Card, labels: LabelIntervals, path: Path, sensors: Sequence[str], issues: list[Issue]
) -> pd.DataFrame | None:
    """Return the intervals in a file, sorted by start, and report invalid ones; None if the file is unusable.

    Columns: ``start``, ``end``, ``sensors``, ``used`` (False), and ``recording`` unless the file is a log book. The
    index is that of `formats.placed`.
    """
    frame, form = read_labels(card, labels, path, labels.file, issues)
    if frame is None:
        return None
    is_log = labels.recording not in frame and labels.unit == "time"
    more = [*([] if is_log else [labels.recording]), *(["sensors"] if "sensors" in frame else [])]
    needed = dict.fromkeys([labels.start, labels.end, *more], "column")
    if fault := header_fault([*frame.columns], needed):
        issues.append(Issue(labels.file, fault, frame.attrs.get("header")))
        return None
    blamed = frame["sensors"].astype(str) if "sensors" in frame else [""] * len(frame)
    named = [tuple(filter(None, map(str.strip, one.split(";")))) for one in blamed]
    events = pd.DataFrame({"sensors": named, "used": False}, index=frame.index)
    for key, column in (("start", labels.start), ("end", labels.end)):
        events[key] = _moments(frame[column], labels.unit, form, issues)
    if not is_log:
        events["recording"] = frame[labels.recording].astype(str).str.strip()
    faults = []
    for start, end, own in events[["start", "end", "sensors"]].itertuples(index=False):
        unknown = next((one for one in own if one not in sensors), None)
        fault = "" if unknown is None else f"there is no sensor {unknown!r}{nearest(unknown, sensors)}"
        faults.append(f"the end {end:.17g} is before the start {start:.17g}" if end < start else fault)
    wrong = np.flatnonzero(faults)
    issues += row_issues(events.index, wrong, [faults[row] for row in wrong])
    return events[(events["start"] <= events["end"])].sort_values(["start", "end"], kind="stable")


def _moments(cells: pd.Series, unit: str, form: FileFormat, issues: list[Issue]) -> FloatArray:
    """Return rows or seconds; report invalid cells (NaN)."""
    if unit == "time" and form.time:
        forms, (numbers, _) = form.time_formats, fitting_times(cells, form.time_formats)
    else:
        forms, (numbers, _) = (f"{unit}, counted from 0",), numbers_of(cells, form)
    is_right = np.isfinite(numbers) & ((unit != "rows") | ((numbers >= 0) & (numbers % 1 == 0)))
    wrong = np.flatnonzero(~is_right)
    texts = [f"column {cells.name!r}: {time_fault(cell, forms)}" for cell in cells.iloc[wrong[:SHOWN]]]
    issues += row_issues(cells.index, wrong, texts)
    return np.where(is_right, numbers, np.nan)


def label_rows(
    events: pd.DataFrame, unit: str, id_: str, n_rows: int, time: FloatArray | None, step: float
) -> tuple[BoolArray, tuple[Cause, ...]]:
    """Return a recording's anomalous rows and causes; mark used events. A row lasts ``step`` seconds."""
    places = np.flatnonzero(events["recording"] == id_) if "recording" in events else np.arange(len(events))
    starts, ends = (events[key].to_numpy(np.float64)[places] for key in ("start", "end"))
    if time is None or unit == "rows":
        starts, stops = starts.astype(np.int64), ends.astype(np.int64) + 1
    else:  # relative to the first row, because sums with seconds since 1970 lose digits
        near = 1e-9 + 2.0 * np.spacing(np.abs(time).max())  # seconds are inexact by up to one ulp
        time = time - time[0] if unit == "seconds" else time
        starts = np.searchsorted(time + step, starts + (near if step else -near), side="right" if step else "left")
        stops = np.searchsorted(time, ends + near, side="right")
    inside = (starts < stops) & (stops <= n_rows)
    events["used"] |= np.isin(np.arange(len(events)), places[inside])
    rows, causes = np.zeros(n_rows, dtype=np.bool_), list[Cause]()
    for start, stop, place in zip(starts[inside], stops[inside], places[inside], strict=True):
        rows[start:stop] = True
        sensors = events["sensors"].iloc[place]
        causes += [Cause(int(start), int(stop), sensors)] if sensors else []
    return rows, tuple(causes)


def unused_events(events: pd.DataFrame, ids: Sequence[str], issues: list[Issue]) -> list[str]:
    """Return a note on a log book's intervals without rows; report them if all are, or if the file is no log book."""
    unused = np.flatnonzero(~events["used"].astype(bool))
    if "recording" not in events and len(unused) < len(events):
        many = f"{len(unused)} of the {len(events)} intervals contain no row of any recording"
        return [many] if len(unused) else []
    names = events.get("recording", pd.Series("", events.index)).iloc[unused[:SHOWN]]
    text = f"contains this interval; the recordings are {[*ids[:10]]} (check labels.unit and labels.time_format)"
    texts = [f"no recording{f' {name!r}' if name else ''} {text}" for name in names]
    issues += row_issues(events.index, unused, texts)
    return []
