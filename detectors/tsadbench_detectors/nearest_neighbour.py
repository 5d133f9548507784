"""Floor: the distance of a row to the nearest training row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import numpy as np

from tsadbench import DataError
from tsadbench.base import FloatArray, Ge, Le, Recording, detector, trailing_mean
from tsadbench_detectors.averaged_floor import AveragedFloor
from tsadbench_detectors.neighbours import Neighbours
from tsadbench_detectors.rows import evenly_spaced_rows
from tsadbench_detectors.standardise import Standardiser


@detector
class NearestNeighbour(AveragedFloor):
    """Euclidean distance, in z-scores, of a row to the nearest of the training rows that it remembers.

    It remembers all of them, or ``max_rows`` evenly spaced ones. The training score of a row is its distance to the
    nearest remembered row that is not its neighbour in time: in a slow system, neighbours are very similar and would
    make the threshold too low. Rows are left out by their number, not by their distance, so that a row that occurs
    again at another time scores 0. A sensor that is constant over the training rows counts in its own
    unit (`Standardiser`). Contributions are the squared differences to the nearest row; the score is the root of their
    sum. Both are averaged over the last ``mean`` rows.

    Parameters
    ----------
    max_rows
        Maximum number of training rows to remember, at least 2.
    exclude
        Share of the training rows, 0 to 0.1, that a row's training score ignores before the row; it ignores as many
        after it. Rows are counted through all recordings. It is a share because a number of rows would be a different
        time at each sampling rate.

    Notes
    -----
    Equations
        ``s(x) = min_m |z(x) - z(m)|`` over the remembered training rows m.
    Differences
        No publication: a rule that learns next to nothing.
    Defaults
        max_rows = 20,000 for cost. exclude = 0.05 leaves out a tenth of the training rows around a row, as ten held-out
        blocks do.

    Examples
    --------
    >>> detector = NearestNeighbour().fit(np.array([[0.0, 10.0], [2.0, 30.0]]))
    >>> detector.score(np.array([[2.0, 30.0], [5.0, 70.0]]))
    array([0., 5.])
    """

    max_rows: Annotated[int, Ge(2)] = 20_000
    exclude: Annotated[float, Ge(0), Le(0.1)] = 0.05

    def _fit(self, recordings: tuple[Recording, ...]) -> None:
        self.n_training_rows_ = sum(recording.n_rows for recording in recordings)
        if self.n_training_rows_ < 2:
            raise DataError("NearestNeighbour: expected at least 2 training rows, found 1; train on more rows")
        self.standardiser_ = Standardiser.of(recordings)
        rows, self.remembered_ = evenly_spaced_rows(recordings, self.max_rows)
        self.memory_ = self.standardiser_.z_scores(rows)
        self.neighbours_ = Neighbours(self.memory_)

    def _learned(self) -> dict[str, object]:
        return {name: value for name, value in super()._learned().items() if name != "neighbours_"}

    def _restore(self, learned: Mapping[str, object]) -> None:
        super()._restore(learned)
        self.neighbours_ = Neighbours(self.memory_)

    def _by_sensor(self, rows: FloatArray) -> FloatArray:
        z = self.standardiser_.z_scores(rows)
        return np.asarray((z - self.memory_[self.neighbours_.nearest(z)[1]]) ** 2, dtype=np.float64)

    def _training_scores(self, recordings: tuple[Recording, ...]) -> list[FloatArray]:
        borders = np.cumsum([0, *(recording.n_rows for recording in recordings)])
        if borders[-1] != self.n_training_rows_:
            raise DataError(
                f"NearestNeighbour.training_scores: expected the recordings that fit was given, "
                f"{self.n_training_rows_} rows, found {borders[-1]}"
            )
        reach = int(self.exclude * self.n_training_rows_)
        scores = []
        for recording, first in zip(recordings, borders, strict=False):
            numbers = first + np.arange(recording.n_rows)
            # The range in the memory of the row and its neighbours in time; empty if start equals stop.
            start = np.searchsorted(self.remembered_, numbers - reach, "left")
            stop = np.searchsorted(self.remembered_, numbers + reach, "right")
            z = self.standardiser_.z_scores(recording.values)
            distances = self.neighbours_.nearest(z, np.column_stack([start, stop]))[0]
            scores.append(trailing_mean(distances, self.mean))
        return scores
