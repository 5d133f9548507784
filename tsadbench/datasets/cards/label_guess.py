"""Guess which files of a folder hold the labels of others."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePosixPath

import numpy as np
import pandas as pd

from tsadbench.datasets.cards.look import TIME_FORMATS, Look, values_in
from tsadbench.datasets.reader import LABEL
from tsadbench.datasets.reading.cells import canonical
from tsadbench.datasets.reading.csv import CsvFile
from tsadbench.datasets.times import time_in_seconds
from tsadbench.utils.arrays import BoolArray, FloatArray
from tsadbench.utils.toml import toml_value

_START = re.compile(r"(start|begin|beginn|anfang|from|von)([ _-]?(time|date|zeit|row))?", re.IGNORECASE)
_END = re.compile(r"(end|ende|stop|to|until|bis)([ _-]?(time|date|zeit|row))?", re.IGNORECASE)


def guess_labels(looks: Sequence[Look]) -> tuple[list[str], list[Look]]:
    """Return a card's lines on label files, and those files."""
    if any(look.of_role("label") for look in looks if look.n_sensors > 1):
        return [], []
    for look in looks:
        columns = _interval_columns(look)
        if columns and look.table.n_rows and len(looks) > 1 and (lines := _take_intervals(look, columns, looks)):
            return ["[labels]", 'kind = "intervals"', f"file = {toml_value(look.file.name)}", *lines], [look]
    found = [
        (pattern, look, other) for other in looks if _holds_labels(other) for pattern, look in _named(other, looks)
    ]
    if not found:
        return [], []
    chosen = Counter(pattern for pattern, _, _ in found).most_common(1)[0][0]
    pairs = [(look, other) for pattern, look, other in found if pattern == chosen]
    for look, other in pairs:
        first = look.table.n_rows - other.table.n_rows  # 1 if a label has been taken for the column's name
        below = {value: row + first for value, row in values_in(other.table, 0).items()}
        look.labels = below | ({canonical(other.table.header[0]): 0} if first else {})
    return ["[labels]", 'kind = "file"', f"file = {toml_value(chosen)}"], [other for _, other in pairs]


def _holds_labels(look: Look) -> bool:
    return len(look.table.header) == 1 and bool(LABEL.search(look.file.name))


def _named(other: Look, looks: Sequence[Look]) -> list[tuple[str, Look]]:
    """Return the recording that a file of labels is called after, with the pattern of its name."""
    name, best = PurePosixPath(other.file.name), list[tuple[int, str, Look]]()
    for look in looks:
        id_ = str(PurePosixPath(look.file.name).with_suffix(""))
        own = PurePosixPath(id_).name
        missing = look.table.n_rows - other.table.n_rows
        if look is other or len(look.table.header) < 2 or missing not in (0, 1):
            continue
        if id_ in other.file.name:
            best.append((len(id_), other.file.name.replace(id_, "{id}", 1), look))
        elif own == name.stem:
            best.append((len(own), name.with_name("{name}" + name.suffix).as_posix(), look))
    return [max(best, key=lambda found: found[0])[1:]] if best else []


def _interval_columns(look: Look) -> tuple[str, str, str] | None:
    """Return the columns with recordings ("" for none), starts and ends of a file that seems to list intervals."""
    if not isinstance(look.table, CsvFile):
        return None
    header = look.table.header
    start, end = (next(filter(form.fullmatch, header), None) for form in (_START, _END))
    if start is None or end is None:
        return None
    return "recording" if "recording" in header else "", start, end


def _take_intervals(intervals: Look, columns: tuple[str, str, str], looks: Sequence[Look]) -> list[str]:
    """Give recordings the labels that intervals tell; return what the card says of them, nothing if they are none."""
    header = intervals.table.header
    places = {name: header.index(name) for name in columns if name}
    rows = pd.concat(list(intervals.table.chunks(list(places.values()))))
    recording, start, end = columns
    names = rows[places[recording]].astype(str) if recording else None
    called = [f"{key} = {toml_value(name)}" for key, name in (("start", start), ("end", end)) if name != key]
    if all(pd.api.types.is_integer_dtype(rows[places[name]].dtype) for name in (start, end)):
        if names is None:
            return []
        for look in looks:
            own = rows[places[start]][names == str(PurePosixPath(look.file.name).with_suffix(""))]
            if len(own):
                look.labels = {"0": 0, "1": int(np.min(own))}
        return ['unit = "rows"', *called]
    timed = [look for look in looks if look is not intervals and look.time_name is not None]
    cells = [rows[places[name]] for name in (start, end)]
    form = next((one for one in TIME_FORMATS if all(np.isfinite(time_in_seconds(c, one)).all() for c in cells)), None)
    if form is None or not timed:
        return ['unit = "time"', *called] if names is not None else []
    begins, ends = (time_in_seconds(one, form) for one in cells)
    for look in timed:
        mine: BoolArray = np.ones(len(begins), dtype=np.bool_)
        if names is not None:
            mine = np.asarray(names == str(PurePosixPath(look.file.name).with_suffix("")), dtype=np.bool_)
        time = _times_of(look)
        inside = np.zeros(len(time), dtype=np.bool_)
        for first, last in zip(begins[mine], ends[mine], strict=True):
            inside |= (time >= first) & (time <= last)
        if inside.any():
            look.labels = {"0": 0, "1": int(np.argmax(inside))}
    own_form = [f"time_format = {toml_value(form)}"] if form != timed[0].time_format else []
    written = [
        f"{key} = {toml_value(getattr(intervals.file_format, key))}"
        for key in ("separator", "decimal", "encoding")
        if getattr(intervals.file_format, key) != getattr(timed[0].file_format, key)
    ]
    return ['unit = "time"', *called, *own_form, *written]


def _times_of(look: Look) -> FloatArray:
    place = look.table.header.index(str(look.time_name))
    return np.concatenate([time_in_seconds(rows[place], look.time_format) for rows in look.table.chunks([place])])
