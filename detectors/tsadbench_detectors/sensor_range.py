"""Floor: how far a row leaves the range that the sensors had in training."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tsadbench.base import Detector, FloatArray, Recording, Traits
from tsadbench_detectors.standardise import Standardiser, pooled_rows


class SensorRange(Detector):
    """The largest excess of a row beyond a sensor's training minimum or maximum, in training standard deviations.

    0 if every sensor is inside its range, so all training rows score 0. A sensor that is constant over the
    training rows counts in its own unit (`Standardiser`). Contributions are the excesses of all sensors.

    Examples
    --------
    >>> detector = SensorRange().fit(np.array([[0.0, 10.0], [2.0, 30.0]]))
    >>> detector.score(np.array([[1.5, 20.0], [-3.0, 35.0]]))
    array([0., 3.])
    """

    traits: ClassVar[Traits] = Traits(family="floor", floor=True, memory=0)

    def _fit(self, recordings: tuple[Recording, ...]) -> None:
        rows = pooled_rows(recordings)
        self.minimum_, self.maximum_ = rows.min(axis=0), rows.max(axis=0)
        self.scale_ = Standardiser.of(recordings).scale

    def _score(self, recording: Recording) -> FloatArray:
        largest: FloatArray = self._contributions(recording).max(axis=1)
        return largest

    def _contributions(self, recording: Recording) -> FloatArray:
        below, above = self.minimum_ - recording.values, recording.values - self.maximum_
        excess: FloatArray = np.maximum(np.maximum(below, above), 0.0) / self.scale_
        return excess
