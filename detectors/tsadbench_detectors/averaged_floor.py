"""The base of the floors whose scores may be averaged."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, ClassVar

import numpy as np

from tsadbench.base import Detector, FloatArray, Ge, Recording, Traits, detector, trailing_mean
from tsadbench_detectors.standardise import Standardiser


@detector
class AveragedFloor(Detector):
    """Scores a row by the deviations of its sensors, and averages the scores of the last ``mean`` rows.

    Contributions are averaged like the scores. Runs include such a floor without a mean and with a mean of 10
    rows: methods that score windows average too, and could beat a floor without a mean by averaging alone.

    Parameters
    ----------
    mean
        Rows of the trailing mean over the scores, at least 1 (= no mean); fewer at a recording's start.
    """

    traits: ClassVar[Traits] = Traits(family="floor", floor=True)

    mean: Annotated[int, Ge(1)] = 1

    def declared_traits(self) -> Traits:  # noqa: D102
        return replace(self.traits, memory=self._n_past + self.mean - 1)

    @classmethod
    def floor_variants(cls) -> Sequence[Mapping[str, object]]:  # noqa: D102
        return ({"mean": 10},)

    @property
    def _n_past(self) -> int:
        """Number of earlier rows on which a row's score without a mean depends."""
        return 0

    def _score(self, recording: Recording) -> FloatArray:
        return trailing_mean(self._row_scores(self._by_sensor(recording.values)), self.mean)

    def _contributions(self, recording: Recording) -> FloatArray:
        return trailing_mean(self._by_sensor(recording.values), self.mean)

    @abstractmethod
    def _by_sensor(self, rows: FloatArray) -> FloatArray:
        """Return each sensor's deviation in each row of a recording, at least 0, [n_rows, n_sensors]."""

    def _row_scores(self, by_sensor: FloatArray) -> FloatArray:
        """Return each row's score, [n_rows], from the deviations of `_by_sensor`: here the root of their sum."""
        return np.asarray(np.sqrt(by_sensor.sum(axis=1)))


class ZScoreFloor(AveragedFloor):
    """A floor on the absolute z-scores of a row.

    A sensor that is constant over the training rows counts in its own unit (`Standardiser`).
    """

    def _fit(self, recordings: tuple[Recording, ...]) -> None:
        self.standardiser_ = Standardiser.of(recordings)

    def _by_sensor(self, rows: FloatArray) -> FloatArray:
        return np.abs(self.standardiser_.z_scores(rows))


class SumFloor(ZScoreFloor):
    """A floor whose score is the sum of its contributions."""

    def _row_scores(self, by_sensor: FloatArray) -> FloatArray:
        return np.asarray(by_sensor.sum(axis=1))
