"""CSV files by the chunk: their lines are counted and checked first, then pandas reads them.

From version 3.1 on, pandas reads a number to the nearest float64.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, cast

import pandas as pd
from packaging.version import Version

from tsadbench.base.file_format import FileFormat
from tsadbench.datasets.reading.cells import missing_texts
from tsadbench.datasets.reading.states import texts_in
from tsadbench.datasets.reading.text import BLANK_LINE, cells_fault, codec, encoding_fault, is_blank, split
from tsadbench.utils.issues import Issue, condensed

# Cells in memory at a time: few enough to be small beside a long file, enough for its reader to be fast.
CHUNK_CELLS = 1_000_000
_CHUNK_ROWS = 100_000
_MOST_ISSUES = 1_000
_WIDE = 1_000
# Numbers are read to the last bit: what pandas does by itself from version 3.1 on, where this option is deprecated.
_EXACTLY: Literal["round_trip"] | None = "round_trip" if Version(pd.__version__) < Version("3.1") else None


@dataclass(frozen=True, slots=True)
class CsvFile:
    """A CSV file whose lines have been checked.

    Parameters
    ----------
    path
        The file.
    file_format
        How it is written.
    header_line
        Number of the line that names the columns, counted from 1.
    header
        The columns' names, cleaned.
    n_rows
        Rows after the header; lines without any cell at the end are none.
    """

    path: Path
    file_format: FileFormat
    header_line: int
    header: tuple[str, ...]
    n_rows: int

    def line(self, row: int) -> int:
        """Return the line, counted from 1, of a row."""
        return self.header_line + 1 + row

    def chunks(self, columns: Sequence[int]) -> Iterator[pd.DataFrame]:
        """Yield some columns' rows in order; columns are named by their numbers, times and labels are texts."""
        if self.n_rows == 0:
            return
        missing = missing_texts(self.file_format)
        # By column, which pandas' type hints want to have a name.
        texts = texts_in(self.file_format, self.header)
        absent = {column: sorted(missing.difference(texts.get(column, ()))) for column in columns} if texts else {}
        with pd.read_csv(
            self.path,
            sep=self.file_format.separator,
            decimal=self.file_format.decimal,
            encoding=codec(self.file_format.encoding),
            header=None,
            names=range(len(self.header)),
            usecols=sorted(columns),
            skiprows=self.header_line,
            nrows=self.n_rows,
            na_values=cast("Mapping[str, list[str]]", absent) or sorted(missing),
            dtype={column: "str" for column in columns if column in texts} or None,
            keep_default_na=False,
            float_precision=_EXACTLY,
            skip_blank_lines=False,
            skipinitialspace=True,
            low_memory=False,
            chunksize=min(_CHUNK_ROWS, max(1, CHUNK_CELLS // len(self.header))),
        ) as reader:
            yield from reader

    @property
    def is_wide(self) -> bool:
        """Whether it has so many columns that pandas takes longer for them than for their cells."""
        return len(self.header) > _WIDE

    def rows(self, columns: Sequence[int]) -> Iterator[list[str]]:
        """Yield some columns' cells, row by row, in the order of the columns."""
        separator = self.file_format.separator
        with self.path.open(encoding=codec(self.file_format.encoding), newline=None) as file:
            for line in itertools.islice(file, self.header_line, self.header_line + self.n_rows):
                cells = split(line.rstrip("\n"), separator)
                yield [cells[column] for column in columns]


def open_csv(
    path: Path, name: str, file_format: FileFormat, header_line: int, names: Sequence[str]
) -> tuple[CsvFile | None, list[Issue]]:
    """Count and check the lines below the header: pandas would fill up a line that has been cut off without a word.

    Parameters
    ----------
    path, name
        The file, and its name for messages.
    file_format
        How it is written.
    header_line, names
        Number of the line that names the columns, and the names in it.

    Returns
    -------
    tuple
        How the file is read, None if a line is malformed; what is wrong with its lines.

    Raises
    ------
    UnicodeDecodeError
        If it is not written in the encoding.
    """
    separator, expected = file_format.separator, len(names)
    issues: list[Issue] = []
    last, blank = header_line, list[int]()
    with path.open(encoding=codec(file_format.encoding), newline=None) as file:
        for number, line in enumerate(file, start=1):
            if number <= header_line:
                continue
            if is_blank(line, separator):
                blank.append(number)
                continue
            issues += [Issue(name, BLANK_LINE, gap, kind="empty") for gap in blank]
            blank.clear()
            cells = line.count(separator) + 1 if '"' not in line else len(split(line.rstrip("\n"), separator))
            if cells != expected:
                issues.append(Issue(name, cells_fault(expected, cells, separator), number, kind="cells"))
            elif "\x00" in line:
                issues.append(
                    Issue(name, "found a NUL character; the file seems damaged, copy it again", number, "NUL")
                )
            if len(issues) > _MOST_ISSUES:  # a long file of another form must not fill the memory
                issues = condensed(issues)
            last = number
    if issues and (issues[-1].line, issues[-1].kind) == (last, "cells") and cells < expected:
        advice = "the file ends here and seems to be cut off, copy it again"
        issues[-1] = replace(issues[-1], text=cells_fault(expected, cells, separator, advice))
    return None if issues else CsvFile(path, file_format, header_line, tuple(names), last - header_line), issues


def encoding_issue(path: Path, name: str, encoding: str) -> Issue:
    """Return the first line that is not written in the encoding."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode(encoding)
            except UnicodeDecodeError as error:
                return Issue(name, encoding_fault(encoding, line[error.start]), number)
    return Issue(name, f"not {encoding}; set encoding")
