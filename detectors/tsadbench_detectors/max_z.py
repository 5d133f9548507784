"""Floor: the largest absolute z-score of a row."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tsadbench.base import Detector, FloatArray, Recording, Traits
from tsadbench_detectors.row_blocks import by_blocks
from tsadbench_detectors.standardise import Standardiser


class MaxZ(Detector):
    """How many training standard deviations the farthest sensor of a row lies from its training mean.

    A sensor that is constant over the training rows counts in its own unit (`Standardiser`). Contributions are the
    absolute z-scores; the score is the largest of them.

    Examples
    --------
    >>> detector = MaxZ().fit(np.array([[0.0, 10.0], [2.0, 30.0]]))
    >>> detector.score(np.array([[1.0, 20.0], [4.0, 30.0]]))
    array([0., 3.])
    """

    traits: ClassVar[Traits] = Traits(family="floor", floor=True, memory=0)

    def _fit(self, recordings: tuple[Recording, ...]) -> None:
        self.standardiser_ = Standardiser.of(recordings)

    def _score(self, recording: Recording) -> FloatArray:
        return by_blocks(lambda rows: self._absolute(rows).max(axis=1), recording.values)

    def _contributions(self, recording: Recording) -> FloatArray:
        return by_blocks(self._absolute, recording.values)

    def _absolute(self, rows: FloatArray) -> FloatArray:
        return np.abs(self.standardiser_.z_scores(rows))
