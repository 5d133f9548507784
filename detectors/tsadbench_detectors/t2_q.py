"""T-squared and Q: a row's distance within the principal components, and its distance from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np

from tsadbench.base import Choice, Detector, FloatArray, Recording, Space, Traits, Tune
from tsadbench_detectors.control_limits import q_limit, t2_limit
from tsadbench_detectors.row_blocks import by_blocks
from tsadbench_detectors.smoothing import trailing_median
from tsadbench_detectors.standardise import Standardiser
from tsadbench_detectors.t2 import NEGLIGIBLE_VARIANCE


class T2Q(Detector):
    """The larger of T-squared and Q of a principal component analysis, each divided by its control limit.

    T-squared is measured on the scores of the first k components, the fewest that hold the share ``variance`` of the
    variance; Q is the squared length of what they leave of a row. Process monitoring raises an alarm at scores above
    1. Sensors that are constant over the training rows are left out. Smoothing is applied to T-squared and to Q,
    before the larger one is taken.

    A direction in which the training rows do not vary at all (collinear sensors) counts with 1e-12 of the largest
    variance: a row that breaks the collinearity scores very high. If all components are kept, Q is 0.

    Contributions split the statistic that is the larger one in a row, before smoothing, divided by its limit:
    ``z_i (P L^-1 P' z)_i`` of T-squared (P the components, L their variances; one may be negative), the squared
    residual of the sensor of Q. They sum to the row's own score.

    Parameters
    ----------
    variance
        Share of the variance that the components hold at least, above 0 and at most 1.
    confidence
        Of both control limits, at least 0.5 and below 1.
    smoothing
        Rows of the trailing median over both statistics, at least 1 (= no smoothing). At a recording's start it is
        taken over the rows that exist.

    Notes
    -----
    Equations
        With P the first k components and L their variances: ``T2(x) = z' P L^-1 P' z`` and ``Q(x) = |z - P P' z|^2``.
        The score is ``max(T2 / T2_limit, Q / Q_limit)``. T2's limit is ``k (n - 1) (n + 1) / (n (n - k)) F(k, n - k)``;
        Q's is Jackson and Mudholkar's, ``theta1 (1 + z_a h0 sqrt(2 theta2) / theta1 + theta2 h0 (h0 - 1) / theta1^2)^(1
        / h0)`` with ``theta_i = sum_(j > k) lambda_j^i`` and ``h0 = 1 - 2 theta1 theta3 / (3 theta2^2)``, or, if h0 is
        not positive, the scaled chi-squared limit.
    Differences
        Both statistics are joined into one score by their limits; charts show them side by side. The SKAB benchmark's
        code takes ``(sum lambda)^i`` for theta_i and residual components from unsorted eigenvalues, so that its Q limit
        is 1.6 to 4.4 times the right one; this one has neither fault.
    Defaults
        variance = 0.85 and the limits at 99.9 % are those of the SKAB benchmark. The confidence only weighs T2 against
        Q: thresholds are the protocol's. No smoothing.

    References
    ----------
    J. E. Jackson and G. S. Mudholkar, Control procedures for residuals associated with principal component
    analysis, Technometrics 21(3), 1979; S. J. Qin, Statistical process monitoring: basics and beyond, Journal of
    Chemometrics 17, 2003.
    """

    traits: ClassVar[Traits] = Traits(family="statistics", paper="Jackson and Mudholkar, Technometrics 21(3), 1979")

    def __init__(self, *, variance: float = 0.85, confidence: float = 0.999, smoothing: int = 1) -> None:
        self.variance = variance
        self.confidence = confidence
        self.smoothing = smoothing

    def declared_traits(self) -> Traits:  # noqa: D102
        return replace(self.traits, memory=self.smoothing - 1)

    @classmethod
    def search_space(cls) -> Mapping[str, Space]:  # noqa: D102
        return {
            "variance": Tune(0.5, 0.99),
            "confidence": Choice((0.95, 0.99, 0.999, 0.9999)),
            "smoothing": Tune(1, 30, log=True),
        }

    def _check(self, sensors: tuple[str, ...]) -> None:  # noqa: ARG002
        self._require(0 < self.variance <= 1, "variance", "above 0 and at most 1")
        self._require(0.5 <= self.confidence < 1, "confidence", "at least 0.5 and below 1")
        self._require(self.smoothing >= 1, "smoothing", "at least 1")

    def _fit(self, recordings: tuple[Recording, ...]) -> None:
        self.standardiser_ = Standardiser.of(recordings)
        self.standardiser_.require_variation("T2Q")
        n_rows = sum(recording.n_rows for recording in recordings)
        ascending, vectors = np.linalg.eigh(self.standardiser_.covariance(recordings))
        variances, vectors = ascending[::-1], vectors[:, ::-1]
        k = _n_components(variances, self.variance)
        smallest = NEGLIGIBLE_VARIANCE * variances[0]
        # A copy of a view with other strides sums in another order: pickled and fitted detector must agree to the bit.
        self.components_ = np.ascontiguousarray(vectors[:, :k])
        self.component_variances_ = np.ascontiguousarray(variances[:k])
        self.t2_limit_ = t2_limit(k, n_rows, self.confidence)
        self.q_limit_ = q_limit(np.maximum(variances[k:], smallest), self.confidence)

    def _score(self, recording: Recording) -> FloatArray:
        t2, q = by_blocks(self._sums, recording.values).T
        return np.maximum(trailing_median(t2, self.smoothing), trailing_median(q, self.smoothing))

    def _contributions(self, recording: Recording) -> FloatArray:
        return by_blocks(self._of_the_larger, recording.values)

    def _sums(self, rows: FloatArray) -> FloatArray:
        """Return each row's T-squared and Q, [n_rows, 2]."""
        return np.column_stack([statistic.sum(axis=1) for statistic in self._statistics(rows)])

    def _of_the_larger(self, rows: FloatArray) -> FloatArray:
        t2, q = self._statistics(rows)
        t2_is_larger = t2.sum(axis=1) >= q.sum(axis=1)
        return self.standardiser_.with_constant_sensors(np.where(t2_is_larger[:, None], t2, q))

    def _statistics(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return T-squared and Q, divided by their limits and split by sensor, [n_rows, n_varying] each."""
        z = self.standardiser_.varying_z_scores(rows)
        # einsum instead of @: a row's last bits must not depend on how many rows are scored with it.
        scores = np.einsum("ri,ik->rk", z, self.components_)
        distances = np.einsum("rk,ik->ri", scores / self.component_variances_, self.components_)
        residuals = z - np.einsum("rk,ik->ri", scores, self.components_)
        return z * distances / self.t2_limit_, residuals**2 / self.q_limit_


def _n_components(variances: FloatArray, share: float) -> int:
    """Return how many of the descending variances hold the share, of those that are more than rounding."""
    positive = variances[variances > NEGLIGIBLE_VARIANCE * variances[0]]
    held = np.cumsum(positive) / positive.sum()
    return min(int(np.searchsorted(held, share)) + 1, len(positive))
