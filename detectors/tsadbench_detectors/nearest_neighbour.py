"""Floor: the distance of a row to the nearest training row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from scipy.spatial import cKDTree

from tsadbench import DataError
from tsadbench.base import Detector, FloatArray, IntArray, Recording, Traits
from tsadbench_detectors.standardise import Standardiser, pooled_rows


class NearestNeighbour(Detector):
    """Euclidean distance, in z-scores, of a row to the nearest of the training rows that it remembers.

    It remembers all of them, or ``max_rows`` evenly spaced ones. The training score of a row is its distance to the
    nearest *other* row in the memory: the row itself is left out by its index, not by its distance, so that a row that
    occurs twice scores 0. A sensor that is constant over the training rows counts in its own unit (`Standardiser`).
    Contributions are the squared differences to the nearest row; the score is the root of their sum.

    Parameters
    ----------
    max_rows
        How many training rows it remembers at most, at least 2.

    Examples
    --------
    >>> detector = NearestNeighbour().fit(np.array([[0.0, 10.0], [2.0, 30.0]]))
    >>> detector.score(np.array([[2.0, 30.0], [5.0, 70.0]]))
    array([0., 5.])
    """

    traits: ClassVar[Traits] = Traits(family="floor", floor=True, memory=0)

    def __init__(self, *, max_rows: int = 20_000) -> None:
        self.max_rows = max_rows

    @classmethod
    def test_params(cls) -> dict[str, object]:  # noqa: D102
        return {"max_rows": 200}

    def _check(self, sensors: tuple[str, ...]) -> None:  # noqa: ARG002
        self._require(self.max_rows >= 2, "max_rows", "at least 2")

    def _fit(self, recordings: tuple[Recording, ...]) -> None:
        rows = pooled_rows(recordings)
        if len(rows) < 2:
            raise DataError("NearestNeighbour: expected at least 2 training rows, found 1; train on more rows")
        self.standardiser_ = Standardiser.of(recordings)
        self.n_training_rows_ = len(rows)
        self.remembered_ = _evenly_spaced(len(rows), self.max_rows)
        self.memory_ = self.standardiser_.z_scores(rows[self.remembered_])
        self.tree_ = self._grown_tree()

    def _grown_tree(self) -> cKDTree:
        # Exact distances, row by row: scikit-learn's brute force gives two equal rows a distance of about 1e-8. An
        # unbalanced tree, because a balanced one is slow to build if many rows are equal.
        return cKDTree(self.memory_, balanced_tree=False)

    def _learned(self) -> dict[str, object]:
        return {name: value for name, value in super()._learned().items() if name != "tree_"}

    def _restore(self, learned: Mapping[str, object]) -> None:
        super()._restore(learned)
        self.tree_ = self._grown_tree()

    def _score(self, recording: Recording) -> FloatArray:
        distances, _ = self.tree_.query(self.standardiser_.z_scores(recording.values))
        return np.asarray(distances, dtype=np.float64)

    def _training_scores(self, recordings: tuple[Recording, ...]) -> list[FloatArray]:
        rows = pooled_rows(recordings)
        if len(rows) != self.n_training_rows_:
            raise DataError(
                f"NearestNeighbour.training_scores: expected the recordings that fit was given, "
                f"{self.n_training_rows_} rows, found {len(rows)}"
            )
        distances, neighbours = map(np.asarray, self.tree_.query(self.standardiser_.z_scores(rows), k=2))
        # If a remembered row is not the first that the tree finds, the first one is another row, equal to it.
        itself_first = self.remembered_[neighbours[:, 0]] == np.arange(len(rows))
        nearest_other = np.where(itself_first, distances[:, 1], distances[:, 0])
        borders = np.cumsum([recording.n_rows for recording in recordings])[:-1]
        return np.split(nearest_other, borders)

    def _contributions(self, recording: Recording) -> FloatArray:
        z = self.standardiser_.z_scores(recording.values)
        _, neighbours = self.tree_.query(z)
        return np.asarray((z - self.memory_[neighbours]) ** 2, dtype=np.float64)


def _evenly_spaced(n_rows: int, at_most: int) -> IntArray:
    """Return the indices of all rows, or of ``at_most`` evenly spaced ones from the first on."""
    count = min(n_rows, at_most)
    return np.arange(count, dtype=np.int64) * n_rows // count
