"""Score files, or rows as they arrive: what `tsadbench score` writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from tsadbench.base.file_format import FileFormat
from tsadbench.base.recording import Recording
from tsadbench.datasets.reading.arrays import ARRAYS, open_arrays
from tsadbench.datasets.reading.parquet import PARQUET, open_parquet
from tsadbench.datasets.reading.table import NamedTable, Table
from tsadbench.datasets.reading.text import MalformedError
from tsadbench.errors import DataError, UsageError
from tsadbench.serving.follow import Lines, Piece, Restarted
from tsadbench.serving.model import Model, ScoredRows
from tsadbench.serving.resampled import read_resampled
from tsadbench.serving.rows import RowReader, Rows
from tsadbench.serving.stream import Stream

_BYTES_AT_ONCE = 2**22


def score_file(model: Model, path: Path, file_format: FileFormat, *, contributions: bool) -> ScoredRows:
    """Score a whole file: CSV, Parquet, or one with an array.

    Parameters
    ----------
    model
        The model.
    path
        The file.
    file_format
        How it is written.
    contributions
        Whether to ask for each sensor's contribution.

    Raises
    ------
    DataError
        If the file is malformed; the message names the line.
    """
    if file_format.resample_every is None:
        rows, has_times, notes = _read_rows(path, file_format, model.card.sensors)
    else:
        rows, has_times, notes = read_resampled(path, file_format, model.card.sensors), bool(file_format.time), ()
    if len(rows) == 0:
        raise DataError(f"{path}: it has no rows; expected some below the sensors' names")
    start = 0.0 if rows.time is None else rows.time[0]
    recording = Recording(path.stem, rows.values, model.card.sensors, None if rows.time is None else rows.time - start)
    scored = model.score(recording, contributions=contributions)
    return replace(scored, time=rows.time if has_times else None, notes=notes)


def _read_rows(path: Path, file_format: FileFormat, sensors: Sequence[str]) -> tuple[Rows, bool, tuple[str, ...]]:
    """Return a file's rows, whether a column of it holds their times, and what a user should know of its header."""
    reader = RowReader(str(path), file_format, sensors)
    try:
        if path.suffix.lower() in PARQUET:
            parts = list(reader.read_table(open_parquet(path, file_format)))
        elif path.suffix.lower() in ARRAYS:
            parts = list(reader.read_table(_only_array(path, file_format, sensors)))
        else:
            parts = list(_text_rows(path, reader, file_format.encoding))
    except FileNotFoundError as error:
        raise DataError(f"{path}: there is no such file; correct the name") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error})") from error
    except MalformedError as error:
        raise DataError(f"{path}: {error.text}") from error
    reader.end()
    header = reader.header
    times = [part.time for part in parts if len(part) and part.time is not None]
    values = np.concatenate([np.empty((0, len(sensors))), *(part.values for part in parts)])
    rows = Rows(values, np.concatenate(times) if times else None)
    return rows, header is not None and bool(header.time), () if header is None else header.notes


def _only_array(path: Path, file_format: FileFormat, sensors: Sequence[str]) -> Table:
    """Return the array of a file that holds one; columns without names are the sensors in the model's order."""
    arrays = open_arrays(path, file_format)
    if len(arrays) != 1:
        raise MalformedError(f"expected one array, found {len(arrays)}: {list(arrays)[:10]}; write one to a file alone")
    table = next(iter(arrays.values()))
    if any(table.header):
        return table
    if len(table.header) != len(sensors):
        names = ", ".join(sensors[:10]) + (", ..." if len(sensors) > 10 else "")
        raise MalformedError(
            f"its columns have no names: expected {len(sensors)}, the model's sensors in order ({names}), "
            f"found {len(table.header)}"
        )
    return NamedTable(table, tuple(sensors))


def score_stream(
    model: Model, pieces: Iterable[Piece], name: str, file_format: FileFormat, *, contributions: bool
) -> Iterator[ScoredRows]:
    """Score rows as they arrive; those that arrive together are scored together.

    Parameters
    ----------
    model
        The model.
    pieces
        The input, bit by bit.
    name
        What messages call it.
    file_format
        How it is written.
    contributions
        Whether to ask for each sensor's contribution.

    Raises
    ------
    DataError
        If a line is malformed; all rows before it have been scored as far as the look-ahead allows.
    UsageError
        If the model's rows are resampled.
    """
    if file_format.resample_every is not None:
        raise UsageError(
            f"{model.card.label} was fitted on resampled rows, one every {file_format.resample_every:g} s: rows that "
            "arrive one by one cannot be resampled; score whole files, without --follow and -"
        )
    return _scored(model, pieces, name, file_format, contributions=contributions)


def _scored(
    model: Model, pieces: Iterable[Piece], name: str, file_format: FileFormat, *, contributions: bool
) -> Iterator[ScoredRows]:
    source = _Source(model, name, file_format, contributions=contributions)
    for piece in pieces:
        if isinstance(piece, Restarted):
            yield from source.restarted(piece)
            source = _Source(model, name, file_format, contributions=contributions)
        else:
            yield source.take(piece)
            source.check()
    yield from source.end()


class _Source:
    """One recording that is still growing."""

    def __init__(self, model: Model, name: str, file_format: FileFormat, *, contributions: bool) -> None:
        self._lines = Lines(name, file_format.encoding)
        self._reader = RowReader(name, file_format, model.card.sensors)
        self._stream = Stream(model, contributions=contributions)
        # Times of the rows that have not been scored, and of the first row.
        self._time = np.empty(0)
        self._start: float | None = None
        self._noted = False

    def take(self, data: bytes) -> ScoredRows:
        """Score what the next bytes complete."""
        return self._score(self._reader.read(self._lines.feed(data)))

    def end(self) -> Iterator[ScoredRows]:
        """Score the rest; a last line without an end counts."""
        yield self._score(self._reader.read(self._lines.end()))
        self._reader.end()
        yield self._with_time(self._stream.finish())

    def restarted(self, restarted: Restarted) -> Iterator[ScoredRows]:
        """Score the rest of a recording after which the file has begun anew; a last line without an end is lost."""
        lost = "; its last line had no end and is left out" if self._lines.unfinished else ""
        note = f"{restarted.reason}{lost}: what follows is read as a new recording, from its header on"
        if self._reader.header is not None:
            self._reader.end()
        rest = self._with_time(self._stream.finish())
        yield replace(rest, notes=(*rest.notes, note))

    def check(self) -> None:
        """Raise a DataError if a line was malformed."""
        if self._reader.fault is not None:
            raise self._reader.fault

    def _score(self, rows: Rows) -> ScoredRows:
        time = rows.time
        if time is not None and len(time):
            self._start = float(time[0]) if self._start is None else self._start
            self._time = np.concatenate([self._time, time])
            time = time - self._start
        return self._with_time(self._stream.push(rows.values, time))

    def _with_time(self, scored: ScoredRows) -> ScoredRows:
        """Return scored rows with their times, and with the notes on the header unless they have been given."""
        time, self._time = self._time[: len(scored)], self._time[len(scored) :]
        header = self._reader.header
        if header is None:
            return scored
        notes, self._noted = () if self._noted else header.notes, True
        return replace(scored, time=time if header.time else None, notes=notes)


def _text_rows(path: Path, reader: RowReader, encoding: str) -> Iterator[Rows]:
    lines = Lines(str(path), encoding)
    with path.open("rb") as file:
        while reader.fault is None and (data := file.read(_BYTES_AT_ONCE)):
            yield reader.read(lines.feed(data))
    if reader.fault is None:
        yield reader.read(lines.end())
