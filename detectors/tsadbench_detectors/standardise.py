"""Scaling by the training rows, with which every detector here that is not scale-free starts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from tsadbench import DataError
from tsadbench.base import BoolArray, FloatArray, Recording
from tsadbench_detectors.row_blocks import pooled_blocks, row_blocks

# So many rows, at most, are standardised at once for their covariance.
_ROWS_OF_COVARIANCE = 65_536


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
        n_rows = sum(recording.n_rows for recording in recordings)
        # NumPy adds the rows of one sensor alone in pairs, which blocks would change.
        blocks = tuple(row_blocks(recordings)) if recordings[0].n_sensors > 1 else (pooled_rows(recordings),)
        mean = summed_rows(blocks) / n_rows
        deviation = np.sqrt(summed_rows((rows - mean) ** 2 for rows in blocks) / n_rows)
        # The mean of equal numbers may differ from them in the last bits, and so may their deviation from 0.
        varies = deviation > n_rows * np.finfo(np.float64).eps * np.abs(mean)
        first = recordings[0].values[0]
        return cls(mean=np.where(varies, mean, first), scale=np.where(varies, deviation, 1.0), varies=varies)

    def scaled(self, values: FloatArray) -> FloatArray:
        """Return the z-scores, under the name that every scaler has."""
        return self.z_scores(values)

    def z_scores(self, values: FloatArray) -> FloatArray:
        """Return ``(values - mean) / scale``, [n_rows, n_sensors]."""
        return (values - self.mean) / self.scale

    def varying_z_scores(self, values: FloatArray) -> FloatArray:
        """Return the z-scores of those sensors that vary over the training rows, [n_rows, n_varying]."""
        z = values[:, self.varies]  # a copy
        z -= self.mean[self.varies]
        z /= self.scale[self.varies]
        return z

    def covariance(self, recordings: Sequence[Recording]) -> FloatArray:
        """Return the covariance (ddof 1) of the varying sensors' z-scores, [n_varying, n_varying].

        Up to 65,536 rows it is `numpy.cov` to the bit; the products of more rows are added block by block.
        """

        def z_scores() -> Iterator[FloatArray]:
            return map(self.varying_z_scores, pooled_blocks(recordings, _ROWS_OF_COVARIANCE))

        n_rows = sum(recording.n_rows for recording in recordings)
        mean = summed_rows(z_scores()) / n_rows
        products = np.zeros((len(mean), len(mean)))
        for z in z_scores():
            z -= mean
            products += np.dot(z.T, z)
        return products * (1 / (n_rows - 1))

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
    """Smallest value and range of each sensor over the training rows, mapped to [0, 1]; other rows may leave it.

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


def summed_rows(blocks: Iterable[FloatArray]) -> FloatArray:
    """Return the sum [n_sensors] of all rows of blocks [n_rows, n_sensors], at least one block.

    Rows of several sensors are added one after the other, as NumPy adds those of one array: to the bit, the sum does
    not depend on how they are divided into blocks.
    """
    total: FloatArray | None = None
    for block in blocks:
        rows = block if total is None else np.concatenate([total[None], block])
        total = rows.sum(axis=0)
    if total is None:
        raise DataError("expected at least one row, found none")
    return total
