"""Detectors whose objectives are known beforehand."""

from __future__ import annotations

import time

import numpy as np

from tsadbench import Detector, Traits
from tsadbench.base.search_space import Choice, Tune


class Guess(Detector):
    """Forecasts every value as ``guess``; scores a row by its sensor farthest from the training mean."""

    traits = Traits(scoring_parameters=("sign",))

    def __init__(self, *, guess: float = 0.5, sign: int = 1, memory: int = 1, seed: int = 0):
        self.guess = guess
        self.sign = sign
        self.memory = memory
        self.seed = seed

    def declared_traits(self):
        return Traits(memory=self.memory, look_ahead=2, scoring_parameters=("sign",))

    @classmethod
    def search_space(cls):
        return {
            "guess": Tune(-2.0, 2.0),
            "sign": Choice((1, -1)),
            "memory": Tune(1, 4, alters_loss=True),
        }

    def _fit(self, recordings):
        self.mean_ = np.concatenate([recording.values for recording in recordings]).mean(axis=0)

    def _score(self, recording):
        return self.sign * np.abs(recording.values - self.mean_).max(axis=1)

    def _held_out_loss(self, recordings, first):
        return float(np.mean([np.mean((one.values[first:] - self.guess) ** 2) for one in recordings]))


class Fails(Guess):
    """Fails above 0, in the way asked for."""

    def __init__(self, *, guess: float = 0.5, sign: int = 1, memory: int = 1, how: str = "raise", seed: int = 0):
        super().__init__(guess=guess, sign=sign, memory=memory, seed=seed)
        self.how = how

    def _fit(self, recordings):
        super()._fit(recordings)
        if self.guess > 0:
            if self.how == "raise":
                raise ValueError("a guess above 0")
            time.sleep(60)


class Counts(Guess):
    """Has one parameter with two values; its fits are noted outside (`tests.helpers.fits`)."""

    def __init__(self, *, guess: float = 0.5, sign: int = 1, memory: int = 1, diary: str = "", seed: int = 0):
        super().__init__(guess=guess, sign=sign, memory=memory, seed=seed)
        self.diary = diary

    @classmethod
    def search_space(cls):
        return {"guess": Choice((0.5, -0.5))}


class Waits(Guess):
    """Fits for ever."""

    def __init__(self, *, guess: float = 0.5, sign: int = 1, memory: int = 1, diary: str = "", seed: int = 0):
        super().__init__(guess=guess, sign=sign, memory=memory, seed=seed)
        self.diary = diary

    def _fit(self, recordings):
        time.sleep(600)


class Wrong(Guess):
    """Declares a parameter that it does not have."""

    @classmethod
    def search_space(cls):
        return {"depth": Tune(1, 4)}


class Seeded(Guess):
    """Declares its seed."""

    @classmethod
    def search_space(cls):
        return {"seed": Tune(1, 4)}
