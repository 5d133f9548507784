"""What is wrong with a CSV file: the slow search for the line and the column, once reading it has failed."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import numpy as np

from tsadbench.datasets.csv_layout import Layout
from tsadbench.errors import DataError

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+", re.ASCII)
_MISSING = {"", "nan", "na", "n/a", "#n/a", "<na>", "null", "none", "nat", "-", "?"}
_INFINITE = {"inf", "infinity"}
_SEPARATORS = ";,\t|"

Rows: TypeAlias = list[list[str]]
# Number of a line, and what is wrong with it: ": ..." or ", column ...: ...".
Fault: TypeAlias = tuple[int, str]


def header_fault(path: Path, lines: list[str], layout: Layout) -> DataError | None:
    """Return what is wrong with the header line, or None if it is as the layout says and rows follow.

    Parameters
    ----------
    path
        The file, for the message.
    lines
        All its lines, the header first.
    layout
        What the file must look like.
    """
    header = lines[0].split(layout.separator)
    missing = [column for column in layout.columns if column not in header]
    if missing:
        used = _separator(lines[0], layout)
        if used is not None:
            return DataError(
                f"{path}, line 1: expected columns separated by {layout.separator!r}, but {used!r} seems to be used; "
                f"write the file with {layout.separator!r}"
            )
        return DataError(f"{path}, line 1: columns are missing: {missing}; found {header}; correct the header line")
    twice = [column for column in layout.columns if header.count(column) > 1]
    if twice:
        return DataError(f"{path}, line 1: columns occur twice: {twice}; remove or rename one of each")
    if len(lines) == 1:
        return DataError(f"{path}, line 1: a header, but no rows follow; fetch or copy the file again")
    return None


def row_fault(path: Path, lines: list[str], layout: Layout) -> DataError:
    """Return what is wrong with the rows: first cells too few or too many, then wrong cells, then the order of times.

    Parameters
    ----------
    path
        The file, for the message.
    lines
        All its lines, the header first; the header is as the layout says.
    layout
        What the file must look like.
    """
    header, *rows = [line.split(layout.separator) for line in lines]
    for search in (_misshapen, _wrong_cells, _disorder):
        faults = list(search(header, rows, layout))
        if faults:
            number, text = faults[0]
            return DataError(f"{path}, line {number}{text}{_more(len(faults) - 1)}")
    return DataError(f"{path}: cannot be read, although no single cell is wrong; please report this file")


def _more(count: int) -> str:
    return "" if count == 0 else f" (and {count} more such {'line' if count == 1 else 'lines'})"


def _separator(line: str, layout: Layout) -> str | None:
    """Return the separator that the header line seems to use in place of the layout's, or None."""
    others = [other for other in _SEPARATORS if other != layout.separator]
    for other in others:
        if set(layout.columns) <= set(line.split(other)):
            return other
    if layout.separator in line:
        return None
    most = max(others, key=line.count)
    return most if most in line else None


def _misshapen(header: list[str], rows: Rows, layout: Layout) -> Iterator[Fault]:
    for number, row in enumerate(rows, start=2):
        if len(row) == len(header):
            continue
        if row == [""]:
            yield number, ": the line is blank; remove it"
            continue
        found = f": expected {len(header)} cells separated by {layout.separator!r}, found {len(row)}"
        if number == len(rows) + 1 and len(row) < len(header):
            yield number, f"{found}; the file ends here and seems to be cut off: fetch or copy it again"
        else:
            yield number, f"{found}; correct the line"


def _wrong_cells(header: list[str], rows: Rows, layout: Layout) -> Iterator[Fault]:
    numbers = [(header.index(column), column) for column in layout.numbers]
    times = _times(header, rows, layout)
    no_time = [] if times is None else np.isnan(layout.seconds(times)).tolist()
    for i, row in enumerate(rows):
        if times is not None and no_time[i]:
            yield i + 2, f", column {layout.time!r}: {_time_fault(times[i], layout)}"
            continue
        for place, column in numbers:
            fault = _number_fault(row[place], is_label=column == layout.label)
            if fault is not None:
                yield i + 2, f", column {column!r}: {fault}"
                break


def _times(header: list[str], rows: Rows, layout: Layout) -> list[str] | None:
    if layout.time is None:
        return None
    place = header.index(layout.time)
    return [row[place] for row in rows]


def _time_fault(cell: str, layout: Layout) -> str:
    if cell.strip().lower() in _MISSING:
        return f"the time is missing (the cell holds {cell!r}); fill it in or remove the line"
    return f"expected a time written as {layout.time_format}, found {cell!r}; correct the cell"


def _number_fault(cell: str, *, is_label: bool) -> str | None:
    text = cell.strip()
    if _NUMBER.fullmatch(text):
        value = float(text)
        if is_label and value not in (0.0, 1.0):
            return f"expected a label 0 or 1, found {cell!r}; correct the cell"
        return None if math.isfinite(value) else _infinite(cell)
    bare = text.lower().lstrip("+-")
    if bare in _INFINITE:
        return _infinite(cell)
    if bare in _MISSING or text in _MISSING:
        return f"a value is missing (the cell holds {cell!r}); fill it in or remove the line"
    if _DECIMAL_COMMA.fullmatch(text):
        return f"expected a number, found {cell!r}; write numbers with a decimal point"
    return f"expected a number, found {cell!r}; correct the cell"


def _infinite(cell: str) -> str:
    return f"expected a finite number, found {cell!r}; replace it or remove the line"


def _disorder(header: list[str], rows: Rows, layout: Layout) -> Iterator[Fault]:
    times = _times(header, rows, layout)
    if times is None:
        return
    for i in (np.flatnonzero(np.diff(layout.seconds(times)) <= 0) + 1).tolist():
        here = f", column {layout.time!r}: the time {times[i]!r}"
        if layout.seconds(times[i - 1 : i])[0] == layout.seconds(times[i : i + 1])[0]:
            yield i + 2, f"{here} is that of line {i + 1} too; remove one of the two lines"
        else:
            yield i + 2, f"{here} lies before that of line {i + 1}, {times[i - 1]!r}; sort the lines by time"
