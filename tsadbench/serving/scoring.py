"""Scores rows with a model, a whole file at once or rows as they arrive, for `tsadbench score`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from tsadbench.base.file_format import FileFormat
from tsadbench.base.recording import Recording
from tsadbench.errors import DataError, UsageError
from tsadbench.serving.model import Model
from tsadbench.serving.reading import BREAK, RowReader, Rows
from tsadbench.utils.arrays import FloatArray


class Stream:
    """One recording whose rows arrive in batches; scores equal those of `Model.score` for all rows at once.

    It keeps as many rows as a score may depend on (`Traits.memory` and `Traits.look_ahead`), or all of them if the
    detector says so. With ``whole``, nothing is scored before the end; otherwise a UsageError if scores need all rows.
    """

    def __init__(self, model: Model, *, contributions: bool | None = False, whole: bool = False) -> None:
        traits = model.detector.declared_traits()
        if not whole and (traits.leaky or traits.adaptive):
            used = traits.leaky or "what it has scored before"
            raise UsageError(f"{model.card.label} uses {used}: its scores are known only at the end; score whole files")
        self._model, self._contributions, self._whole = model, contributions, whole
        self._look_ahead, self._memory = traits.look_ahead, traits.memory
        self._values = np.empty((0, len(model.card.sensors)))
        self._time: FloatArray | None = None
        self._start = 0.0
        self._n_dropped = self._n_scored = 0

    def push(self, values: FloatArray, time: FloatArray | None = None) -> pd.DataFrame:
        """Add the next rows, and return the answers that are due.

        ``values`` [n_rows, n_sensors] are finite, in the order of the model's sensors; ``time`` [n_rows] are seconds,
        for all rows of a stream or for none. Returns what `Model.score` returns.
        """
        if time is not None and len(time):
            if self._time is None:
                self._start, self._time = float(time[0]), np.empty(0)
            self._time = np.concatenate([self._time, time - self._start])
        self._values = np.concatenate([self._values, values])
        return self._score_until(0 if self._whole else self._n_dropped + len(self._values) - self._look_ahead)

    def finish(self) -> pd.DataFrame:
        """Score the last rows, whose look-ahead extends beyond the end."""
        return self._score_until(self._n_dropped + len(self._values))

    def _score_until(self, end: int) -> pd.DataFrame:
        """Score the unscored rows before row ``end``."""
        if end <= self._n_scored:
            return self._model.answers(np.empty(0), self._values[:0] if self._contributions else None)
        recording = Recording("stream", self._values, self._model.card.sensors, self._time)
        scored = self._model.score(recording, contributions=self._contributions)
        scored.index += self._n_dropped
        scored = scored.loc[self._n_scored : end - 1]
        self._n_scored = end
        if self._memory is not None:
            outdated = max(0, end - self._memory - self._n_dropped)
            # Copy, so that the slice does not keep dropped rows alive.
            self._values = self._values[outdated:].copy()
            self._time = None if self._time is None else self._time[outdated:].copy()
            self._n_dropped += outdated
        return scored


def score_rows(
    model: Model,
    source: Path | int,
    form: FileFormat,
    *,
    contributions: bool | None = False,
    values: bool = False,
    note: Callable[[str], None] = lambda _: None,
) -> Iterator[pd.DataFrame]:
    """Yield the answers for a file in one frame, or for an open descriptor as rows arrive.

    Parameters
    ----------
    model, contributions
        As for `Model.score`.
    source, form
        The file (CSV, Parquet, or one with an array) or descriptor; how it is written: ``card.layout``, or a variant.
    values
        Whether to add a column ``value_SENSOR`` for each sensor.
    note
        Receives remarks on the input for the user.

    Yields
    ------
    pandas.DataFrame
        ``time`` (UTC) or ``row`` number from 0, ``score``, ``flagged``, contributions, and ``reason``: why a row has no
        score, if it has a broken cell or lacks a value; else an empty text.

    Raises
    ------
    DataError, UsageError
        If the input cannot be read, none of its rows can be scored, or the model cannot score a stream.
    """
    whole, name = isinstance(source, Path), str(source) if isinstance(source, Path) else "standard input"
    pieces: Iterable[Rows] = RowReader(name, form, model.card, note).read(source)
    if whole and (parts := list(pieces)):
        pieces = [Rows.joined(parts)]
    recordings = _Recordings(model, contributions=contributions, whole=whole)
    first, n_scorable = "", 0
    for rows in pieces:
        n_scorable += int((rows.places["reason"] == "").sum())
        first = first or next(iter(rows.places["reason"]), "")
        if values:
            read = pd.DataFrame(rows.values, columns=[f"value_{name}" for name in model.card.sensors])
            rows = replace(rows, places=rows.places.join(read))
        yield from filter(len, recordings.take(rows))
    yield from filter(len, [recordings.finish()])
    if not n_scorable:
        raise DataError(f"{name}: no row can be scored; {first or 'it has no rows'}")


class _Recordings:
    """The recordings of one input: a new one begins after `BREAK` consecutive rows that cannot be scored."""

    def __init__(self, model: Model, *, contributions: bool | None, whole: bool) -> None:
        self._model, self._contributions, self._whole = model, contributions, whole
        self.stream = Stream(model, contributions=contributions, whole=whole)
        self._waiting: pd.DataFrame | None = None  # the places of rows without an answer
        self._n_rows = 0
        self._last: int | None = None  # number of the last row that can be scored

    def take(self, rows: Rows) -> Iterator[pd.DataFrame]:
        """Yield the answers that are due."""
        self._waiting = pd.concat([self._waiting, rows.places], ignore_index=True)  # concat drops None
        usable = np.flatnonzero(rows.places["reason"] == "")
        numbers = self._n_rows + usable
        last = numbers[:1] if self._last is None else [self._last]
        borders = np.flatnonzero(np.diff(numbers, prepend=last) > BREAK)
        for number, part in enumerate(np.split(usable, borders)):
            if number:
                yield self.finish()
                self.stream = Stream(self._model, contributions=self._contributions, whole=self._whole)
            if len(part):
                time = None if rows.seconds is None else rows.seconds[part]
                yield self._answered(self.stream.push(rows.values[part], time))
        self._n_rows += len(rows.values)
        self._last = int(numbers[-1]) if len(numbers) else self._last

    def finish(self) -> pd.DataFrame:
        """End the recording: answer all its rows."""
        return self._answered(self.stream.finish())

    def _answered(self, scored: pd.DataFrame) -> pd.DataFrame:
        """Return answers in row order, including rows that cannot be scored, up to the first row that is still due."""
        if self._waiting is None:
            return scored
        usable = np.flatnonzero(self._waiting["reason"] == "")
        end = int(usable[len(scored)]) if len(scored) < len(usable) else len(self._waiting)
        places, self._waiting = self._waiting[:end], self._waiting[end:].reset_index(drop=True)
        numbers = scored.drop(columns="flagged").set_axis(usable[: len(scored)]).reindex(places.index)
        numbers.insert(1, "flagged", numbers["score"] > self._model.card.threshold.value)
        return pd.concat([places.drop(columns="reason"), numbers, places["reason"]], axis=1)
