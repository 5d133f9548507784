"""Reads CSV files and array files as tables, and cells as numbers."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from packaging.version import Version

from tsadbench.base.file_format import FileFormat
from tsadbench.datasets.arrays import ARRAYS, read_arrays
from tsadbench.datasets.times import are_dates
from tsadbench.utils.arrays import BoolArray, FloatArray, IntArray
from tsadbench.utils.issues import SHOWN, Issue
from tsadbench.utils.progress import progress
from tsadbench.utils.text import first_of, one_line

# pandas' default texts for missing values.
_TEXTS = "#N/A #NA -1.#IND -1.#QNAN -NaN -nan 1.#IND 1.#QNAN <NA> N/A NA NULL NaN None n/a nan null"
MISSING = frozenset(["", "#N/A N/A", *_TEXTS.split()])
SEARCHED_LINES = 10
_MOST_ISSUES = 1_000  # of one file
# Exact numbers, which are the default from pandas 3.1 on, where this option is deprecated.
_EXACTLY: Literal["round_trip"] | None = "round_trip" if Version(pd.__version__) < Version("3.1") else None
_UNDECODED = re.compile("[\udc80-\udcff]")


def placed(frame: pd.DataFrame, name: str, first: int = 0) -> pd.DataFrame:
    """Return a frame indexed by file and line (from 1), for messages.

    Files without lines (``first`` is 0) are indexed by row, from 0.
    """
    numbers = range(first, first + len(frame))
    frame.index = pd.MultiIndex.from_product([[name], numbers], names=[None, "line" if first else "row"])
    frame.attrs = {"name": name}  # "header": the line with the columns' names
    return frame


def row_issues(places: pd.Index, rows: IntArray, text: str | Sequence[str]) -> Iterator[Issue]:
    """Yield issues of the first rows; the last one represents all others. ``text`` is one for all or one per issue."""
    for number, row in enumerate(rows[:SHOWN].tolist()):
        (file, line), count = places[row], 1 if number < SHOWN - 1 else len(rows) - SHOWN + 1
        fault, is_line = text if isinstance(text, str) else text[number], places.names[1] == "line"
        fault += "" if is_line else f" (row {line}, counted from 0)"
        yield Issue(str(file), fault, int(str(line)) if is_line else None, None, count)


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Whether a name equals or matches one of these patterns."""
    return any(name == pattern or fnmatchcase(name, pattern) for pattern in patterns)


def states_of(form: FileFormat, sensor: str) -> dict[str, float]:
    """Return the numbers for texts in a sensor's cells; if several patterns have a text, the first decides."""
    fitting = [dict(codes) for pattern, codes in form.states if matches(sensor, [pattern])]
    return {text: code for codes in reversed(fitting) for text, code in codes.items()}


def read_files(
    files: Mapping[str, Path], form: Callable[[str], FileFormat], issues: list[Issue], **wanted: Sequence[str]
) -> dict[str, dict[str, pd.DataFrame]]:
    """Read files, given by their names in messages; ``form`` returns the format of each.

    Returns the tables of each readable file by array name ("" if the file is one table), and adds the problems of other
    files to ``issues``. Tables are indexed as by `placed`; unnamed array columns are a `RangeIndex`. ``wanted``
    is passed to `_read_csv`.
    """
    tables = dict[str, dict[str, pd.DataFrame]]()
    for done, (name, path) in enumerate(files.items()):
        if len(files) > 1:  # one of several files that somebody else counts
            progress(done, len(files), name)
        try:
            found = read_arrays(path) if path.suffix.lower() in ARRAYS else {}
            if not found and (lines := _read_csv(path, name, form(name), issues, **wanted)) is not None:
                tables[name] = {"": lines}
        except (OSError, ValueError) as error:
            issues.append(Issue(name, f"cannot be read: {one_line(str(error), 200)}"))
            continue
        for array, frame in found.items():
            if not isinstance(frame.columns, pd.RangeIndex):
                frame.columns = names_of(frame.columns, form(name))
            called = f"{name}, variable {array}" if len(found) > 1 else name
            tables.setdefault(name, {})[array] = placed(frame, called)
    return tables


def _read_csv(
    path: Path,
    name: str,
    form: FileFormat,
    issues: list[Issue],
    *,
    needed: Sequence[str] = (),
    sensors: Sequence[str] = (),
    values: Sequence[str] = (),
    texts: Sequence[str] = (),
) -> pd.DataFrame | None:
    """Return the table in a CSV file, or None after adding an issue.

    The ``needed`` columns and the patterns ``sensors`` identify the header. If the first line holds only ``values``,
    the file has no header. Columns ``texts`` are read as text even if they look like numbers. Columns that the format
    calls unused are left out, unless they are needed or texts.
    """
    before, separator, encoding = len(issues), form.separator, codec(form.encoding)
    # Check all lines ourselves, because pandas silently pads truncated lines.
    with path.open(encoding=encoding, errors="surrogateescape", newline=None) as file:
        lines = enumerate(file, start=1)
        head = list(islice(lines, SEARCHED_LINES if form.header_line == "search" else form.header_line))
        named = [(number, names_of(split(line.rstrip("\n"), separator), form)) for number, line in head]
        header, names = next((one for one in named if is_header(*one, form, needed, sensors)), (0, []))
        if values and named and set(named[0][1]) <= set(values):
            header, names = 0, [""] * len(named[0][1])
        elif not names:
            issues.append(Issue(name, f"no column names; set header_line ({len(head)})", 1))
        elif len(names) == 1 and re.search(r"[,;\t|]", names[0]):
            fault = f"expected cells separated by {separator!r}, found {names[0][:80]!r}; set separator"
            issues.append(Issue(name, fault, header))
        first = header + 1 + (form.units_line and header > 0)
        last = first - 1
        for number, line in chain(head, lines) if len(issues) == before else ():
            if not line.isascii() and (byte := _UNDECODED.search(line)):
                fault = f"not {form.encoding}: found the byte 0x{ord(byte[0]) - 0xDC00:02x}"
                issues.append(Issue(name, f"{fault}; set encoding (often cp1252), or convert the file", number))
                break
            if number < first or not line.strip(f"{separator} \t\r\n"):  # empty lines at the end are fine
                continue
            if number > last + 1:
                fault = "the line is empty, but others follow; remove it"
                issues.append(Issue(name, fault, last + 1, count=number - last - 1))
            cells = line.count(separator) + 1 if '"' not in line else len(split(line.rstrip("\n"), separator))
            if cells != len(names):
                found = f"found {cells}; correct the line" if cells else "found a quote that is not closed"
                fault = f"expected {len(names)} cells separated by {separator!r}, {found}"
                issues.append(Issue(name, fault, number, kind="cells"))
            if len(issues) > before + _MOST_ISSUES:  # a long file in another format must not fill the memory
                break
            last = number
    if len(issues) > before:
        return None
    kept = {i: one for i, one in enumerate(names) if one in (*needed, *texts) or not matches(one, form.unused)}
    as_texts = [i for i, one in kept.items() if one in texts or _holds_texts(form, one)]
    absent: dict[Any, list[str]] = {i: [*MISSING, *form.missing] for i in kept if i not in as_texts}
    frame: pd.DataFrame = pd.read_csv(
        path,
        sep=separator,
        decimal=form.decimal,
        encoding=encoding,
        header=None,
        names=range(len(names)),
        usecols=list(kept),
        index_col=False,
        na_values=absent,
        keep_default_na=False,
        dtype=dict.fromkeys(as_texts, "str"),
        float_precision=_EXACTLY,
        skip_blank_lines=False,
        skipinitialspace=True,
        skiprows=first - 1,
        nrows=last - first + 1,
    )
    frame.columns = list(kept.values())
    frame = placed(frame, name, first)
    frame.attrs["header"] = header
    return frame


def _holds_texts(form: FileFormat, column: str) -> bool:
    """Whether a column must be read as text: dates, sensor names (such as NA), or states."""
    if form.long is not None and column in form.long:
        return column == form.long[0] or bool(form.states)
    is_text = column in form.time and are_dates(form.time_formats)
    return is_text or bool(states_of(form, column))


def is_header(
    number: int, names: Sequence[str], form: FileFormat, needed: Sequence[str], sensors: Sequence[str] = ()
) -> bool:
    """Whether the line of this number, from 1, with these cells is the header."""
    if form.header_line != "search":
        return number == form.header_line and any(names)
    return set(needed) <= set(names) and all(any(matches(one, [pattern]) for one in names) for pattern in sensors)


def split(line: str, separator: str) -> list[str]:
    """Return a line's cells; a quoted cell may hold the separator. A line whose quote is not closed has none."""
    reader = csv.reader([line, ""], delimiter=separator, skipinitialspace=True)  # as `read_csv` reads it
    try:
        cells = next(reader)
    except csv.Error:  # cells beyond csv's limit, or with NUL, are invalid anyway
        return line.split(separator)
    return cells if reader.line_num == 1 else []


def names_of(cells: Iterable[str], form: FileFormat) -> list[str]:
    """Return column names without surrounding spaces and the prefix."""
    return [cell.strip().strip('"').strip().removeprefix(form.remove_prefix).strip() for cell in cells]


def codec(encoding: str) -> str:
    """Return the codec of an encoding; for UTF-8, the codec that drops the byte order mark of spreadsheets."""
    return "utf-8-sig" if encoding.lower().replace("_", "-") in ("utf-8", "utf8") else encoding


def numbers_of(
    cells: pd.Series, form: FileFormat, states: Mapping[str, float] | None = None
) -> tuple[FloatArray, BoolArray]:
    """Return a column's numbers [n_rows], NaN where missing, and a mask of cells that are not finite numbers.

    ``states`` maps texts to numbers.
    """
    absent = cells.isna().to_numpy()
    if states or not pd.api.types.is_numeric_dtype(cells.dtype):
        texts = cells.astype(object).map(lambda cell: cell.strip() if isinstance(cell, str) else cell)
        if states:  # booleans in Parquet, which Python writes with a capital letter
            texts = texts.map(lambda cell: states.get(str(cell), states.get(str(cell).lower(), cell)))
        absent = (texts.isna() | texts.isin(MISSING | set(form.missing))).to_numpy()
        if form.decimal != ".":  # with a decimal comma, a text with a point is not a number
            pointed = str.maketrans(f"{form.decimal}.", ".?")
            texts = texts.map(lambda cell: cell.translate(pointed) if isinstance(cell, str) else cell)
        cells = pd.to_numeric(texts, errors="coerce")
    numbers = cells.to_numpy(np.float64, na_value=np.nan)
    codes = pd.to_numeric(pd.Series(form.missing, dtype=object), errors="coerce").dropna()
    absent = absent | np.isin(numbers, codes)  # -999 matches -999.0, too
    return np.where(absent, np.nan, numbers), ~np.isfinite(numbers) & ~absent


def header_fault(names: Sequence[str], needed: Mapping[str, str]) -> str:
    """Return which of these columns (name -> role) are missing or occur twice, or ""."""
    faults = [
        f"the {what} {name!r} {'occurs twice' if name in names else 'is missing'}"
        for name, what in needed.items()
        if names.count(name) != 1
    ]
    return f"{first_of(faults, SHOWN)}; the columns are {first_of([*map(repr, names)], 20)}" if faults else ""
