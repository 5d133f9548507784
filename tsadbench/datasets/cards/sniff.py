"""Guess the format of a CSV file from its first lines."""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tsadbench.base.file_format import FileFormat
from tsadbench.datasets.reading.text import SEARCHED_LINES, first_lines, split

_SAMPLED_LINES = 200
# The comma comes last: with a decimal comma, every line holds it as well.
_SEPARATORS = (";", "\t", "|", ",")
_NUMBER = re.compile(r"[+-]?(\d+[.,]?\d*|[.,]\d+)([eE][+-]?\d+)?")
_COMMA = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
_POINT = re.compile(r"[+-]?\d+\.\d+([eE][+-]?\d+)?")


def sniff(path: Path) -> FileFormat:
    """Return the likely format of a CSV file. An OSError if the file cannot be read."""
    with path.open("rb") as file:
        encoding = "utf-16" if file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8"
    try:
        lines = first_lines(path, encoding, _SAMPLED_LINES)
    except UnicodeDecodeError:
        encoding = "cp1252"
        lines = first_lines(path, "latin-1", _SAMPLED_LINES)
    lines = [line for line in lines if line.strip()]
    separator = max(_SEPARATORS, key=lambda candidate: _consistency(lines, candidate))
    rows = [split(line, separator) for line in lines]
    cells = Counter(len(row) for row in rows).most_common(1)[0][0] if rows else 1
    header_line = next(
        (number for number, row in enumerate(rows[:SEARCHED_LINES], start=1) if _is_header(row, cells)), 1
    )  # fmt: skip
    return FileFormat(
        separator=separator,
        decimal=_decimal([cell.strip() for row in rows[header_line:] for cell in row], separator),
        encoding=encoding,
        header_line=header_line,
    )


def _decimal(cells: Sequence[str], separator: str) -> str:
    """Return the likely decimal mark: commas that may all separate thousands count as such beside decimal points."""
    commas = [cell for cell in cells if _COMMA.fullmatch(cell)]
    clear = any(not _THOUSANDS.fullmatch(cell) for cell in commas)
    points = any(_POINT.fullmatch(cell) and not _THOUSANDS.fullmatch(cell.replace(".", ",")) for cell in cells)
    return "," if clear or (commas and separator != "," and not points) else "."


def _consistency(lines: Sequence[str], separator: str) -> tuple[float, int]:
    """Return how well a separator explains the lines: the share of lines with the most common number of cells."""
    counts = Counter(len(split(line, separator)) for line in lines)
    if not counts:
        return (0.0, 0)
    cells, agreeing = counts.most_common(1)[0]
    if cells < 2:
        return (0.0, 0)
    return (round(agreeing / len(lines), 1), int(separator != ","))


def _is_header(row: Sequence[str], cells: int) -> bool:
    names = [cell.strip() for cell in row]
    filled = [name for name in names if name]
    return len(row) == cells and len(filled) * 2 > cells and not any(_NUMBER.fullmatch(name) for name in filled)
