"""Views that were tried for the detector of our own and are not part of it; `own_detector.py` measures them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from scipy.linalg import eigh

from tsadbench.base import FloatArray, trailing_windows
from tsadbench_detectors.multiview.accumulation import mean_of_last
from tsadbench_detectors.multiview.views import VIEWS, Level, Relation, View, by_equal_blocks
from tsadbench_detectors.window_covariance import shrunk_covariance

_NEIGHBOURS = 512
_DYNAMIC_ROWS = 15
_MOST_COMPONENTS = 50


@dataclass(frozen=True, slots=True, eq=False)
class Distance(View):
    """Hotelling's T2 with a shrunk covariance."""

    memory: ClassVar[int] = 0
    per_sensor: ClassVar[int] = 0
    mean: FloatArray
    precision: FloatArray

    @classmethod
    def of(cls, series: Sequence[FloatArray]) -> Self:  # noqa: D102
        mean, covariance = shrunk_covariance(series, 1)
        return cls(mean, np.linalg.inv(covariance))

    def statistics(self, z: FloatArray) -> FloatArray:  # noqa: D102
        centred = z - self.mean
        return np.maximum((centred * (centred @ self.precision)).sum(axis=1, keepdims=True), 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Neighbour(View):
    """Distance to the nearest of 512 evenly spaced training rows."""

    memory: ClassVar[int] = 0
    per_sensor: ClassVar[int] = 0
    rows: FloatArray

    @classmethod
    def of(cls, series: Sequence[FloatArray]) -> Self:  # noqa: D102
        rows = np.concatenate(series)
        count = min(len(rows), _NEIGHBOURS)
        return cls(rows[np.arange(count) * len(rows) // count])

    def statistics(self, z: FloatArray) -> FloatArray:  # noqa: D102
        lengths = (self.rows**2).sum(axis=1)
        squares = (z**2).sum(axis=1) + (lengths - 2 * z @ self.rows.T).min(axis=1)
        return np.sqrt(np.maximum(squares, 0.0))[:, None]


@dataclass(frozen=True, slots=True, eq=False)
class Dynamics(View):
    """T2 along the principal components of the last 15 rows, and the squared length of what they leave."""

    memory: ClassVar[int] = _DYNAMIC_ROWS - 1
    per_sensor: ClassVar[int] = 0
    mean: FloatArray
    components: FloatArray
    variances: FloatArray

    @classmethod
    def of(cls, series: Sequence[FloatArray]) -> Self:  # noqa: D102
        mean, covariance = shrunk_covariance([z for z in series if len(z) >= _DYNAMIC_ROWS], _DYNAMIC_ROWS)
        variances, components = eigh(covariance)
        held = np.cumsum(variances[::-1]) / variances.sum()
        count = min(int(np.searchsorted(held, 0.9)) + 1, _MOST_COMPONENTS)
        return cls(mean, np.ascontiguousarray(components[:, ::-1][:, :count]), variances[::-1][:count])

    def statistics(self, z: FloatArray) -> FloatArray:  # noqa: D102
        def both(rows: FloatArray) -> FloatArray:
            centred = rows - self.mean
            along = centred @ self.components
            left = (centred**2).sum(axis=1) - (along**2).sum(axis=1)
            return np.column_stack([(along**2 / self.variances).sum(axis=1), np.maximum(left, 0.0)])

        return by_equal_blocks(both, trailing_windows(z, _DYNAMIC_ROWS), len(self.mean))


@dataclass(frozen=True, slots=True, eq=False)
class LevelBothSides(Level):
    """*level* with tails of its own above and below the mean."""

    per_sensor: ClassVar[int] = 2

    def statistics(self, z: FloatArray) -> FloatArray:  # noqa: D102
        return np.concatenate([np.maximum(z, 0.0), np.maximum(-z, 0.0)], axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class RelationMean(Relation):
    """*relation* with the mean of the signed residuals of the last 8 rows, in which small lasting shifts add up."""

    memory: ClassVar[int] = Relation.memory + 7

    def statistics(self, z: FloatArray) -> FloatArray:  # noqa: D102
        windows = trailing_windows(z, self.length)
        signed = by_equal_blocks(lambda rows: (rows - self.mean) @ self.weights, windows, len(self.mean))
        return np.abs(mean_of_last(signed, 8))


@dataclass(frozen=True, slots=True, eq=False)
class RelationLargest(Relation):
    """*relation* with one tail for the largest of all sensors' residuals, not one a sensor."""

    per_sensor: ClassVar[int] = 0

    def statistics(self, z: FloatArray) -> FloatArray:  # noqa: D102
        return Relation.statistics(self, z).max(axis=1, keepdims=True)


TRIED: dict[str, type[View]] = {
    "distance": Distance,
    "neighbour": Neighbour,
    "dynamics": Dynamics,
    "level-both-sides": LevelBothSides,
    "relation-mean": RelationMean,
    "relation-largest": RelationLargest,
}


def make_available() -> None:
    """Add these views to those that a `MultiView` of this process may name."""
    VIEWS.update(TRIED)
