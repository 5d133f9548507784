"""Process monitoring with two charts: their control limits, and one score of both."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Annotated, TypeAlias

import numpy as np
from scipy import stats

from tsadbench.base import Detector, FloatArray, Ge, Recording, Traits, Tune
from tsadbench_detectors.rows import by_blocks, trailing_median
from tsadbench_detectors.standardise import Standardiser

Smoothing: TypeAlias = Annotated[int, Ge(1), Tune(1, 30, log=True)]

_ROWS_AT_ONCE = 4_096


class TwoCharts(Detector):
    """Scores the larger of two statistics of a row, each divided by its limit: charts raise an alarm above 1.

    Both statistics are smoothed by a trailing median before the larger is taken. Contributions split the statistic that
    is larger in a row, before smoothing; they sum to the row's own score. Sensors that are constant over the training
    rows are left out.
    """

    smoothing: int
    standardiser_: Standardiser

    def declared_traits(self) -> Traits:  # noqa: D102
        return replace(self.traits, memory=self.smoothing - 1)

    def _score(self, recording: Recording) -> FloatArray:
        first, second = self._statistics(recording).T
        return np.maximum(trailing_median(first, self.smoothing), trailing_median(second, self.smoothing))

    def _statistics(self, recording: Recording) -> FloatArray:
        """Return both statistics of each row, divided by their limits, [n_rows, 2]."""

        def sums(rows: FloatArray) -> FloatArray:
            return np.column_stack([split.sum(axis=1) for split in self._split(rows)])

        return by_blocks(sums, self._inputs(recording), _ROWS_AT_ONCE)

    def _contributions(self, recording: Recording) -> FloatArray:
        def larger(rows: FloatArray) -> FloatArray:
            first, second = self._split(rows)
            return np.where((first.sum(axis=1) >= second.sum(axis=1))[:, None], first, second)

        by_sensor = by_blocks(larger, self._inputs(recording), _ROWS_AT_ONCE)
        return self.standardiser_.with_constant_sensors(by_sensor)

    def _inputs(self, recording: Recording) -> FloatArray:
        """Return what each row's statistics are computed from, [n_rows, ...]."""
        return recording.values

    @abstractmethod
    def _split(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return both statistics of inputs, divided by their limits and split by sensor, [n_rows, n_varying] each."""


def t2_limit(n_variables: int, n_rows: int, confidence: float) -> float:
    """Return the limit of Hotelling's T-squared for a row that was not used to estimate the covariance.

    ``m (n - 1) (n + 1) / (n (n - m)) F(confidence; m, n - m)`` for m variables and n > m training rows; ``confidence``
    is the share of normal rows below the limit.

    Examples
    --------
    >>> round(t2_limit(8, 400, 0.999), 2)
    27.35
    """
    m, n = n_variables, n_rows
    return m * (n - 1) * (n + 1) / (n * (n - m)) * float(stats.f.ppf(confidence, m, n - m))


def q_limit(residual_variances: FloatArray, confidence: float) -> float:
    """Return the limit of Q, the squared length of a row's residual outside the principal components.

    Jackson and Mudholkar's approximation (Technometrics 21(3), 1979) for the variances of the components that were not
    kept, [n_residual], positive; infinite if there are none. It does not hold if its exponent h0 is not positive; then
    the limit is that of the scaled chi-squared distribution with the same mean and variance (G. E. P. Box, Annals of
    Mathematical Statistics 25(2), 1954).

    Examples
    --------
    >>> round(q_limit(np.array([0.5, 0.3, 0.2]), 0.95), 2)
    2.74
    """
    if not len(residual_variances):
        return float("inf")
    theta1, theta2, theta3 = (float(np.sum(residual_variances**power)) for power in (1, 2, 3))
    h0 = 1 - 2 * theta1 * theta3 / (3 * theta2**2)
    if h0 <= 0:
        return theta2 / theta1 * float(stats.chi2.ppf(confidence, theta1**2 / theta2))
    normal = float(stats.norm.ppf(confidence))
    root = 1 + normal * h0 * (2 * theta2) ** 0.5 / theta1 + theta2 * h0 * (h0 - 1) / theta1**2
    return float(theta1 * root ** (1 / h0))
