"""Text files: their encoding, their lines, and the cells of a line."""

from __future__ import annotations

import contextlib
import csv
import itertools
from collections.abc import Iterable
from pathlib import Path

from tsadbench.base.file_format import FileFormat

# A header that is searched for is among the first lines.
SEARCHED_LINES = 10
SEPARATORS = ",;\t|"


class MalformedError(Exception):
    """A file is not written as its format says. Readers add the file's name.

    Parameters
    ----------
    text
        What was expected, what was found, what to do.
    line
        The line, counted from 1; None for the whole file.
    """

    def __init__(self, text: str, line: int | None = None) -> None:
        super().__init__(text)
        self.text = text
        self.line = line


def codec(encoding: str) -> str:
    """Return the codec of an encoding; for UTF-8, the one that drops the byte order mark that spreadsheets write."""
    return "utf-8-sig" if encoding.lower().replace("_", "-") in ("utf-8", "utf8") else encoding


def first_lines(path: Path, encoding: str, count: int) -> list[str]:
    """Return the first lines of a file.

    An OSError or an UnicodeDecodeError if it cannot be read, or is not written in the encoding.
    """
    with path.open(encoding=codec(encoding), newline=None) as file:
        return [line.rstrip("\n") for line in itertools.islice(file, count)]


def split(line: str, separator: str) -> list[str]:
    """Return a line's cells; a quoted cell may hold the separator."""
    if '"' in line:
        with contextlib.suppress(csv.Error):  # a cell beyond csv's limit is no number or name either way
            return next(csv.reader([line], delimiter=separator), [])
    return line.split(separator)


def cleaned(names: Iterable[str], prefix: str) -> list[str]:
    """Return column names without the spaces around them and without a prefix."""
    return [name.strip().strip('"').strip().removeprefix(prefix).strip() for name in names]


def names_in(line: str, file_format: FileFormat) -> list[str]:
    """Return the column names that a line holds."""
    return cleaned(split(line, file_format.separator), file_format.remove_prefix)


def is_blank(line: str, separator: str) -> bool:
    """Whether a line has no cell with content."""
    return not line.strip(f"{separator} \t\r\n")


def cells_fault(expected: int, found: int, separator: str, advice: str = "correct the line") -> str:
    """Return the message for a line with too few or too many cells."""
    return f"expected {expected} cells separated by {separator!r}, found {found}; {advice}"


def encoding_fault(encoding: str, byte: int) -> str:
    """Return the message for a byte that the encoding does not allow."""
    return f"not {encoding}: found the byte 0x{byte:02x}; set encoding (often cp1252), or convert the file"


BLANK_LINE = "the line is empty, but others follow; remove it"
