"""From files or streams to answers: what `tsadbench score` writes, a row for each row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tsadbench.base.file_format import FileFormat
from tsadbench.base.recording import Recording
from tsadbench.datasets.reading.parquet import PARQUET, open_parquet
from tsadbench.datasets.reading.text import MalformedError
from tsadbench.errors import DataError
from tsadbench.serving.follow import Lines, Piece, Restarted
from tsadbench.serving.model import Answers, Model
from tsadbench.serving.rows import RowReader, Rows
from tsadbench.serving.stream import Stream
from tsadbench.utils.arrays import FloatArray

_BYTES_AT_ONCE = 2**22


@dataclass(frozen=True, slots=True, eq=False)
class Answered:
    """Rows with their answers.

    Parameters
    ----------
    answers
        What the model says of them.
    first_row
        The first one's number in its recording, counted from 0.
    time
        [n_rows] seconds since 1970; None where no column holds times.
    notes
        What a user should know of the recording, told once.
    """

    answers: Answers
    first_row: int
    time: FloatArray | None
    notes: tuple[str, ...] = ()


def answer_file(model: Model, path: Path, layout: FileFormat, *, contributions: bool) -> Answered:
    """Score a whole file, CSV or Parquet.

    Parameters
    ----------
    model
        The model.
    path
        The file.
    layout
        How it is written.
    contributions
        Whether to ask for each sensor's contribution.

    Raises
    ------
    DataError
        If the file is not as it must be; the message names the line.
    """
    reader = RowReader(str(path), layout, model.card.sensors)
    try:
        if path.suffix.lower() in PARQUET:
            parts = list(reader.read_parquet(open_parquet(path, layout)))
        else:
            parts = list(_read_text(path, reader, layout.encoding))
    except FileNotFoundError as error:
        raise DataError(f"{path}: there is no such file; correct the name") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error})") from error
    except MalformedError as error:
        raise DataError(f"{path}: {error.text}") from error
    reader.end()
    values = [part.values for part in parts if len(part)]
    if reader.header is None or not values:
        raise DataError(f"{path}: it has no rows; expected some below the sensors' names")
    times = [part.time for part in parts if len(part) and part.time is not None]
    rows = Rows(np.concatenate(values), np.concatenate(times) if times else None)
    start = None if rows.time is None else rows.time - rows.time[0]
    recording = Recording(path.stem, rows.values, model.card.sensors, start)
    answers = model.score(recording, contributions=contributions)
    return Answered(answers, 0, rows.time if reader.header.time else None, reader.header.notes)


def answer_stream(
    model: Model, pieces: Iterable[Piece], name: str, layout: FileFormat, *, contributions: bool
) -> Iterator[Answered]:
    """Answer rows as they come; whatever comes at once is answered together.

    Parameters
    ----------
    model
        The model.
    pieces
        The input, bit by bit.
    name
        What messages call it.
    layout
        How it is written.
    contributions
        Whether to ask for each sensor's contribution.

    Raises
    ------
    DataError
        If a line is not as it must be; all rows before it have been answered as far as the look-ahead allows.
    """
    source = _Source(model, name, layout, contributions=contributions)
    for piece in pieces:
        if isinstance(piece, Restarted):
            yield source.end(piece)
            source = _Source(model, name, layout, contributions=contributions)
        else:
            yield source.take(piece)
            source.check()
    yield source.end()
    source.check()


class _Source:
    """One recording that is still growing."""

    def __init__(self, model: Model, name: str, layout: FileFormat, *, contributions: bool) -> None:
        self._lines = Lines(name, layout.encoding)
        self._reader = RowReader(name, layout, model.card.sensors)
        self._stream = Stream(model, contributions=contributions)
        self._time = np.empty(0)
        self._start: float | None = None
        self._n_answered = 0
        self._noted = False

    def take(self, data: bytes) -> Answered:
        return self._answer(self._reader.read(self._lines.feed(data)))

    def end(self, restarted: Restarted | None = None) -> Answered:
        """Answer what is left; a last line without an end counts, but not where the file has begun anew."""
        notes: tuple[str, ...] = ()
        if restarted is not None:
            lost = "; its last line had no end and is left out" if self._lines.unfinished else ""
            notes = (f"{restarted.reason}{lost}: what follows is read as a new recording, from its header on",)
        last = self._answer(self._reader.read(self._lines.end() if restarted is None else []))
        if self._reader.header is None and restarted is not None:
            return self._answered(last.answers, notes)
        self._reader.end()
        rest = self._answered(self._stream.finish(), notes)
        return _joined(last, rest)

    def check(self) -> None:
        """Raise a DataError where a line was not as it must be."""
        if self._reader.fault is not None:
            raise self._reader.fault

    def _answer(self, rows: Rows) -> Answered:
        time = rows.time
        if time is not None and len(time):
            self._start = float(time[0]) if self._start is None else self._start
            self._time = np.concatenate([self._time, time])
            time = time - self._start
        return self._answered(self._stream.push(rows.values, time))

    def _answered(self, answers: Answers, notes: tuple[str, ...] = ()) -> Answered:
        header, count = self._reader.header, len(answers.scores)
        first, self._n_answered = self._n_answered, self._n_answered + count
        if header is not None and not self._noted:
            notes, self._noted = header.notes + notes, True
        time, self._time = self._time[:count], self._time[count:]
        return Answered(answers, first, time if header is not None and header.time else None, notes)


def _joined(one: Answered, other: Answered) -> Answered:
    split = one.answers.contributions, other.answers.contributions
    answers = Answers(
        np.concatenate([one.answers.scores, other.answers.scores]),
        np.concatenate([one.answers.flagged, other.answers.flagged]),
        None if split[0] is None or split[1] is None else np.concatenate([split[0], split[1]]),
    )
    time = None if one.time is None or other.time is None else np.concatenate([one.time, other.time])
    return Answered(answers, one.first_row, time, one.notes + other.notes)


def _read_text(path: Path, reader: RowReader, encoding: str) -> Iterator[Rows]:
    lines = Lines(str(path), encoding)
    with path.open("rb") as file:
        while reader.fault is None and (data := file.read(_BYTES_AT_ONCE)):
            yield reader.read(lines.feed(data))
    if reader.fault is None:
        yield reader.read(lines.end())
