"""Scalers, fitted on the training rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from tsadbench import DataError
from tsadbench.base import BoolArray, FloatArray, Recording


class Scaler(Protocol):
    """Brings the sensors to one scale, learned from training rows."""

    def scaled(self, values: FloatArray) -> FloatArray:
        """Return [n_rows, n_sensors] for raw values [n_rows, n_sensors]."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Standardiser:
    """Mean and standard deviation (ddof 0) of each sensor over the pooled training rows.

    A sensor that is constant there (it varies by no more than rounding) has no standard deviation. Its scale is 1: if
    it moves in a test row, its z-score is the distance moved in the sensor's own unit.

    Parameters
    ----------
    mean, scale
        [n_sensors] each.
    varies
        [n_sensors], False for a sensor that is constant over the training rows.

    Examples
    --------
    >>> recording = Recording(id="a", values=np.array([[1.0, 7.0], [3.0, 7.0]]), sensors=("x", "constant"))
    >>> standardiser = Standardiser.of([recording])
    >>> standardiser.z_scores(np.array([[4.0, 7.5]]))
    array([[2. , 0.5]])
    >>> standardiser.varying_z_scores(np.array([[4.0, 7.5]]))
    array([[2.]])
    """

    mean: FloatArray
    scale: FloatArray
    varies: BoolArray

    @classmethod
    def of(cls, recordings: Sequence[Recording]) -> Self:
        """Learn from training recordings."""
        return cls.of_rows(pooled_rows(recordings))

    @classmethod
    def of_rows(cls, rows: FloatArray) -> Self:
        """Learn from training rows [n_rows, n_sensors]."""
        # One sum over all rows: where values repeat, the last bits of the z-scores decide the order of ties.
        mean, deviation = rows.mean(axis=0), rows.std(axis=0)
        # The mean of equal numbers may differ from them in the last bits, and so may their deviation from 0.
        varies = deviation > len(rows) * np.finfo(np.float64).eps * np.abs(mean)
        return cls(mean=np.where(varies, mean, rows[0]), scale=np.where(varies, deviation, 1.0), varies=varies)

    def scaled(self, values: FloatArray) -> FloatArray:
        """Return the z-scores, under the name that every scaler has."""
        return self.z_scores(values)

    def z_scores(self, values: FloatArray) -> FloatArray:
        """Return ``(values - mean) / scale``, [n_rows, n_sensors]."""
        return (values - self.mean) / self.scale

    def varying_z_scores(self, values: FloatArray) -> FloatArray:
        """Return the z-scores of those sensors that vary over the training rows, [n_rows, n_varying]."""
        z: FloatArray = (values[:, self.varies] - self.mean[self.varies]) / self.scale[self.varies]
        return z

    def covariance(self, recordings: Sequence[Recording]) -> FloatArray:
        """Return the covariance (ddof 1) of the varying sensors' z-scores, [n_varying, n_varying]."""
        return np.atleast_2d(np.cov(self.varying_z_scores(pooled_rows(recordings)), rowvar=False))

    def with_constant_sensors(self, by_varying_sensor: FloatArray) -> FloatArray:
        """Return [n_rows, n_varying] as [n_rows, n_sensors]: 0 for each sensor that is constant in training."""
        by_sensor = np.zeros((len(by_varying_sensor), len(self.varies)))
        by_sensor[:, self.varies] = by_varying_sensor
        return by_sensor

    def require_variation(self, detector: str) -> None:
        """Raise a DataError if no sensor varies over the training rows."""
        if not self.varies.any():
            raise DataError(
                f"{detector}: expected training rows in which at least one sensor varies, found all "
                f"{len(self.varies)} constant; train on more rows"
            )


@dataclass(frozen=True, slots=True, eq=False)
class UnitRange:
    """Maps each sensor's range over the training rows to [0, 1]; other rows may exceed it.

    A sensor that is constant over the training rows has the range 1, as for `Standardiser`.

    Parameters
    ----------
    smallest, range
        [n_sensors] each.

    Examples
    --------
    >>> recording = Recording(id="a", values=np.array([[1.0, 7.0], [3.0, 7.0]]), sensors=("x", "constant"))
    >>> UnitRange.of([recording]).scaled(np.array([[2.0, 7.0], [5.0, 7.5]]))
    array([[0.5, 0. ],
           [2. , 0.5]])
    """

    smallest: FloatArray
    range: FloatArray

    @classmethod
    def of(cls, recordings: Sequence[Recording]) -> Self:
        """Learn from training recordings."""
        smallest = np.min([recording.values.min(axis=0) for recording in recordings], axis=0)
        largest = np.max([recording.values.max(axis=0) for recording in recordings], axis=0)
        varies = Standardiser.of(recordings).varies
        return cls(smallest=smallest, range=np.where(varies, largest - smallest, 1.0))

    def scaled(self, values: FloatArray) -> FloatArray:
        """Return ``(values - smallest) / range``, [n_rows, n_sensors]."""
        return (values - self.smallest) / self.range


def pooled_rows(recordings: Sequence[Recording]) -> FloatArray:
    """Return the rows of all recordings, one below the other, [n_rows, n_sensors]."""
    return np.concatenate([recording.values for recording in recordings])
