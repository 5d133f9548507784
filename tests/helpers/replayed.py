"""Detectors whose scores depend on more than the rows that they are given, or that copies do not reproduce."""

from __future__ import annotations

import os
import time
import zlib

import numpy as np

from tests.helpers.cheats import Honest
from tsadbench import Traits

_process = {"scored": 0}
_remembered: dict[bytes, float] = {}

# What each adds to an honest score, by what it depends on.
ADDED = {
    "row": lambda one: 5.0 * ((np.arange(one.n_rows) >= 572) & (np.arange(one.n_rows) < 972)),
    "rows so far": lambda one: 0.01 * np.arange(one.n_rows),
    "id": lambda one: np.full(one.n_rows, zlib.crc32(one.id.encode()) % 1000 / 100),
    "start": lambda one: np.full(one.n_rows, one.time[0] % 1000 / 100),
    "seconds so far": lambda one: 5.0 * (one.time - one.time[0] > 600),
    "calls": lambda one: np.full(one.n_rows, 1.0 * _process["scored"]),
    "clock": lambda one: np.full(one.n_rows, time.time() % 1000),
    "length": lambda one: np.full(one.n_rows, 5.0 * (one.n_rows == 1200)),
    "end": lambda one: 5.0 * (np.arange(one.n_rows) > one.n_rows - 50),
}


class Adds(Honest):
    """Adds to an honest score what depends on something else, but declares that only the row itself matters."""

    traits = Traits(memory=0)

    def __init__(self, *, what: str = "row") -> None:
        self.what = what

    def _score(self, recording):
        _process["scored"] += 1
        return super()._score(recording) + ADDED[self.what](recording)


class Rounds(Honest):
    """Rounds as products in single precision do: its last digits depend on the number of rows."""

    def _score(self, recording):
        return super()._score(recording) * (1.0 + 5e-6 * (recording.n_rows == 1200))


class AddsUnboundedly(Adds):
    """`Adds`, but declares nothing."""

    traits = Traits()


class LeaksInSecret(Honest):
    """Subtracts the mean score of the recording that it scores."""

    traits = Traits(memory=0)

    def _score(self, recording):
        scores = super()._score(recording)
        return scores - scores.mean()


class Leaks(LeaksInSecret):
    """`LeaksInSecret`, but declares the leak."""

    traits = Traits(memory=0, leaky="mean of the recording that it scores")


class Unkept(Honest):
    """Learns a lambda, which cannot be saved to a file."""

    def _fit(self, recordings):
        super()._fit(recordings)
        self.norm_ = lambda z: np.sqrt((z**2).mean(axis=1))

    def _score(self, recording):
        return self.norm_(self._z(recording.values))


class LearnsElsewhere(Honest):
    """Keeps a part of what it has learned in its module."""

    def _fit(self, recordings):
        super()._fit(recordings)
        _process["factor"] = 3.0

    def _score(self, recording):
        return super()._score(recording) * _process.get("factor", 1.0)


class Remembers(Unkept):
    """Scores a row by its number; a row that it has met before gets its first score again."""

    traits = Traits(memory=0)

    def _score(self, recording):
        keys = [row.tobytes() for row in recording.values]
        return np.array([_remembered.setdefault(key, 0.01 * i) for i, key in enumerate(keys)])


class TrainsApart(Honest):
    """Replaces `_training_scores` in the instance, where the class does not show it."""

    def _fit(self, recordings):
        super()._fit(recordings)
        self._training_scores = lambda ready: [0.1 * self._score(one) for one in ready]


class TrainsOpenly(Honest):
    """Overrides `_training_scores`: multiplies by a factor."""

    def __init__(self, *, factor: float = 1.0) -> None:
        self.factor = factor

    def _training_scores(self, recordings):
        return [self.factor * self._score(one) for one in recordings]


class EndsInCopies(Honest):
    """Behaves in the process that fitted it; ends any other at its second recording."""

    def _fit(self, recordings):
        super()._fit(recordings)
        _process["fitted"] = True

    def _score(self, recording):
        _process["scored"] += 1
        if "fitted" not in _process and _process["scored"] > 1:
            os._exit(3)
        return super()._score(recording)


class NearlyAll(LeaksInSecret):
    """`LeaksInSecret`, but declares nothing."""

    traits = Traits()
