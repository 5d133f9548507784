"""Guesses a file's format, and which columns are times, labels or sensors."""

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
from tsadbench.datasets.formats import numbers_of, split
from tsadbench.datasets.reader import LABEL
from tsadbench.datasets.times import time_in_seconds
from tsadbench.utils.arrays import BoolArray, FloatArray

_COUNTER = re.compile(r"(unnamed.*|index|row|row ?id|id|nr|no|sample|x?)", re.IGNORECASE)
_TIME = re.compile(r"\b(date|time|zeit|datum)\b|timestamp|datetime|_time$|^ts?$", re.IGNORECASE)
_NUMBER = re.compile(r"[+-]?(\d+[.,]?\d*|[.,]\d+)([eE][+-]?\d+)?")
# "1,200" may have a thousands separator; "1,2" and "0,200" cannot.
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
# On a tie, the first wins. The comma comes last, because decimal commas occur in every line.
_SEPARATORS = (";", "\t", "|", ",")
_SAMPLED_LINES, _HEADER_LINES, _MOST_LABELS = 200, 10, 10
# Texts count as missing values up to this number of different texts and this share of the cells.
_MOST_ODD, _FEW_ODD = 5, 0.2
# Pairs of texts that almost always mean two states.
_STATES = dict.fromkeys(("open", "opened", "on", "true", "yes", "running", "active", "auf", "offen", "ein", "an"), 1)
_STATES |= dict.fromkeys(("closed", "off", "false", "no", "stopped", "inactive", "zu", "geschlossen", "aus"), 0)
_DATES = ("%d.%m.%Y", "%d.%m.%y", "%m/%d/%Y", "%d/%m/%Y", "%Y/%m/%d", "%Y-%m-%d")
_CLOCKS = ("%H:%M:%S", "%H:%M", "%H:%M:%S.%f", "%H:%M:%S,%f", "%I:%M:%S %p", "%I:%M %p")
_TIME_FORMATS = ("ISO8601", *(f"{date} {clock}" for date in _DATES for clock in _CLOCKS))


@dataclass(slots=True, eq=False)
class Look:
    """The guessed contents of a file. In ``frame``, texts among a sensor's numbers are missing values."""

    name: str
    path: Path
    form: FileFormat
    frame: pd.DataFrame
    variables: tuple[str, ...]  # names of the widest arrays, if there are several
    roles: dict[str, str] = field(default_factory=dict)  # "sensor", "time", "label", "counter", "text" or "empty"
    time_format: str = ""
    states: dict[str, dict[str, int]] = field(default_factory=dict)  # states of sensors: Open is 1, Closed is 0
    texts: dict[str, list[str]] = field(default_factory=dict)  # of columns that are not sensors
    odd: list[str] = field(default_factory=list)  # texts among numbers, such as Bad Input
    labels: pd.Series | None = None  # [n_rows], canonical texts
    role: str = ""  # "train", "test", "both" or "left out", once files are sorted
    reason: str = ""  # reason for the role

    def __post_init__(self) -> None:
        """Guess what each column is, from its name and its cells."""
        for name, cells in self.frame.items():
            self.roles[str(name)] = self._role(str(name), cells, cells.dropna())

    def those(self, *roles: str) -> list[str]:
        """Return the columns that have one of these roles."""
        return [name for name, role in self.roles.items() if role in roles]

    @property
    def seconds(self) -> FloatArray:
        """The times of the rows."""
        return time_in_seconds(self.frame[self.those("time")[0]], self.time_format)

    def anomalous(self, normal: str | None) -> BoolArray:
        """Return which rows have a label other than normal; all False without labels."""
        labels = pd.Series([None] * len(self.frame)) if self.labels is None else self.labels
        return (labels.notna() & (labels != normal)).to_numpy(np.bool_)

    def _role(self, name: str, cells: pd.Series, filled: pd.Series) -> str:
        if filled.empty:
            return "empty"
        if _COUNTER.fullmatch(name):
            return "counter"
        if LABEL.search(name) and filled.nunique() <= _MOST_LABELS:
            return "label"
        if not self.time_format and (form := _time_format(name, filled)):
            self.time_format = form
            return "time"
        if pd.api.types.is_numeric_dtype(cells.dtype) and not pd.api.types.is_bool_dtype(cells.dtype):
            return "sensor"
        texts = filled.astype("str").str.strip()
        wrong = numbers_of(texts, self.form)[1]
        distinct, odd = texts.unique().tolist(), texts[wrong].unique().tolist()
        if all(text.lower() in _STATES for text in distinct):
            self.states[name] = {text: _STATES[text.lower()] for text in distinct}
        elif len(odd) <= _MOST_ODD and wrong.mean() < _FEW_ODD:
            self.odd += odd
            self.frame[name] = cells.mask(cells.astype("str").str.strip().isin(odd))
        else:
            self.texts[name] = distinct
            return "text"
        return "sensor"


def _time_format(name: str, filled: pd.Series) -> str:
    """Return the format of a column's times, or ""."""
    if pd.api.types.is_numeric_dtype(filled.dtype):
        rising = _TIME.search(name) and (np.diff(filled.to_numpy(np.float64)) >= 0).all()
        return "" if not rising else "milliseconds" if filled.iloc[0] > 1e11 else "seconds"
    # Sample the whole file: a day after the 12th, which tells day from month, may come late.
    return fitting_format(pd.concat([filled.head(100), filled.iloc[:: max(1, len(filled) // 1000)]]))


def fitting_format(cells: pd.Series) -> str:
    """Return the first time format that fits all of these cells, or ""."""
    return next((form for form in _TIME_FORMATS if np.isfinite(time_in_seconds(cells, form)).all()), "")


def sniffed(path: Path) -> FileFormat:
    """Guess the format of a text file; an OSError if it cannot be read."""
    with path.open("rb") as file:
        head = file.read(2**18)
    encoding = "utf-16" if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8"
    try:
        codecs.getincrementaldecoder(encoding)().decode(head)
    except UnicodeDecodeError:
        encoding = "cp1252"
    lines = re.split("\r\n?|\n", head.decode(encoding, "replace").lstrip("\ufeff"))[:_SAMPLED_LINES]
    tables = {one: [[cell.strip() for cell in split(line, one)] for line in lines] for one in _SEPARATORS}
    separator, rows = max(tables.items(), key=lambda table: _width(table[1])[1])
    header = next((place for place, row in enumerate(rows[:_HEADER_LINES]) if _is_header(row, _width(rows)[0])), 0)
    below = rows[header + 1 :]
    cells = [cell for row in below for cell in row if _NUMBER.fullmatch(cell)]
    commas = [cell for cell in cells if re.search(r"\d,\d", cell)]
    points = any(re.search(r"\.\d", cell) for cell in cells)
    clear = not all(map(_THOUSANDS.fullmatch, commas))
    # A line of units has no number or date, and most cells below are numbers.
    units = [(cell, number) for cell, number in zip(*below[:2], strict=False) if cell] if len(below) > 1 else []
    named = not any(re.search(r"\d{2}", cell) or _NUMBER.fullmatch(cell) for cell, _ in units)
    return FileFormat(
        separator=separator,
        decimal="," if clear or (commas and separator != "," and not points) else ".",
        encoding=encoding,
        header_line=header + 1,
        units_line=named and sum(bool(_NUMBER.fullmatch(number)) for _, number in units) * 2 > len(units),
    )


def _width(rows: Sequence[Sequence[str]]) -> tuple[int, float]:
    """Return the most common number of cells per line and its share of the lines (0 for one cell)."""
    widths = Counter(len(row) for row in rows if any(row))
    n_cells, count = widths.most_common(1)[0] if widths else (1, 0)
    return n_cells, round(count / widths.total(), 1) if n_cells > 1 else 0.0


def _is_header(row: Sequence[str], n_cells: int) -> bool:
    filled = [cell for cell in row if cell]
    return len(row) == n_cells and len(filled) * 2 > n_cells and not any(map(_NUMBER.fullmatch, filled))
