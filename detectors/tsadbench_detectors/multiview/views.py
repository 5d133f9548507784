"""Views of a row: statistics that are large if the row is unusual in one respect, learned from normal rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from tsadbench.base import BoolArray, FloatArray
from tsadbench_detectors.window_covariance import shrunk_covariance

_MOVEMENT_ROWS = 16
# Of a mean squared step in z-scores: below, a sensor stands still.
_SMALLEST_STEP = 1e-6
_SMALLEST_SPREAD = 1e-3
# Of what others leave of a sensor, in z-scores: exactly collinear sensors leave rounding.
_SMALLEST_VARIANCE = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class View(ABC):
    """One way to look at rows that are given as z-scores of the training rows."""

    memory: ClassVar[int]  # number of rows before a row that its statistics depend on
    sees_constant_sensors: ClassVar[bool] = False  # constant over the rows that it is fitted to

    @classmethod
    @abstractmethod
    def of(cls, series: Sequence[FloatArray]) -> Self:
        """Learn from series of z-scores [n_rows, n_sensors]."""

    @abstractmethod
    def statistics(self, z: FloatArray) -> FloatArray:
        """Return [n_rows, n_statistics] of a recording's z-scores; not negative.

        Of two statistics a sensor, those of the one kind come first, then those of the other.
        """

    def shares(self, z: FloatArray) -> FloatArray | None:  # noqa: ARG002
        """Return each sensor's share [n_rows, n_sensors] in the statistic of a view that has only one, or None."""
        return None


@dataclass(frozen=True, slots=True, eq=False)
class Level(View):
    """How far each sensor is from its mean: ``|z|``."""

    memory: ClassVar[int] = 0

    @classmethod
    def of(cls, series: Sequence[FloatArray]) -> Self:  # noqa: ARG003, D102
        return cls()

    def statistics(self, z: FloatArray) -> FloatArray:  # noqa: D102
        return np.abs(z)


@dataclass(frozen=True, slots=True, eq=False)
class Range(View):
    """How far a row is outside the box of the training rows: the Euclidean length of what sticks out."""

    memory: ClassVar[int] = 0
    sees_constant_sensors: ClassVar[bool] = True

    smallest: FloatArray
    largest: FloatArray

    @classmethod
    def of(cls, series: Sequence[FloatArray]) -> Self:  # noqa: D102
        return cls(np.min([z.min(axis=0) for z in series], axis=0), np.max([z.max(axis=0) for z in series], axis=0))

    def statistics(self, z: FloatArray) -> FloatArray:  # noqa: D102
        return np.asarray(np.sqrt((self._outside(z) ** 2).sum(axis=1, keepdims=True)))

    def shares(self, z: FloatArray) -> FloatArray:  # noqa: D102
        squares = self._outside(z) ** 2
        total = squares.sum(axis=1, keepdims=True)
        return np.asarray(np.divide(squares, total, out=np.full_like(squares, 1 / z.shape[1]), where=total > 0))

    def _outside(self, z: FloatArray) -> FloatArray:
        return np.asarray(np.maximum(np.maximum(self.smallest - z, z - self.largest), 0.0))


@dataclass(frozen=True, slots=True, eq=False)
class Residual(View):
    """What linear forecasts leave of each sensor, in standard deviations: ``|A' (x - mean)|`` of the last rows x."""

    length: ClassVar[int]  # rows of a window

    mean: FloatArray  # [length * n_sensors] of windows, the oldest row first
    weights: FloatArray  # [length * n_sensors, n_sensors], A: a column makes a row's residual of a sensor

    @classmethod
    def of(cls, series: Sequence[FloatArray]) -> Self:  # noqa: D102
        mean, covariance = cls._moments(series)
        return cls(mean, cls._weights(covariance, series[0].shape[1]))

    @classmethod
    def _moments(cls, series: Sequence[FloatArray]) -> tuple[FloatArray, FloatArray]:
        """Return mean and shrunk covariance of the windows."""
        long_enough = [z for z in series if len(z) >= cls.length]
        if not long_enough:  # a window of copies is better than none
            long_enough = [np.concatenate([np.repeat(z[:1], cls.length - 1, axis=0), z]) for z in series]
        mean, covariance = shrunk_covariance(long_enough, cls.length)
        covariance[np.diag_indices(len(mean))] += _SMALLEST_VARIANCE
        return mean, covariance

    @classmethod
    @abstractmethod
    def _weights(cls, covariance: FloatArray, n_sensors: int) -> FloatArray:
        """Return A for the covariance of windows."""

    def statistics(self, z: FloatArray) -> FloatArray:  # noqa: D102
        padded = np.concatenate([np.repeat(z[:1], self.length - 1, axis=0), z])
        of_lags = np.split(self.weights, self.length)
        residuals = -(self.mean @ self.weights) + sum(padded[i : i + len(z)] @ lag for i, lag in enumerate(of_lags))
        return np.asarray(np.abs(residuals))


@dataclass(frozen=True, slots=True, eq=False)
class Relation(Residual):
    """Each sensor against what the other sensors' last rows say of it; its own past is left out.

    A sensor that stays wrong therefore stays visible. With K the inverse of the covariance of windows of five rows and
    B the places of a sensor in a window, what the others leave of its rows has the covariance ``(K_BB)^-1`` and is
    ``(K_BB)^-1 K_B (x - mean)`` (the conditional of a Gaussian). The last row's counts.
    """

    memory: ClassVar[int] = 4
    length: ClassVar[int] = 5

    @classmethod
    def _weights(cls, covariance: FloatArray, n_sensors: int) -> FloatArray:
        precision = np.linalg.inv(covariance)
        precision = (precision + precision.T) / 2
        weights = np.empty((len(precision), n_sensors))
        for sensor in range(n_sensors):
            own = slice(sensor, None, n_sensors)
            conditional = np.linalg.inv(precision[own, own])
            weights[:, sensor] = precision[:, own] @ (conditional[-1] / np.sqrt(conditional[-1, -1]))
        return weights


@dataclass(frozen=True, slots=True, eq=False)
class Graph(Relation):
    """*relation* with each sensor's neighbours in a graph in place of all others; a sensor without neighbours has 0."""

    @classmethod
    def over(cls, neighbours: BoolArray, series: Sequence[FloatArray]) -> Self:
        """Learn as `of` does; ``neighbours`` [n_sensors, n_sensors] is symmetric."""
        mean, covariance = cls._moments(series)
        n_sensors = len(neighbours)
        weights = np.zeros((len(mean), n_sensors))
        for sensor in np.flatnonzero(neighbours.any(axis=1)):
            chosen = np.append(np.flatnonzero(neighbours[sensor] & (np.arange(n_sensors) != sensor)), sensor)
            places = (np.arange(cls.length)[:, None] * n_sensors + chosen).ravel()
            of_these = Relation._weights(covariance[np.ix_(places, places)], len(chosen))
            weights[places, sensor] = of_these[:, -1]
        return cls(mean, weights)


@dataclass(frozen=True, slots=True, eq=False)
class Forecast(Residual):
    """Each sensor against its forecast from the ten rows before and the other sensors of the same row.

    With W the linear forecast of a row from those before it and E the covariance of its errors e, a sensor's error that
    the other sensors' errors leave is ``(E^-1 e)_i / sqrt((E^-1)_ii)``.
    """

    memory: ClassVar[int] = 10
    length: ClassVar[int] = 11

    @classmethod
    def _weights(cls, covariance: FloatArray, n_sensors: int) -> FloatArray:
        past, row = slice(0, -n_sensors), slice(-n_sensors, None)
        forecast = cho_solve(cho_factor(covariance[past, past]), covariance[past, row])
        errors = covariance[row, row] - covariance[row, past] @ forecast
        precision = np.linalg.inv((errors + errors.T) / 2)
        scaled = precision / np.sqrt(np.diag(precision))
        return np.concatenate([-forecast @ scaled, scaled])


@dataclass(frozen=True, slots=True, eq=False)
class Movement(View):
    """How much each sensor moves within 16 rows: too much and, by itself, too little.

    The logarithm of the mean squared step from row to row, as far above its mean in normal rows, and as far below it.
    """

    memory: ClassVar[int] = _MOVEMENT_ROWS

    mean: FloatArray  # [n_sensors] of the logarithms in normal rows, as the scale
    scale: FloatArray

    @classmethod
    def of(cls, series: Sequence[FloatArray]) -> Self:  # noqa: D102
        movements = [_log_movement(z) for z in series if len(z) > _MOVEMENT_ROWS]
        if not movements:
            return cls(np.zeros(series[0].shape[1]), np.ones(series[0].shape[1]))
        rows = np.concatenate(movements)
        return cls(rows.mean(axis=0), np.maximum(rows.std(axis=0), _SMALLEST_SPREAD))

    def statistics(self, z: FloatArray) -> FloatArray:  # noqa: D102
        deviation = np.zeros_like(z)  # of the first rows, which have too few steps
        if len(z) > _MOVEMENT_ROWS:
            deviation[_MOVEMENT_ROWS:] = (_log_movement(z) - self.mean) / self.scale
        return np.concatenate([np.maximum(deviation, 0.0), np.maximum(-deviation, 0.0)], axis=1)


def _log_movement(z: FloatArray) -> FloatArray:
    """Return the logarithm of each sensor's mean squared step over the last 16 steps, [n_rows - 16, n_sensors]."""
    squares = np.diff(z, axis=0) ** 2
    for shift in (1, 2, 4, 8):  # sums of 2, 4, 8 and 16 steps
        squares = squares[shift:] + squares[:-shift]
    return np.asarray(np.log10(squares / _MOVEMENT_ROWS + _SMALLEST_STEP))


VIEWS: dict[str, type[View]] = {
    "level": Level,
    "range": Range,
    "relation": Relation,
    "forecast": Forecast,
    "movement": Movement,
    "graph": Graph,
}
