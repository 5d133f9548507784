"""Floor: how far a row leaves the range that the sensors had in training."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tsadbench.base import Detector, FloatArray, Recording, Traits
from tsadbench_detectors.row_blocks import by_blocks
from tsadbench_detectors.standardise import Standardiser


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
        self.minimum_ = np.min([recording.values.min(axis=0) for recording in recordings], axis=0)
        self.maximum_ = np.max([recording.values.max(axis=0) for recording in recordings], axis=0)
        self.scale_ = Standardiser.of(recordings).scale

    def _score(self, recording: Recording) -> FloatArray:
        return by_blocks(lambda rows: self._excess(rows).max(axis=1), recording.values)

    def _contributions(self, recording: Recording) -> FloatArray:
        return by_blocks(self._excess, recording.values)

    def _excess(self, rows: FloatArray) -> FloatArray:
        excess: FloatArray = np.maximum(np.maximum(self.minimum_ - rows, rows - self.maximum_), 0.0) / self.scale_
        return excess
