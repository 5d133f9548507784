"""A CSV file by the chunk: its lines are counted and measured first, then pandas reads them.

From version 3.1 on, pandas reads a number to the nearest float64.
"""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from tsadbench.base.file_format import FileFormat
from tsadbench.datasets.cards.columns import cleaned
from tsadbench.datasets.cards.files import CHUNK_CELLS, File
from tsadbench.utils.issues import Issues

SEARCHED_LINES = 10
SEPARATORS = ",;\t|"
_CHUNK_ROWS = 100_000


@dataclass(frozen=True, slots=True)
class Csv:
    """How one CSV file is read.

    Parameters
    ----------
    path
        The file.
    written
        How it is written.
    header_line
        Number of the line that names the columns, counted from 1.
    header
        The columns' names, cleaned.
    n_rows
        Rows after the header; lines without any cell at the end are none.
    """

    path: Path
    written: FileFormat
    header_line: int
    header: tuple[str, ...]
    n_rows: int

    def line(self, row: int) -> int:
        """Return the line, counted from 1, on which a row stands."""
        return self.header_line + 1 + row

    def chunks(self, places: Sequence[int], missing: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Give the rows in order, with the numbers of the columns as their names; times and labels come as texts.

        Parameters
        ----------
        places
            The columns wanted, by number.
        missing
            Texts that mean a missing value, beside those that pandas knows.
        """
        if self.n_rows == 0:
            return
        rows = min(_CHUNK_ROWS, max(1, CHUNK_CELLS // len(self.header)))
        with pd.read_csv(
            self.path,
            sep=self.written.separator,
            decimal=self.written.decimal,
            encoding=_with_mark(self.written.encoding),
            header=None,
            names=range(len(self.header)),
            usecols=sorted(places),
            skiprows=self.header_line,
            nrows=self.n_rows,
            na_values=list(missing),
            skip_blank_lines=False,
            skipinitialspace=True,
            low_memory=False,
            chunksize=rows,
        ) as reader:
            yield from reader


def open_csv(file: File, written: FileFormat, header_line: int, header: str, issues: Issues) -> Csv | None:
    """Return how a file is read, its lines counted and measured; None, and why among the issues, if they do not do.

    Parameters
    ----------
    file, written
        The file, and how it is written.
    header_line, header
        Number of the line that names the columns, and that line.
    issues
        Where to note what is wrong.
    """
    n_rows = measure(file.path, file.name, written, header_line, issues)
    return None if n_rows is None else Csv(file.path, written, header_line, tuple(names_in(header, written)), n_rows)


def header_lines(path: Path, written: FileFormat, count: int) -> list[str]:
    """Return the first lines of a file.

    Raises
    ------
    OSError, UnicodeDecodeError
        If it cannot be read, or is not written in the encoding.
    """
    with path.open(encoding=_with_mark(written.encoding), newline=None) as file:
        return [line.rstrip("\n") for line in itertools.islice(file, count)]


def split(line: str, separator: str) -> list[str]:
    """Return a line's cells; a quoted cell may hold the separator."""
    return next(csv.reader([line], delimiter=separator), [])


def names_in(line: str, written: FileFormat) -> list[str]:
    """Return the columns' names that a line holds."""
    return cleaned(split(line, written.separator), written.remove_prefix)


def measure(path: Path, name: str, written: FileFormat, header_line: int, issues: Issues) -> int | None:
    """Return how many rows follow the header; None, and why among the issues, if lines are not as long as it.

    pandas would fill up a line that has been cut off, and nobody would know.

    Parameters
    ----------
    path, name
        The file, and its name for messages.
    written
        How it is written.
    header_line
        Number of the header's line.
    issues
        Where to note what is wrong.
    """
    separator = written.separator
    expected, last, sound = 0, header_line, True
    blank: list[int] = []
    try:
        with path.open(encoding=_with_mark(written.encoding), newline=None) as file:
            for number, line in enumerate(file, start=1):
                if number < header_line:
                    continue
                cells = line.count(separator) + 1 if '"' not in line else len(split(line, separator))
                if number == header_line:
                    expected = cells
                elif not line.strip(f"{separator} \t\r\n"):
                    blank.append(number)
                    continue
                elif cells != expected:
                    issues.add(
                        name,
                        f"expected {expected} cells separated by {separator!r}, found {cells}; correct the line",
                        number,
                        kind="cells",
                    )
                    sound = False
                elif "\x00" in line:
                    issues.add(name, "found a NUL character; the file seems damaged, copy it again", number, "NUL")
                    sound = False
                for gap in blank:
                    issues.add(name, "the line is empty, but others follow; remove it", gap, kind="empty")
                    sound = False
                blank.clear()
                last = number
    except UnicodeDecodeError:
        note_encoding(path, name, written, issues)
        return None
    return last - header_line if sound else None


def note_encoding(path: Path, name: str, written: FileFormat, issues: Issues) -> None:
    """Note the first line that is not written in the encoding."""
    encoding = written.encoding
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode(encoding)
            except UnicodeDecodeError as error:
                text = f"not {encoding}: found the byte 0x{line[error.start]:02x}; set encoding (often cp1252)"
                issues.add(name, text, number)
                return
    issues.add(name, f"not {encoding}; set encoding")


def _with_mark(encoding: str) -> str:
    """Return an encoding that takes the mark off which spreadsheets put before UTF-8."""
    return "utf-8-sig" if encoding.lower().replace("_", "-") in ("utf-8", "utf8") else encoding
