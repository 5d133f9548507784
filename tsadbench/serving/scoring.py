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
from tsadbench.serving.rows import OnSkip, RowReader, Rows, recordings
from tsadbench.serving.stream import Stream
from tsadbench.utils.arrays import IntArray
from tsadbench.utils.issues import raise_if_any
from tsadbench.utils.text import first_of

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

    A row with a missing value that may not be filled has no score, and the reason. ``on_skip`` receives each malformed
    line, which is skipped then; None: such a line is a DataError that names it. With ``needs_time`` a file without its
    column of times is malformed; otherwise its rows are numbered. A UsageError if lines are to be skipped of a file
    whose rows are resampled.
    """
    if file_format.resample_every is None:
        reader = RowReader(str(path), file_format, model.card.sensors, needs_time=needs_time, on_skip=on_skip)
        parts = _read_rows(reader, path, file_format, model.card.sensors, tolerant=on_skip is not None)
        header = reader.end()
        has_times, notes = bool(header.time), header.notes
    elif on_skip is not None:
        raise UsageError(
            f"{model.card.label} was fitted on resampled rows: its grid is made of all lines of a file, so that none "
            "can be skipped; correct the lines, or leave --on-error skip out"
        )
    else:
        parts, has_times, notes = [read_resampled(path, file_format, model.card.sensors)], bool(file_format.time), ()
    if not any(map(len, parts)):
        raise DataError(f"{path}: it has no rows that can be used; expected some below the sensors' names")
    rows = Rows.joined(parts)
    scored = []
    for index in filter(len, recordings(rows)):
        time = None if rows.time is None else rows.time[index] - rows.time[index[0]]
        recording = Recording(path.stem, rows.values[index], model.card.sensors, time)
        scored.append((index, model.score(recording, contributions=contributions)))
    return _spread(model, rows, scored, has_times=has_times, contributions=contributions, notes=notes)


def _spread(
    model: Model,
    rows: Rows,
    scored: Sequence[tuple[IntArray, ScoredRows]],
    *,
    has_times: bool,
    contributions: bool,
    notes: tuple[str, ...],
) -> ScoredRows:
    """Return all rows, with the scores of those that were scored, and the reasons of those that cannot be."""
    scores = np.full(len(rows), np.nan)
    split = np.full(rows.values.shape, np.nan) if contributions else None
    for index, part in scored:
        scores[index] = part.scores
        if split is not None and part.contributions is not None:
            split[index] = part.contributions
    missing = np.isnan(rows.values)
    reasons = {
        row: f"no value of {first_of([repr(model.card.sensors[i]) for i in np.flatnonzero(missing[row])])}"
        for row in np.flatnonzero(missing.any(axis=1)).tolist()
    }
    return replace(
        model.flag(scores, split),
        first_row=int(rows.numbers[0]) if len(rows) else 0,
        time=rows.time if has_times else None,
        notes=notes,
        numbers=rows.numbers,
        reasons=reasons,
    )


def _read_rows(
    reader: RowReader, path: Path, file_format: FileFormat, sensors: Sequence[str], *, tolerant: bool
) -> list[Rows]:
    try:
        if path.suffix.lower() in (*PARQUET, *ARRAYS):
            return list(reader.read_table(_only_table(path, file_format, sensors)))
        lines, parts = Lines(str(path), file_format.encoding, tolerant=tolerant), list[Rows]()
        with path.open("rb") as file:
            while data := file.read(_BYTES_AT_ONCE):
                parts += reader.read(lines.feed(data))
        return [*parts, *reader.read(lines.end())]
    except FileNotFoundError as error:
        raise DataError(f"{path}: there is no such file; correct the name") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error})") from error


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
            yield source.restarted(piece)
            source = begun()
        else:
            yield from source.take(piece)
    yield from source.end()


class _Source:
    """One input that is still growing: a recording, or several if many rows in a row cannot be scored."""

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
        self._model, self._contributions = model, contributions
        self._lines = Lines(name, file_format.encoding, tolerant=on_skip is not None)
        self._reader = RowReader(name, file_format, model.card.sensors, needs_time=needs_time, on_skip=on_skip)
        self._stream = Stream(model, contributions=contributions)
        # Rows without an answer; number of the last row that could be scored; time of the recording's first.
        self._waiting: Rows | None = None
        self._last: int | None = None
        self._start: float | None = None
        self._noted = False

    def take(self, data: bytes) -> Iterator[ScoredRows]:
        """Score what the next bytes complete."""
        yield from self._score(self._lines.feed(data))

    def end(self) -> Iterator[ScoredRows]:
        """Score the rest; a last line without an end counts."""
        yield from self._score(self._lines.end())
        self._reader.end()
        yield self._answered(self._stream.finish())

    def restarted(self, restarted: Restarted) -> ScoredRows:
        """Score the rest of a recording after which the file has begun anew; a last line without an end is lost."""
        lost = "; its last line had no end and is left out" if self._lines.unfinished else ""
        note = f"{restarted.reason}{lost}: what follows is read as a new recording, from its header on"
        rest = self._answered(self._stream.finish())
        return replace(rest, notes=(*rest.notes, note))

    def _score(self, lines: Sequence[str]) -> Iterator[ScoredRows]:
        for rows in self._reader.read(lines):
            self._waiting = rows if self._waiting is None else Rows.joined([self._waiting, rows])
            for number, index in enumerate(recordings(rows, self._last)):
                if number:
                    yield self._answered(self._stream.finish())
                    self._stream, self._start = Stream(self._model, contributions=self._contributions), None
                time = rows.time
                if time is not None and len(index):
                    self._start = float(time[index[0]]) if self._start is None else self._start
                    time = time[index] - self._start
                if len(index):
                    self._last = int(rows.numbers[index[-1]])
                yield self._answered(self._stream.push(rows.values[index], time if len(index) else None))

    def _answered(self, scored: ScoredRows) -> ScoredRows:
        """Return scored rows with those between them that cannot be scored, and with the notes on the header once."""
        header, waiting = self._reader.header, self._waiting
        if header is None or waiting is None:
            return scored
        whole = waiting.whole
        end = int(whole[len(scored)]) if len(scored) < len(whole) else len(waiting)
        self._waiting = waiting[end:]
        notes, self._noted = () if self._noted else header.notes, True
        return _spread(
            self._model,
            waiting[:end],
            [(whole[: len(scored)], scored)],
            has_times=bool(header.time),
            contributions=self._contributions,
            notes=notes,
        )
