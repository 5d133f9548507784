"""What a stranger's file seems to hold: how it is written, and which columns are times, labels or sensors."""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from tsadbench.base.file_format import FileFormat
from tsadbench.datasets.card import canonical
from tsadbench.datasets.formats import numbers_of, split
from tsadbench.datasets.reader import LABEL
from tsadbench.datasets.times import time_in_seconds
from tsadbench.utils.arrays import FloatArray

_COUNTER = re.compile(r"(unnamed.*|index|row|row ?id|id|nr|no|sample|x?)", re.IGNORECASE)
_TIME = re.compile(r"\b(date|time|zeit|datum)\b|timestamp|datetime|_time$|^ts?$", re.IGNORECASE)
_NUMBER = re.compile(r"[+-]?(\d+[.,]?\d*|[.,]\d+)([eE][+-]?\d+)?")
# Of equals the first is taken. With a decimal comma, every line holds commas as well, so the comma comes last.
_SEPARATORS = (";", "\t", "|", ",")
_SAMPLED_LINES, _HEADER_LINES, _MOST_LABELS = 200, 10, 10
# Of texts among numbers: so many different ones, in so small a share of the cells.
_MOST_ODD, _FEW_ODD = 5, 0.2
# Texts that stand for two states, which hardly mean anything else.
_STATES = dict.fromkeys(("open", "opened", "on", "true", "yes", "running", "active", "auf", "offen", "ein", "an"), 1)
_STATES |= dict.fromkeys(("closed", "off", "false", "no", "stopped", "inactive", "zu", "geschlossen", "aus"), 0)
_DATES = ("%d.%m.%Y", "%d.%m.%y", "%m/%d/%Y", "%d/%m/%Y", "%Y/%m/%d")
_CLOCKS = ("%H:%M:%S", "%H:%M", "%H:%M:%S.%f", "%I:%M:%S %p", "%I:%M %p")
TIME_FORMATS = ("ISO8601", *(f"{date} {clock}" for date in _DATES for clock in _CLOCKS))


@dataclass(slots=True, eq=False)
class Look:
    """What one file seems to hold.

    ``roles`` has the columns that are not sensors: "time", "label", "counter", "text" or "empty".
    """

    name: str
    path: Path
    form: FileFormat
    frame: pd.DataFrame
    variables: tuple[str, ...] = ()
    roles: dict[str, str] = field(default_factory=dict)
    time: str | None = None
    time_format: str = "ISO8601"
    swapped: str | None = None  # the time format with day and month exchanged, if that fits as well
    labels: dict[str, int] = field(default_factory=dict)  # the first row of each value of the label
    states: dict[str, dict[str, int]] = field(default_factory=dict)  # of sensors: Open is 1, Closed is 0
    odd: dict[str, None] = field(default_factory=dict)  # texts among numbers, such as Bad Input
    texts: dict[str, list[str]] = field(default_factory=dict)  # of columns that are not sensors
    missing: int = 0  # rows that lack a value

    @property
    def sensors(self) -> list[str]:
        """The columns that seem to be sensors."""
        return [name for name in self.frame.columns if name not in self.roles]

    @property
    def label(self) -> str | None:
        """The most likely column of labels: one with a usual name before others."""
        order = ("anomaly", "label", "is_anomaly", "attack", "fault")
        found = [name for name, role in self.roles.items() if role == "label"]
        return min(found, key=lambda name: order.index(name.lower()) if name.lower() in order else 9, default=None)

    @property
    def seconds(self) -> FloatArray:
        """The times of the rows."""
        return time_in_seconds(self.frame[self.time], self.time_format)

    def first_anomaly(self, normal: str | None) -> int:
        """Return the first row that is labelled anomalous; the number of rows if none is."""
        return min((row for value, row in self.labels.items() if value != normal), default=len(self.frame))


def sniffed(path: Path) -> FileFormat:
    """Return how a text file seems to be written. An OSError if it cannot be read."""
    with path.open("rb") as file:
        head = file.read(2**18)
    encoding = "utf-16" if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8"
    try:
        codecs.getincrementaldecoder(encoding)().decode(head)
    except UnicodeDecodeError:
        encoding = "cp1252"
    lines = re.split("\r\n?|\n", head.decode(encoding, "replace").lstrip("\ufeff"))[:_SAMPLED_LINES]
    separator = max(
        _SEPARATORS, key=lambda candidate: _agreement([split(line, candidate) for line in lines if line.strip()])
    )
    rows = [[cell.strip() for cell in split(line, separator)] for line in lines]
    width = Counter(len(row) for row, line in zip(rows, lines, strict=True) if line.strip()).most_common(1)
    header = next(
        (place for place, row in enumerate(rows[:_HEADER_LINES]) if width and _is_header(row, width[0][0])), 0
    )
    below = rows[header + 1 :]
    cells = [cell for row in below for cell in row]
    commas = [cell for cell in cells if re.fullmatch(r"[+-]?\d+,\d+([eE][+-]?\d+)?", cell)]
    points = any(re.fullmatch(r"[+-]?\d*\.\d+([eE][+-]?\d+)?", cell) for cell in cells)
    # "1,200" may be a number with a separator of thousands, "1,2" and "0,200" are not.
    clear = any(not re.fullmatch(r"[+-]?[1-9]\d{0,2},\d{3}", cell) for cell in commas)
    return FileFormat(
        separator=separator,
        decimal="," if clear or (commas and separator != "," and not points) else ".",
        encoding=encoding,
        header_line=header + 1,
        units_line=len(below) > 1 and _holds_units(below[0], below[1]),
    )


def _agreement(rows: Sequence[Sequence[str]]) -> float:
    """Return the share of lines with the most common number of cells, 0 if that is one."""
    n_cells, agreeing = Counter(map(len, rows)).most_common(1)[0] if rows else (1, 0)
    return round(agreeing / len(rows), 1) if n_cells > 1 else 0.0


def _is_header(row: Sequence[str], n_cells: int) -> bool:
    filled = [cell for cell in row if cell]
    return len(row) == n_cells and len(filled) * 2 > n_cells and not any(map(_NUMBER.fullmatch, filled))


def _holds_units(row: Sequence[str], below: Sequence[str]) -> bool:
    """Whether no cell of a row is a number or a date, and most of the cells below are."""
    pairs = [(cell, number) for cell, number in zip(row, below, strict=False) if cell]
    texts = not any(re.search(r"\d{2}", cell) or _NUMBER.fullmatch(cell) for cell, _ in pairs)
    return texts and sum(bool(_NUMBER.fullmatch(number)) for _, number in pairs) * 2 > len(pairs)


def find_roles(look: Look) -> None:
    """Guess what each column is, from its name and its cells."""
    gaps = np.zeros(len(look.frame), dtype=np.bool_)
    for name in look.frame.columns:
        cells = look.frame[name]
        numeric = pd.api.types.is_numeric_dtype(cells.dtype) and not pd.api.types.is_bool_dtype(cells.dtype)
        if cells.isna().all():
            look.roles[name] = "empty"
        elif _COUNTER.fullmatch(name):
            look.roles[name] = "counter"
        elif LABEL.search(name) and cells.nunique() <= _MOST_LABELS:
            look.roles[name] = "label"
        elif look.time is None and (forms := _time_formats(name, cells, numeric=numeric)):
            look.roles[name], look.time, look.time_format = "time", name, forms[0]
            look.swapped = next((form for form in forms[1:] if form[:2] != forms[0][:2]), None)
        elif numeric:
            gaps |= cells.isna().to_numpy()
        elif not _look_at_texts(look, name, cells):
            look.roles[name], look.texts[name] = "text", cells.dropna().astype("str").unique().tolist()
        else:
            gaps |= (cells.isna() | cells.isin(look.odd)).to_numpy()
    look.missing = int(gaps.sum())
    if look.label is not None:
        look.labels = values_in(look.frame[look.label])


def _look_at_texts(look: Look, name: str, cells: pd.Series) -> bool:
    """Whether a column of texts is a sensor: with two states, or with few texts among its numbers."""
    texts = cells.dropna().astype("str").str.strip()
    distinct = texts.unique().tolist()
    if all(text.lower() in _STATES for text in distinct):
        look.states[name] = {text: _STATES[text.lower()] for text in distinct}
        return True
    _, wrong = numbers_of(texts, look.form)
    odd = dict.fromkeys(texts[wrong])
    if len(odd) > _MOST_ODD or wrong.mean() >= _FEW_ODD:
        return False
    look.odd |= odd
    return True


def _time_formats(name: str, cells: pd.Series, *, numeric: bool) -> list[str]:
    """Return the formats that fit a column's first times; none if it seems to hold none."""
    filled = cells.dropna()
    if pd.api.types.is_datetime64_any_dtype(cells.dtype):
        return ["ISO8601"]
    if numeric:
        rising = bool(_TIME.search(name)) and bool((np.diff(filled.to_numpy(np.float64)) >= 0).all())
        return (["milliseconds"] if filled.iloc[0] > 1e11 else ["seconds"]) if rising else []
    # A day beyond the 12th may come late in a file: some rows of all of it tell the day from the month.
    some = pd.concat([filled.head(100), filled.iloc[:: max(1, len(filled) // 1000)]])
    return fitting_times(some)


def fitting_times(cells: pd.Series) -> list[str]:
    """Return the formats in which all of these cells are times."""
    return [form for form in TIME_FORMATS if np.isfinite(time_in_seconds(cells, form)).all()]


def values_in(cells: pd.Series) -> dict[str, int]:
    """Return the first row of each value of a column, in order of appearance."""
    found: dict[str, int] = {}
    codes, values = pd.factorize(cells.astype("object"), use_na_sentinel=True)
    for code, value in enumerate(values):
        found.setdefault(canonical(value), int(np.argmax(codes == code)))
    return found
