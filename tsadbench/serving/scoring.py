"""Score files, or rows as they arrive: what `tsadbench score` writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from tsadbench.base.file_format import FileFormat
from tsadbench.base.recording import Recording
from tsadbench.datasets.boxed import ARRAYS
from tsadbench.datasets.formats import PARQUET, Table, read_files
from tsadbench.errors import DataError, UsageError
from tsadbench.serving.follow import Lines, Piece, Restarted
from tsadbench.serving.model import Model, ScoredRows
from tsadbench.serving.resampled import read_resampled
from tsadbench.serving.rows import RowReader, Rows
from tsadbench.serving.skipping import OnSkip, SkippingReader
from tsadbench.serving.stream import Stream
from tsadbench.utils.arrays import IntArray
from tsadbench.utils.issues import raise_if_any

_BYTES_AT_ONCE = 2**22


def score_file(
    model: Model,
    path: Path,
    file_format: FileFormat,
    *,
    contributions: bool,
    on_skip: OnSkip | None = None,
    needs_time: bool = False,
) -> ScoredRows:
    """Score a whole file: CSV, Parquet, or one with an array.

    ``on_skip`` receives each malformed line, which is skipped then; None: such a line is a DataError that names it.
    With ``needs_time`` a file without its column of times is malformed; otherwise its rows are numbered. A UsageError
    if lines are to be skipped of a file whose rows are resampled.
    """
    if file_format.resample_every is None:
        reader = RowReader(str(path), file_format, model.card.sensors, needs_time=needs_time)
        parts, has_times, notes = _read_rows(reader, path, file_format, model.card.sensors, on_skip)
    elif on_skip is not None:
        raise UsageError(
            f"{model.card.label} was fitted on resampled rows: its grid is made of all lines of a file, so that none "
            "can be skipped; correct the lines, or leave --on-error skip out"
        )
    else:
        parts, has_times, notes = [read_resampled(path, file_format, model.card.sensors)], bool(file_format.time), ()
    recordings = _recordings(parts)
    if not recordings:
        raise DataError(f"{path}: it has no rows that can be used; expected some below the sensors' names")
    scored = [_scored_whole(model, path.stem, rows, contributions=contributions) for rows in recordings]
    together = scored[0] if len(scored) == 1 else _together(scored)
    time = [rows.time for rows in recordings if rows.time is not None]
    return replace(
        together,
        time=np.concatenate(time) if time and has_times else None,
        notes=notes,
        numbers=None if on_skip is None else np.concatenate([_numbers(part) for part in parts]),
    )


def _recordings(parts: Sequence[Rows]) -> list[Rows]:
    """Return the rows of each recording together; parts without rows are left out."""
    groups: list[list[Rows]] = []
    for part in parts:
        if not len(part):
            continue
        if part.begins or not groups:
            groups.append([])
        groups[-1].append(part)
    return [_joined(group) for group in groups]


def _joined(parts: Sequence[Rows]) -> Rows:
    if len(parts) == 1:
        return parts[0]
    time = [part.time for part in parts if part.time is not None]
    return Rows(np.concatenate([part.values for part in parts]), np.concatenate(time) if time else None, parts[0].first)


def _numbers(rows: Rows) -> IntArray:
    return np.arange(rows.first, rows.first + len(rows))


def _scored_whole(model: Model, name: str, rows: Rows, *, contributions: bool) -> ScoredRows:
    time = None if rows.time is None else rows.time - rows.time[0]
    return model.score(Recording(name, rows.values, model.card.sensors, time), contributions=contributions)


def _together(scored: Sequence[ScoredRows]) -> ScoredRows:
    parts = [one.contributions for one in scored if one.contributions is not None]
    return ScoredRows(
        np.concatenate([one.scores for one in scored]),
        np.concatenate([one.flagged for one in scored]),
        np.concatenate(parts) if parts else None,
    )


def _read_rows(
    reader: RowReader, path: Path, file_format: FileFormat, sensors: Sequence[str], on_skip: OnSkip | None
) -> tuple[list[Rows], bool, tuple[str, ...]]:
    """Return a file's rows, whether a column of it holds their times, and what a user should know of its header."""
    skipping = None if on_skip is None else SkippingReader(reader, file_format.separator, on_skip)
    try:
        if path.suffix.lower() in (*PARQUET, *ARRAYS):
            parts = list((skipping or reader).read_table(_only_table(path, file_format, sensors)))
        else:
            parts = list(_text_rows(path, skipping or reader, file_format.encoding))
    except FileNotFoundError as error:
        raise DataError(f"{path}: there is no such file; correct the name") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error})") from error
    reader = reader if skipping is None else skipping.reader
    reader.end()
    header = reader.header
    return parts, header is not None and bool(header.time), () if header is None else header.notes


def _only_table(path: Path, file_format: FileFormat, sensors: Sequence[str]) -> Table:
    """Return the table of a file that holds one; columns without names are the sensors in the model's order."""
    if not path.is_file():
        raise DataError(f"{path}: there is no such file; correct the name")
    tables, issues = read_files({str(path): path}, lambda _: file_format)
    raise_if_any(str(path), issues)
    arrays = tables[str(path)]
    if len(arrays) != 1:
        raise DataError(f"{path}: expected one array, found {list(arrays)[:10]}; write one to a file alone")
    table = next(iter(arrays.values()))
    if isinstance(table.frame.columns, pd.RangeIndex):
        if table.frame.shape[1] != len(sensors):
            found = f"{table.frame.shape[1]} columns without names"
            raise DataError(f"{path}: expected the model's {len(sensors)} sensors in order, found {found}")
        table.frame = table.frame.set_axis(list(sensors), axis=1)
    return table


def score_stream(
    model: Model,
    pieces: Iterable[Piece],
    name: str,
    file_format: FileFormat,
    *,
    contributions: bool,
    on_skip: OnSkip | None = None,
    needs_time: bool = False,
) -> Iterator[ScoredRows]:
    """Score rows as they arrive; those that arrive together are scored together.

    ``name`` is the input's, for messages; ``on_skip`` and ``needs_time`` are as for `score_file`. A DataError if a line
    is malformed, after the answers for the rows before it; a UsageError if rows of this model cannot be streamed.
    """
    if file_format.resample_every is not None:
        raise UsageError(
            f"{model.card.label} was fitted on resampled rows, one every {file_format.resample_every:g} s: rows that "
            "arrive one by one cannot be resampled; score whole files, without --follow and -"
        )
    return _scored(
        pieces,
        partial(_Source, model, name, file_format, on_skip, contributions=contributions, needs_time=needs_time),
    )


def _scored(pieces: Iterable[Piece], begun: Callable[[], _Source]) -> Iterator[ScoredRows]:
    source = begun()
    for piece in pieces:
        if isinstance(piece, Restarted):
            yield from source.restarted(piece)
            source = begun()
        else:
            yield from source.take(piece)
            source.check()
    yield from source.end()


class _Source:
    """One input that is still growing: a recording, or several if malformed lines come in a row."""

    def __init__(
        self,
        model: Model,
        name: str,
        file_format: FileFormat,
        on_skip: OnSkip | None,
        *,
        contributions: bool,
        needs_time: bool,
    ) -> None:
        self._lines = Lines(name, file_format.encoding, tolerant=on_skip is not None)
        self._strict = RowReader(name, file_format, model.card.sensors, needs_time=needs_time)
        self._skipping = None if on_skip is None else SkippingReader(self._strict, file_format.separator, on_skip)
        self._begun = partial(Stream, model, contributions=contributions)
        self._stream = self._begun()
        # Times and numbers of the rows that have not been scored, and the time of the recording's first row.
        self._time = np.empty(0)
        self._numbers = np.empty(0, dtype=np.int64)
        self._start: float | None = None
        self._noted = False

    @property
    def _reader(self) -> RowReader:
        return self._strict if self._skipping is None else self._skipping.reader

    def take(self, data: bytes) -> Iterator[ScoredRows]:
        """Score what the next bytes complete."""
        yield from self._score(self._lines.feed(data))

    def end(self) -> Iterator[ScoredRows]:
        """Score the rest; a last line without an end counts."""
        yield from self._score(self._lines.end())
        self._reader.end()
        yield self._told(self._stream.finish())

    def restarted(self, restarted: Restarted) -> Iterator[ScoredRows]:
        """Score the rest of a recording after which the file has begun anew; a last line without an end is lost."""
        lost = "; its last line had no end and is left out" if self._lines.unfinished else ""
        note = f"{restarted.reason}{lost}: what follows is read as a new recording, from its header on"
        if self._reader.header is not None:
            self._reader.end()
        rest = self._told(self._stream.finish())
        yield replace(rest, notes=(*rest.notes, note))

    def check(self) -> None:
        """Raise a DataError if a line was malformed."""
        if self._reader.fault is not None:
            raise self._reader.fault

    def _score(self, lines: Sequence[str]) -> Iterator[ScoredRows]:
        for rows in [self._strict.read(lines)] if self._skipping is None else self._skipping.read(lines):
            if rows.begins:
                yield self._told(self._stream.finish())
                self._stream, self._start = self._begun(), None
            time = rows.time
            if time is not None and len(time):
                self._start = float(time[0]) if self._start is None else self._start
                self._time = np.concatenate([self._time, time])
                time = time - self._start
            self._numbers = np.concatenate([self._numbers, _numbers(rows)])
            yield self._told(self._stream.push(rows.values, time))

    def _told(self, scored: ScoredRows) -> ScoredRows:
        """Return scored rows with their times and numbers, and with the notes on the header unless they were given."""
        time, self._time = self._time[: len(scored)], self._time[len(scored) :]
        numbers, self._numbers = self._numbers[: len(scored)], self._numbers[len(scored) :]
        header = self._reader.header
        if header is None:
            return scored
        notes, self._noted = () if self._noted else header.notes, True
        return replace(scored, time=time if header.time else None, notes=notes, numbers=numbers)


def _text_rows(path: Path, reader: RowReader | SkippingReader, encoding: str) -> Iterator[Rows]:
    tolerant = isinstance(reader, SkippingReader)
    lines = Lines(str(path), encoding, tolerant=tolerant)
    with path.open("rb") as file:
        while data := file.read(_BYTES_AT_ONCE):
            yield from _rows_of(reader, lines.feed(data))
            if isinstance(reader, RowReader) and reader.fault is not None:
                return
    yield from _rows_of(reader, lines.end())


def _rows_of(reader: RowReader | SkippingReader, lines: Sequence[str]) -> Iterator[Rows]:
    if isinstance(reader, SkippingReader):
        yield from reader.read(lines)
    else:
        yield reader.read(lines)
