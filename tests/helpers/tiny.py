"""A plugin for tests: small detectors, so that tests of the core need none of those that ship.

Name them ``tests.helpers.tiny:Distance``, or take the fixture `tiny_plugin`, which registers them as ``distance``,
``noisy``, ``everything`` and, among the floors, ``largest``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from tsadbench.base import Detector, FloatArray, Recording, Space, Traits, Tune
from tsadbench.base.prior import Prior

ENTRY_POINTS = """
[tsadbench.detectors]
distance = tests.helpers.tiny:Distance
noisy = tests.helpers.tiny:Noisy
everything = tests.helpers.tiny:Everything

[tsadbench.floors]
largest = tests.helpers.tiny:Largest
"""


class Distance(Detector):
    """Distance of a row to the training mean, in training standard deviations; deterministic.

    Parameters
    ----------
    power
        Exponent of the norm over sensors, at least 1.
    """

    traits: ClassVar[Traits] = Traits(family="statistics", memory=0)

    def __init__(self, *, power: float = 2.0) -> None:
        self.power = power

    @classmethod
    def search_space(cls) -> Mapping[str, Space]:
        return {"power": Tune(1.0, 8.0)}

    def _check(self, sensors: tuple[str, ...]) -> None:
        self._require(self.power >= 1, "power", "at least 1")

    def _fit(self, recordings: tuple[Recording, ...]) -> None:
        rows = np.concatenate([recording.values for recording in recordings])
        self.mean_ = rows.mean(axis=0)
        spread = rows.std(axis=0)
        self.scale_ = np.where(spread > 1e-9 * np.abs(self.mean_), spread, 1.0)

    def _score(self, recording: Recording) -> FloatArray:
        powers = self._contributions(recording)
        return np.asarray(powers.sum(axis=1) ** (1.0 / self.power))

    def _contributions(self, recording: Recording) -> FloatArray:
        return np.asarray(np.abs((recording.values - self.mean_) / self.scale_) ** self.power)


class Noisy(Distance):
    """A distance whose sensors have random weights, drawn by the seed; stochastic.

    Parameters
    ----------
    seed
        Decides the weights.
    """

    traits: ClassVar[Traits] = Traits(family="statistics", memory=0, stochastic=True)

    def __init__(self, *, power: float = 2.0, seed: int = 0) -> None:
        super().__init__(power=power)
        self.seed = seed

    def _fit(self, recordings: tuple[Recording, ...]) -> None:
        super()._fit(recordings)
        self.scale_ /= np.random.default_rng(self.seed).uniform(0.5, 1.0, len(self.scale_))


class Guided(Distance):
    """A distance that requires a prior, but does not use it.

    Parameters
    ----------
    prior
        Any prior.
    """

    traits: ClassVar[Traits] = Traits(family="statistics", memory=0, needs_prior=True)

    def __init__(self, *, power: float = 2.0, prior: Prior | None = None) -> None:
        super().__init__(power=power)
        self.prior = prior

    def _check(self, sensors: tuple[str, ...]) -> None:
        super()._check(sensors)
        self._require(self.prior is not None, "prior", "given")


class Largest(Detector):
    """A floor: the largest absolute value of a row, whatever it was fitted on."""

    traits: ClassVar[Traits] = Traits(family="floor", memory=0, floor=True)

    def expected_check_failures(self) -> Mapping[str, str]:
        return {"other-data": "a floor: it learns nothing"}

    def _fit(self, recordings: tuple[Recording, ...]) -> None:
        pass

    def _score(self, recording: Recording) -> FloatArray:
        return np.asarray(np.abs(recording.values).max(axis=1))


class Everything(Largest):
    """A floor that brings a threshold and flags every row: no absolute value is below it."""

    traits: ClassVar[Traits] = Traits(family="floor", memory=0, floor=True, fixed_threshold=-1.0)


class Around(Detector):
    """The mean over some rows before and after a row: the last rows have fewer; the first rows have no score.

    Parameters
    ----------
    before, after
        How many rows.
    """

    def __init__(self, *, before: int = 2, after: int = 3) -> None:
        self.before = before
        self.after = after

    def declared_traits(self) -> Traits:
        return Traits(memory=self.before, look_ahead=self.after)

    def _fit(self, recordings: tuple[Recording, ...]) -> None:
        self.seen_ = sum(recording.n_rows for recording in recordings)

    def _score(self, recording: Recording) -> FloatArray:
        rows = recording.values.sum(axis=1)
        means = [rows[t - self.before : t + self.after + 1].mean() for t in range(self.before, len(rows))]
        return np.concatenate([np.full(min(self.before, len(rows)), np.nan), means])

    def _contributions(self, recording: Recording) -> FloatArray:
        return np.where(np.isnan(self._score(recording))[:, None], np.nan, recording.values)
