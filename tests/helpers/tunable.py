"""Detectors with known objectives."""

from __future__ import annotations

import time
from typing import Annotated, ClassVar

import numpy as np

from tsadbench import Detector, Traits, detector
from tsadbench.base.search_space import Choice, Tune


@detector
class Guess(Detector):
    """Forecasts every value as ``guess``; scores a row by its sensor farthest from the training mean."""

    traits: ClassVar[Traits] = Traits(scoring_parameters=("sign",))

    guess: Annotated[float, Tune(-2.0, 2.0)] = 0.5
    sign: Annotated[int, Choice((1, -1))] = 1
    memory: Annotated[int, Tune(1, 4, alters_loss=True)] = 1
    seed: int = 0

    def declared_traits(self):
        return Traits(memory=self.memory, look_ahead=2, scoring_parameters=("sign",))

    def _fit(self, recordings):
        self.mean_ = np.concatenate([recording.values for recording in recordings]).mean(axis=0)

    def _score(self, recording):
        return self.sign * np.abs(recording.values - self.mean_).max(axis=1)

    def _held_out_loss(self, recordings, first):
        return float(np.mean([np.mean((one.values[first:] - self.guess) ** 2) for one in recordings]))


@detector
class Fails(Guess):
    """Fails if its guess is above 0: raises, or else sleeps for a minute."""

    how: str = "raise"

    def _fit(self, recordings):
        super()._fit(recordings)
        if self.guess > 0:
            if self.how == "raise":
                raise ValueError("a guess above 0")
            time.sleep(60)


@detector
class Counts(Guess):
    """Tunes one parameter with two values; its fits are noted outside (`tests.helpers.fits`)."""

    diary: str = ""

    @classmethod
    def search_space(cls):
        return {"guess": Choice((0.5, -0.5))}


class Waits(Counts):
    """Fits for ever."""

    def _fit(self, recordings):
        time.sleep(600)
