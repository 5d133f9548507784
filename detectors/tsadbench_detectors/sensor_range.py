"""Floor: how far a row leaves the range that the sensors had in training."""

from __future__ import annotations

import numpy as np

from tsadbench.base import FloatArray, Recording, trailing_mean
from tsadbench_detectors.averaged_floor import AveragedFloor
from tsadbench_detectors.standardise import Standardiser, pooled_rows

_BLOCKS = 10


class SensorRange(AveragedFloor):
    """The largest excess of a row beyond a sensor's training minimum or maximum, in training standard deviations.

    0 if every sensor is inside its range. All training rows are, so their scores are held out: the pooled training rows
    are cut into ten blocks, and each block is scored against the range of the other nine. A sensor that is constant
    over the training rows counts in its own unit (`Standardiser`). Contributions are the excesses of all sensors. They
    and the scores are averaged over the last ``mean`` rows.

    Notes
    -----
    Equations
        ``s(x) = max_i max(0, x_i - largest_i, smallest_i - x_i) / deviation_i``.
    Differences
        No publication: a rule that learns next to nothing.
    Defaults
        mean = 1: no averaging. Runs add mean = 10 too, because methods with windows average as well.

    Examples
    --------
    >>> detector = SensorRange().fit(np.array([[0.0, 10.0], [2.0, 30.0]]))
    >>> detector.score(np.array([[1.5, 20.0], [-3.0, 35.0]]))
    array([0., 3.])
    """

    def _fit(self, recordings: tuple[Recording, ...]) -> None:
        self.minimum_ = np.min([recording.values.min(axis=0) for recording in recordings], axis=0)
        self.maximum_ = np.max([recording.values.max(axis=0) for recording in recordings], axis=0)
        self.scale_ = Standardiser.of(recordings).scale

    def _by_sensor(self, rows: FloatArray) -> FloatArray:
        return self._excess(rows, self.minimum_, self.maximum_)

    def _row_scores(self, by_sensor: FloatArray) -> FloatArray:
        return np.asarray(by_sensor.max(axis=1))

    def _training_scores(self, recordings: tuple[Recording, ...]) -> list[FloatArray]:
        rows = pooled_rows(recordings)
        at_once = -(-len(rows) // _BLOCKS)
        blocks = np.split(rows, range(at_once, len(rows), at_once))
        if len(blocks) == 1:  # one training row: its own range is the only one
            return [np.zeros(recording.n_rows) for recording in recordings]
        minima, maxima = (np.array([extreme(block, axis=0) for block in blocks]) for extreme in (np.min, np.max))
        scores = []
        for number, block in enumerate(blocks):
            smallest = np.delete(minima, number, axis=0).min(axis=0)
            largest = np.delete(maxima, number, axis=0).max(axis=0)
            scores.append(self._row_scores(self._excess(block, smallest, largest)))
        borders = np.cumsum([recording.n_rows for recording in recordings])[:-1]
        return [trailing_mean(of_recording, self.mean) for of_recording in np.split(np.concatenate(scores), borders)]

    def _excess(self, rows: FloatArray, minimum: FloatArray, maximum: FloatArray) -> FloatArray:
        excess: FloatArray = np.maximum(np.maximum(minimum - rows, rows - maximum), 0.0) / self.scale_
        return excess
