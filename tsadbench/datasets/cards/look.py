"""What one file of a folder seems to hold: which of its columns are times, labels or sensors."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from tsadbench.base.file_format import FileFormat
from tsadbench.datasets.cards.files import File
from tsadbench.datasets.cards.sniff import sniff
from tsadbench.datasets.reader import LABEL
from tsadbench.datasets.reading.array_table import ArrayTable
from tsadbench.datasets.reading.arrays import ARRAYS, open_arrays
from tsadbench.datasets.reading.cells import as_number, canonical
from tsadbench.datasets.reading.csv import CsvFile, open_csv
from tsadbench.datasets.reading.parquet import PARQUET, open_parquet
from tsadbench.datasets.reading.table import NamedTable, Table
from tsadbench.datasets.reading.text import MalformedError, first_lines, names_in
from tsadbench.datasets.times import time_in_seconds
from tsadbench.errors import DataError

ENDINGS = (".csv", ".txt", ".tsv", *PARQUET, *ARRAYS)
_COUNTER = re.compile(r"(unnamed.*|index|row|row ?id|id|nr|no|sample)?", re.IGNORECASE)
_TIME = re.compile(r"\b(date|time|timestamp|datetime|zeit|datum)\b|timestamp|datetime|_time$|^ts?$", re.IGNORECASE)
_MOST_LABELS = 10
# Of texts among numbers: so many different ones, in so small a share of the cells.
_MOST_ODD, _FEW_ODD = 5, 0.2
# Texts that stand for two states, which hardly mean anything else.
_STATES = dict.fromkeys(("open", "opened", "on", "true", "yes", "running", "active", "auf", "offen", "ein", "an"), 1)
_STATES |= dict.fromkeys(("closed", "off", "false", "no", "stopped", "inactive", "zu", "geschlossen", "aus"), 0)
TIME_FORMATS = (
    "ISO8601",
    "%d.%m.%Y %H:%M:%S",
    "%d.%m.%Y %H:%M",
    "%d.%m.%y %H:%M:%S",
    "%d.%m.%y %H:%M",
    "%d/%m/%Y %H:%M:%S",
    "%m/%d/%Y %H:%M:%S",
    "%d/%m/%Y %H:%M",
    "%m/%d/%Y %H:%M",
    "%m/%d/%Y %I:%M:%S %p",  # clocks of 12 hours go with the month first more often than not
    "%d/%m/%Y %I:%M:%S %p",
    "%m/%d/%Y %I:%M %p",
    "%d/%m/%Y %I:%M %p",
    "%Y/%m/%d %H:%M:%S",
)
_DAY_AND_MONTH = str.maketrans("dm", "md")


@dataclass(slots=True)
class Look:
    """What one file seems to hold, judged by its first rows.

    ``roles`` says of each column that is not a sensor: "time", "label", "counter", "text" or "empty". ``labels`` has
    the first row of each value of the label, ``states`` the numbers that may stand for a sensor's texts such as Open
    and Closed; ``odd`` texts, such as Bad Input, seem to mean missing values. ``texts`` has one text a column and how
    many there are, ``units`` the row under the header. ``swapped`` is the time format with day and month exchanged, if
    that fits as well.
    """

    file: File
    file_format: FileFormat
    table: Table
    roles: dict[str, str] = field(default_factory=dict)
    time_format: str = "ISO8601"
    labels: dict[str, int] = field(default_factory=dict)
    variables: tuple[str, ...] = ()
    missing: int = 0
    states: dict[str, dict[str, int]] = field(default_factory=dict)
    odd: tuple[str, ...] = ()
    texts: dict[str, tuple[str, int]] = field(default_factory=dict)
    units: tuple[str, ...] = ()
    swapped: str | None = None

    def of_role(self, role: str) -> list[str]:
        """Return the columns of a role."""
        return [name for name, other in self.roles.items() if other == role]

    @property
    def n_sensors(self) -> int:
        """How many columns seem to be sensors."""
        return len(self.sensors)

    @property
    def sensors(self) -> list[str]:
        """The columns that seem to be sensors."""
        return [name for name in self.table.header if name not in self.roles]

    @property
    def time_name(self) -> str | None:
        """The column with times, if one seems to hold them."""
        return next(iter(self.of_role("time")), None)


def look_at(file: File) -> Look:
    """Return a guess of a file's content. A DataError if it has a table's name but cannot be read."""
    try:
        look = _look_at_arrays(file) if file.is_array else Look(file, *_opened(file))
        table = look.table
        first = next(iter(table.chunks(range(len(table.header)))), None)
    except (OSError, ValueError, MalformedError) as error:
        reason = " ".join(str(error).split())[:200]
        raise DataError(f"{file.path}: cannot be read as a table ({reason}); repair it or take it out") from error
    if first is not None:
        look.units = _units(first, look.file_format.decimal)
        _find_roles(look, first)
        _find_swapped(look)
        _find_labels(look)
    return look


def _look_at_arrays(file: File) -> Look:
    """Return the first of the widest arrays in a file, which seem to be recordings; a table without columns if none."""
    tables: dict[str, Table] = {}
    with contextlib.suppress(MalformedError):  # a pickle of something else, say: it is left out
        arrays = open_arrays(file.path, FileFormat())
        for name in arrays:
            with contextlib.suppress(MalformedError):
                tables[name] = arrays[name]
    widest = max((len(table.header) for table in tables.values()), default=0)
    wide = {name: table for name, table in tables.items() if len(table.header) == widest}
    table = next(iter(wide.values()), ArrayTable((), ()))
    if widest and not any(table.header):
        table = NamedTable(table, tuple(f"x{number}" for number in range(1, widest + 1)))
    return Look(file, FileFormat(), table, variables=tuple(wide) if len(tables) > 1 else ())


def _opened(file: File) -> tuple[FileFormat, Table]:
    """Return the likely format of a file, and the file; a text file that is not a table has no columns."""
    if file.is_parquet:
        return FileFormat(), open_parquet(file.path, FileFormat())
    file_format = sniff(file.path)
    number = int(file_format.header_line)
    lines, table = first_lines(file.path, file_format.encoding, number), None
    if len(lines) == number:
        names = names_in(lines[-1], file_format)
        table, issues = open_csv(file.path, file.name, file_format, number, names)
        if issues and len(names) > 1:
            raise MalformedError(f"line {issues[0].line}: {issues[0].text}")
    return file_format, table or CsvFile(file.path, file_format, number, header=(), n_rows=0)


def _find_roles(look: Look, rows: pd.DataFrame) -> None:
    """Guess what each column is from its name and its first rows."""
    n_missing = rows.isna().to_numpy().sum(axis=0).tolist()
    timed = False
    for place, (name, dtype) in enumerate(zip(look.table.header, rows.dtypes, strict=True)):
        numeric = pd.api.types.is_numeric_dtype(dtype)
        if n_missing[place] == len(rows):
            look.roles[name] = "empty"
        elif _COUNTER.fullmatch(name):
            look.roles[name] = "counter"
        elif LABEL.search(name) and rows[place].nunique() <= _MOST_LABELS:
            look.roles[name] = "label"
        elif not timed and (form := _time_format(name, rows, place, numeric=numeric)) is not None:
            look.roles[name], look.time_format, timed = "time", form, True
        elif not numeric or pd.api.types.is_bool_dtype(dtype):
            _look_at_texts(look, name, rows[place])
        else:
            look.missing += n_missing[place]


def _units(rows: pd.DataFrame, decimal: str) -> tuple[str, ...]:
    """Return the cells of the first row if none of them is a number, and those below are."""
    if len(rows) < 2:
        return ()
    above, below = (rows.iloc[place].dropna().astype("str") for place in (0, 1))
    texts = [cell for cell in above if cell.strip()]
    if any(as_number(cell, decimal) is not None or re.search(r"\d{2}", cell) for cell in texts):
        return ()
    under = [as_number(below[place], decimal) for place in above.index if place in below.index]
    return tuple(texts) if under and sum(number is not None for number in under) * 2 > len(under) else ()


def _find_swapped(look: Look) -> None:
    """Read all times if their first ones can be read with the day or with the month first."""
    other = look.time_format.translate(_DAY_AND_MONTH)
    if look.time_name is None or other not in TIME_FORMATS or other == look.time_format:
        return
    place = look.table.header.index(look.time_name)
    cells = pd.concat([rows[place] for rows in look.table.chunks([place])])
    spans = {}
    for form in (look.time_format, other):
        time = time_in_seconds(cells, form)
        if np.isfinite(time).all() and (np.diff(time) >= 0).all():
            spans[form] = float(time[-1] - time[0])
    if spans:
        look.time_format = min(spans, key=lambda form: spans[form])  # rows of days, rather than of months
        if len(spans) == 2 and len(set(spans.values())) == 1:
            look.swapped = other


def _look_at_texts(look: Look, name: str, cells: pd.Series) -> None:
    """Guess whether a column of texts is a sensor with two states or with texts among its numbers, or no sensor."""
    texts = cells.dropna().astype("str").str.strip()
    distinct = dict.fromkeys(texts)
    known = {text: _STATES[text.lower()] for text in distinct if text.lower() in _STATES}
    if len(known) == len(distinct) > 0:
        look.states[name] = known
        return
    odd = [text for text in distinct if as_number(text, look.file_format.decimal) is None]
    if len(odd) <= _MOST_ODD and texts.isin(odd).mean() < _FEW_ODD:
        look.odd = tuple(dict.fromkeys([*look.odd, *odd]))
        look.missing += int(texts.isin(odd).sum())
        return
    look.roles[name] = "text"
    if odd:
        look.texts[name] = (odd[0], len(distinct))


def _time_format(name: str, rows: pd.DataFrame, place: int, *, numeric: bool) -> str | None:
    """Return the format of a column's times, or None if it seems to hold none."""
    if numeric and not _TIME.search(name):
        return None
    cells = rows[place]
    filled = cells.dropna().head(1000)
    if pd.api.types.is_datetime64_any_dtype(cells.dtype):
        return "ISO8601"
    if numeric:
        if not (np.diff(filled.to_numpy(np.float64)) >= 0).all():
            return None
        return "milliseconds" if filled.iloc[0] > 1e11 else "seconds"
    return next((form for form in TIME_FORMATS if np.isfinite(time_in_seconds(filled, form)).all()), None)


def _find_labels(look: Look) -> None:
    """Read the whole label: a fault may begin with the last row."""
    label = label_of(look)
    if label is None:
        return
    look.labels = values_in(look.table, look.table.header.index(label))


def values_in(table: Table, column: int) -> dict[str, int]:
    """Return the first row of each value of a column, in order of appearance; the whole of it is read."""
    found: dict[str, int] = {}
    start = 0
    for rows in table.chunks([column]):
        codes, values = pd.factorize(rows[column].astype("object"))
        for code, value in enumerate(values):
            found.setdefault(canonical(value), start + int(np.argmax(codes == code)))
        start += len(rows)
    return found


def label_of(look: Look) -> str | None:
    """Return the most likely label column: one with a common name for labels before others."""
    candidates = look.of_role("label")
    order = ("anomaly", "label", "is_anomaly", "attack", "fault")
    return min(candidates, key=lambda name: order.index(name.lower()) if name.lower() in order else 9, default=None)
