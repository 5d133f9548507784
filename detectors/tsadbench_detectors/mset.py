"""MSET: estimates a row from remembered normal rows that resemble it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal, Self, TypeAlias, get_args

import numpy as np
from scipy.linalg import lu_factor, lu_solve
from scipy.spatial.distance import cdist

from tsadbench import DataError
from tsadbench.base import (
    Cheap,
    Choice,
    Detector,
    FloatArray,
    Ge,
    Gt,
    IntArray,
    Lt,
    Recording,
    Traits,
    Tune,
    detector,
    trailing_mean,
)
from tsadbench_detectors.control_limits import Smoothing
from tsadbench_detectors.rows import by_blocks
from tsadbench_detectors.standardise import Standardiser, pooled_rows

Residual: TypeAlias = Literal["standardised", "raw"]

# Rows estimated at once: their similarities to the memory take most of the memory used.
_ROWS_AT_ONCE = 10_000
_BLOCKS = 5


@detector
class MSET(Detector):
    """Multivariate state estimation technique: how far a row is from its estimate from remembered rows.

    The score is the length of ``x - estimate``, smoothed; contributions are its squares by sensor, before smoothing.

    Of the distinct rows, it remembers those with each sensor's smallest and largest value, then rows evenly spaced in
    the order of their length, up to ``memory_rows`` (more if the extremes alone are more).

    A remembered row has no residual. So for training scores each recording is cut into five blocks, and each block is
    scored with a memory chosen from the others.

    Parameters
    ----------
    memory_rows
        Number of remembered rows, at least 1.
    ridge
        Added to the diagonal of the memory's similarities, which nearly equal rows make singular.
    residual
        "standardised": in z-scores, so that all sensors count alike; "raw": ``|x - estimate| / |estimate|`` in the
        sensors' own units, as in the SKAB benchmark, so that only sensors with large values matter.
    smoothing
        Rows of the trailing mean over the score, at least 1 (= no smoothing).

    Notes
    -----
    Equations
        ``estimate(x) = D (D' # D)^-1 (D' # x)``, D the memory, one remembered row a column, rows as z-scores, and
        ``a # b = 1 - |a - b| / (|a| + |b|)`` the similarity of two rows. The score is ``|x - estimate(x)|``.
    Differences
        Residuals are in z-scores. The SKAB benchmark takes ``|x - estimate| / |estimate|`` in raw units
        (``residual=raw``), smooths over 60 rows around the row, which looks 29 rows ahead, and remembers all 400
        training rows, whose own residuals are 0. Here the mean is trailing, and training scores are held out.
    Defaults
        memory_rows = 150 for cost, with the paper's rule of extremes and evenly spaced lengths; ridge = 1e-6 only makes
        nearly equal rows solvable; smoothing = 1: none.

    References
    ----------
    R. Singer, K. Gross, J. Herzog, R. King and S. Wegerich, Model-based nuclear power plant monitoring and fault
    detection: theoretical foundations, ISAP 1997.
    """

    traits: ClassVar[Traits] = Traits(
        family="statistics",
        scoring_parameters=("residual", "smoothing"),
        paper="Singer et al., ISAP 1997",
    )

    memory_rows: Annotated[int, Ge(1), Tune(50, 500, log=True), Cheap(60)] = 150
    ridge: Annotated[float, Gt(0), Lt(1), Tune(1e-8, 1e-2, log=True)] = 1e-6
    residual: Annotated[Residual, Choice(get_args(Residual))] = "standardised"
    smoothing: Smoothing = 1

    def declared_traits(self) -> Traits:  # noqa: D102
        return replace(self.traits, memory=self.smoothing - 1)

    def _fit(self, recordings: tuple[Recording, ...]) -> None:
        if sum(recording.n_rows for recording in recordings) < 2:
            raise DataError("MSET: expected at least 2 training rows, found 1; train on more rows")
        self.standardiser_ = Standardiser.of(recordings)
        self.memory_ = self._remember(pooled_rows(recordings))

    def _remember(self, rows: FloatArray) -> Memory:
        # A system at rest repeats its rows; the memory holds distinct ones.
        distinct = np.unique(self.standardiser_.z_scores(rows), axis=0)
        return Memory.of(distinct[chosen_rows(distinct, self.memory_rows)], self.ridge)

    def _score(self, recording: Recording) -> FloatArray:
        return trailing_mean(self._residuals(recording.values, self.memory_), self.smoothing)

    def _contributions(self, recording: Recording) -> FloatArray:
        return by_blocks(lambda rows: self._squares(rows, self.memory_), recording.values, _ROWS_AT_ONCE)

    def _held_out_loss(self, recordings: tuple[Recording, ...], first: int) -> float:
        """Return the mean squared residual in z-scores, whatever ``residual`` is, because that changes the unit."""
        rows = np.concatenate([recording.values[first:] for recording in recordings])
        z = self.standardiser_.z_scores(rows)
        return float(np.mean((z - self.memory_.estimate(z)) ** 2))

    def _training_scores(self, recordings: tuple[Recording, ...]) -> list[FloatArray]:
        scores = [np.empty(recording.n_rows) for recording in recordings]
        blocks = [np.array_split(np.arange(recording.n_rows), _BLOCKS) for recording in recordings]
        for number in range(_BLOCKS):
            held_out = [of_recording[number] for of_recording in blocks]
            others = [np.delete(one.values, block, axis=0) for one, block in zip(recordings, held_out, strict=True)]
            memory = self._remember(np.concatenate(others))
            for recording, block, by_row in zip(recordings, held_out, scores, strict=True):
                if len(block):
                    by_row[block] = self._residuals(recording.values[block], memory)
        return [trailing_mean(by_row, self.smoothing) for by_row in scores]

    def _residuals(self, values: FloatArray, memory: Memory) -> FloatArray:
        """Return the length of each row's residual, [n_rows]."""
        return by_blocks(lambda rows: np.sqrt(self._squares(rows, memory).sum(axis=1)), values, _ROWS_AT_ONCE)

    def _squares(self, rows: FloatArray, memory: Memory) -> FloatArray:
        """Return the squared residual of each sensor, [n_rows, n_sensors]."""
        z = self.standardiser_.z_scores(rows)
        estimate = memory.estimate(z)
        if self.residual == "standardised":
            return np.asarray((z - estimate) ** 2, dtype=np.float64)
        raw = estimate * self.standardiser_.scale + self.standardiser_.mean
        length = np.linalg.norm(raw, axis=1, keepdims=True)
        return np.asarray(((rows - raw) / np.where(length > 0, length, 1.0)) ** 2, dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """Remembered rows, ready to estimate others.

    Parameters
    ----------
    rows
        D', [n_remembered, n_sensors].
    factors, pivots
        LU decomposition of the rows' similarities to each other.
    """

    rows: FloatArray
    factors: FloatArray
    pivots: IntArray

    @classmethod
    def of(cls, rows: FloatArray, ridge: float) -> Self:
        """Remember rows [n_remembered, n_sensors]."""
        factors, pivots = lu_factor(similarities(rows, rows) + ridge * np.eye(len(rows)))
        return cls(rows, factors, np.asarray(pivots, dtype=np.int64))

    def estimate(self, rows: FloatArray) -> FloatArray:
        """Return the estimates of rows [n_rows, n_sensors]."""
        weights = lu_solve((self.factors, self.pivots), similarities(self.rows, rows))
        return np.asarray(weights.T @ self.rows, dtype=np.float64)


def similarities(some: FloatArray, others: FloatArray) -> FloatArray:
    """Return ``1 - |a - b| / (|a| + |b|)`` for every two rows, [n_some, n_others]; 1 for two rows of zeros."""
    lengths = np.linalg.norm(some, axis=1)[:, None] + np.linalg.norm(others, axis=1)
    return np.asarray(1.0 - cdist(some, others) / np.where(lengths > 0, lengths, 1.0), dtype=np.float64)


def chosen_rows(rows: FloatArray, at_most: int) -> IntArray:
    """Return the sorted indices of all extreme rows, and of others evenly spaced by length, up to ``at_most`` rows."""
    if len(rows) <= at_most:
        return np.arange(len(rows), dtype=np.int64)
    extremes = np.unique(np.concatenate([rows.argmin(axis=0), rows.argmax(axis=0)]))
    by_length = np.argsort(np.linalg.norm(rows, axis=1), kind="stable")
    rest = by_length[~np.isin(by_length, extremes)]
    count = min(len(rest), max(0, at_most - len(extremes)))
    evenly = rest[np.arange(count) * len(rest) // max(count, 1)]
    return np.sort(np.concatenate([extremes, evenly]))
