"""What a stranger's file seems to hold: how it is written, and which columns are times, labels or sensors."""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from tsadbench.base.file_format import FileFormat
from tsadbench.datasets.card import canonical
from tsadbench.datasets.formats import numbers_of, split
from tsadbench.datasets.reader import LABEL
from tsadbench.datasets.times import time_in_seconds
from tsadbench.utils.arrays import BoolArray, FloatArray

_COUNTER = re.compile(r"(unnamed.*|index|row|row ?id|id|nr|no|sample|x?)", re.IGNORECASE)
_TIME = re.compile(r"\b(date|time|zeit|datum)\b|timestamp|datetime|_time$|^ts?$", re.IGNORECASE)
_EXPONENT = r"([eE][+-]?\d+)?"
_NUMBER = re.compile(rf"[+-]?(\d+[.,]?\d*|[.,]\d+){_EXPONENT}")
# "1,200" may be a number with a separator of thousands, "1,2" and "0,200" are not.
_COMMA, _THOUSANDS = re.compile(rf"[+-]?\d+,\d+{_EXPONENT}"), re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
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
_TIME_FORMATS = ("ISO8601", *(f"{date} {clock}" for date in _DATES for clock in _CLOCKS))

Role: TypeAlias = Literal["sensor", "time", "label", "counter", "text", "empty"]


class Column(NamedTuple):
    """What a column seems to be."""

    role: Role
    formats: Sequence[str] = ()  # all that fit its times
    states: Mapping[str, int] = {}  # of a sensor: Open is 1, Closed is 0
    texts: Sequence[str] = ()  # of a sensor those among its numbers, such as Bad Input; of a text column all


@dataclass(slots=True, eq=False)
class Look:
    """What a file seems to hold. Texts among the numbers of a sensor are missing values in ``frame``."""

    name: str
    path: Path
    form: FileFormat
    frame: pd.DataFrame
    variables: tuple[str, ...]  # the widest arrays of several
    columns: dict[str, Column]
    labels: pd.Series | None = None  # [n_rows], canonical texts

    def those(self, role: Role) -> list[str]:
        """Return the columns that have a role."""
        return [name for name, column in self.columns.items() if column.role == role]

    @property
    def time(self) -> str | None:
        """The column of times."""
        return next(iter(self.those("time")), None)

    @property
    def formats(self) -> Sequence[str]:
        """The formats that fit the times, the likeliest first."""
        return self.columns[self.time].formats if self.time is not None else ()

    @property
    def seconds(self) -> FloatArray:
        """The times of the rows."""
        return time_in_seconds(self.frame[self.time], self.formats[0])

    def anomalous(self, normal: str | None) -> BoolArray:
        """Return which rows are labelled, but not as normal ones; none if the file has no labels."""
        if self.labels is None:
            return np.zeros(len(self.frame), dtype=np.bool_)
        return (self.labels.notna() & (self.labels != normal)).to_numpy(np.bool_)


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
    agreeing, width, separator, rows = 0.0, 0, ",", [[""]]
    for candidate in _SEPARATORS:
        found = [[cell.strip() for cell in split(line, candidate)] for line in lines]
        widths = Counter(len(row) for row, line in zip(found, lines, strict=True) if line.strip())
        n_cells, count = widths.most_common(1)[0] if widths else (1, 0)
        share = round(count / widths.total(), 1) if n_cells > 1 else 0.0
        if share > agreeing or width == 0:
            agreeing, width, separator, rows = share, n_cells, candidate, found
    header = next((place for place, row in enumerate(rows[:_HEADER_LINES]) if _is_header(row, width)), 0)
    below = rows[header + 1 :]
    commas = [cell for row in below for cell in row if _COMMA.fullmatch(cell)]
    points = any(re.fullmatch(rf"[+-]?\d*\.\d+{_EXPONENT}", cell) for row in below for cell in row)
    clear = not all(map(_THOUSANDS.fullmatch, commas))
    return FileFormat(
        separator=separator,
        decimal="," if clear or (commas and separator != "," and not points) else ".",
        encoding=encoding,
        header_line=header + 1,
        units_line=len(below) > 1 and _holds_units(below[0], below[1]),
    )


def _is_header(row: Sequence[str], n_cells: int) -> bool:
    filled = [cell for cell in row if cell]
    return len(row) == n_cells and len(filled) * 2 > n_cells and not any(map(_NUMBER.fullmatch, filled))


def _holds_units(row: Sequence[str], below: Sequence[str]) -> bool:
    """Whether no cell of a row is a number or a date, and most of the cells below are."""
    pairs = [(cell, number) for cell, number in zip(row, below, strict=False) if cell]
    texts = not any(re.search(r"\d{2}", cell) or _NUMBER.fullmatch(cell) for cell, _ in pairs)
    return texts and sum(bool(_NUMBER.fullmatch(number)) for _, number in pairs) * 2 > len(pairs)


def columns_of(frame: pd.DataFrame, form: FileFormat) -> dict[str, Column]:
    """Guess what each column is, from its name and its cells; texts among numbers become missing values."""
    found: dict[str, Column] = {}
    for name, cells in frame.items():
        filled = cells.dropna()
        numeric = pd.api.types.is_numeric_dtype(cells.dtype) and not pd.api.types.is_bool_dtype(cells.dtype)
        formats = [] if any(one.role == "time" for one in found.values()) else _time_formats(str(name), filled)
        if filled.empty:
            column = Column("empty")
        elif _COUNTER.fullmatch(str(name)):
            column = Column("counter")
        elif LABEL.search(str(name)) and filled.nunique() <= _MOST_LABELS:
            column = Column("label")
        elif formats:
            column = Column("time", formats)
        elif numeric:
            column = Column("sensor")
        else:
            texts = filled.astype("str").str.strip()
            _, wrong = numbers_of(texts, form)
            distinct, odd = texts.unique().tolist(), texts[wrong].unique().tolist()
            states = {text: _STATES[text.lower()] for text in distinct if text.lower() in _STATES}
            column = Column("text", texts=distinct)
            if len(states) == len(distinct):
                column = Column("sensor", states=states)
            elif len(odd) <= _MOST_ODD and wrong.mean() < _FEW_ODD:
                column = Column("sensor", texts=odd)
                frame[name] = cells.mask(cells.astype("str").str.strip().isin(odd))
        found[str(name)] = column
    return found


def _time_formats(name: str, filled: pd.Series) -> list[str]:
    """Return the formats that fit a column's times; none if it seems to hold none."""
    if pd.api.types.is_numeric_dtype(filled.dtype) and len(filled):
        rising = _TIME.search(name) and bool((np.diff(filled.to_numpy(np.float64)) >= 0).all())
        return [] if not rising else ["milliseconds"] if filled.iloc[0] > 1e11 else ["seconds"]
    # A day beyond the 12th may come late in a file: some rows of all of it tell the day from the month.
    return fitting_times(pd.concat([filled.head(100), filled.iloc[:: max(1, len(filled) // 1000)]]))


def fitting_times(cells: pd.Series) -> list[str]:
    """Return the formats in which all of these cells are times."""
    return [form for form in _TIME_FORMATS if np.isfinite(time_in_seconds(cells, form)).all()]


def label_texts(cells: pd.Series) -> pd.Series:
    """Return labels as `canonical` texts."""
    return cells.map({value: canonical(value) for value in cells.dropna().unique()})
