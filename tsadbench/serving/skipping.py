"""Rows of an input that has malformed lines: these are skipped and reported, and the others are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import pandas as pd

from tsadbench.datasets.formats import BLANK_LINE, Table, is_blank
from tsadbench.serving.rows import Flaw, RowReader, Rows

# So many malformed lines in a row end a recording: as many sampling steps as may lie between two recordings of one
# session (`tsadbench.datasets.sessions`).
BREAK = 10

# Receives the place of a skipped line and what is wrong with it.
OnSkip: TypeAlias = Callable[[str], None]


class SkippingReader:
    """Reads what a `RowReader` can read of its input, whatever lies between.

    A skipped line is as if it were not there: rows before and after it are neighbours in one recording. After `BREAK`
    skipped lines in a row the recording ends, and the next row begins another one: no window reaches over the break, no
    value is carried over it, and times may begin anew.

    Parameters
    ----------
    reader
        Reads the rows. Its header must be sound.
    separator
        Of the cells of a line.
    on_skip
        Is told of each skipped line.
    """

    def __init__(self, reader: RowReader, separator: str, on_skip: OnSkip) -> None:
        self._reader = reader
        self._separator = separator
        self._on_skip = on_skip
        self._n_blank = 0
        self._in_a_row = 0
        self._begins = False

    @property
    def reader(self) -> RowReader:
        """The reader of the rows."""
        return self._reader

    def read(self, lines: Sequence[str]) -> Iterator[Rows]:
        """Yield the rows that the next lines hold; raises as `RowReader.read` does for a malformed header."""
        pending: list[str] = []
        for line in self._reader.without_header(lines):
            if is_blank(line, self._separator):
                yield from self._rows(pending)
                pending = []
                self._n_blank += 1  # at the end, empty lines are no fault
            else:
                while self._n_blank:
                    self._n_blank -= 1
                    self._skip(BLANK_LINE)
                pending.append(line)
        yield from self._rows(pending)

    def read_table(self, table: Table) -> Iterator[Rows]:
        """Yield the rows of a table without lines."""
        self._reader.match(table)
        yield from self._walk(len(table.frame), partial(_parsed_frame, table.frame))

    def _rows(self, lines: Sequence[str]) -> Iterator[Rows]:
        if lines and self._reader.header is not None:
            yield from self._walk(len(lines), partial(_parsed_lines, lines))

    def _walk(self, n_rows: int, parse: Callable[[RowReader, int, int], tuple[Rows, Flaw | None]]) -> Iterator[Rows]:
        """Yield the sound rows among the next ones.

        After a malformed row, rows are read one by one, then twice as many at a time: each row is read a few times at
        most, however many are malformed.
        """
        start, size = 0, n_rows
        while start < n_rows:
            stop = min(start + size, n_rows)
            ahead = self._reader.copy()
            rows, flaw = parse(ahead, start, stop)
            if flaw is not None:  # what lies behind the flaw must leave no trace
                ahead = self._reader.copy()
                rows, _ = parse(ahead, start, start + flaw.row)
            self._reader = ahead
            if len(rows):
                yield replace(rows, begins=self._begins)
                self._in_a_row, self._begins = 0, False
            if flaw is None:
                start, size = stop, 2 * size
            else:
                start, size = start + flaw.row + 1, 1
                self._skip(flaw.text)

    def _skip(self, text: str) -> None:
        self._on_skip(self._reader.told(text))
        self._reader.skip(1)
        self._in_a_row += 1
        if self._in_a_row == BREAK:
            self._reader.restart()
            self._begins = True


def _parsed_lines(lines: Sequence[str], reader: RowReader, start: int, stop: int) -> tuple[Rows, Flaw | None]:
    return reader.parse(lines[start:stop])


def _parsed_frame(frame: pd.DataFrame, reader: RowReader, start: int, stop: int) -> tuple[Rows, Flaw | None]:
    return reader.parse_frame(frame.iloc[start:stop])
