"""Floor: the root of a row's summed squared z-scores."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tsadbench.base import Detector, FloatArray, Recording, Traits
from tsadbench_detectors.row_blocks import by_blocks
from tsadbench_detectors.standardise import Standardiser


class L2Z(Detector):
    """Euclidean distance of a row to the training mean, in each sensor's training standard deviations.

    A sensor that is constant over the training rows counts in its own unit (`Standardiser`). Contributions are the
    squared z-scores; the score is the root of their sum.

    Examples
    --------
    >>> detector = L2Z().fit(np.array([[0.0, 10.0], [2.0, 30.0]]))
    >>> detector.score(np.array([[4.0, 60.0]]))
    array([5.])
    """

    traits: ClassVar[Traits] = Traits(family="floor", floor=True, memory=0)

    def _fit(self, recordings: tuple[Recording, ...]) -> None:
        self.standardiser_ = Standardiser.of(recordings)

    def _score(self, recording: Recording) -> FloatArray:
        return np.sqrt(by_blocks(lambda rows: self._squares(rows).sum(axis=1), recording.values))

    def _contributions(self, recording: Recording) -> FloatArray:
        return by_blocks(self._squares, recording.values)

    def _squares(self, rows: FloatArray) -> FloatArray:
        return self.standardiser_.z_scores(rows) ** 2
