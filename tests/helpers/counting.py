"""Detectors whose fits `tests.helpers.fits` counts.

Every box imports the module of its detector: this one imports little, so that a trial takes a tenth of a second.
"""

from __future__ import annotations

import numpy as np

from tsadbench import Detector, Traits


class Counting(Detector):
    """A distance whose fits are noted in a file; its weight matters in scoring only."""

    traits = Traits(scoring_parameters=("weight", "fails"))

    def __init__(self, *, diary: str = "", weight: float = 1.0, fails: bool = False, power: int = 1) -> None:
        self.diary = diary
        self.weight = weight
        self.fails = fails
        self.power = power

    def _fit(self, recordings):
        self.mean_ = np.concatenate([one.values for one in recordings]).mean(axis=0)

    def _score(self, recording):
        if self.fails:
            raise RuntimeError("as it was told to")
        return self.weight * np.abs(recording.values - self.mean_).sum(axis=1) ** self.power


class Telling(Counting):
    """A `Counting` with contributions."""

    def _contributions(self, recording):
        return np.abs(recording.values - self.mean_)
