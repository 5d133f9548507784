"""T-squared and Q: a row's distance within the principal components, and its distance from them."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np

from tsadbench.base import Choice, FloatArray, Ge, Gt, Le, Lt, Recording, Traits, Tune, detector
from tsadbench_detectors.control_limits import Smoothing, TwoCharts, q_limit, t2_limit
from tsadbench_detectors.standardise import Standardiser
from tsadbench_detectors.t2 import NEGLIGIBLE_VARIANCE


@detector
class T2Q(TwoCharts):
    """The larger of T-squared and Q of a principal component analysis, each divided by its control limit.

    T-squared is measured on the scores of the first k components, the fewest that hold the share ``variance`` of the
    variance; Q is the squared length of the rest of the row. Process monitoring raises an alarm at scores above 1.
    Sensors that are constant over the training rows are left out.

    A direction in which the training rows do not vary (collinear sensors) counts with 1e-12 of the largest variance, so
    a row that breaks the collinearity scores very high. If all components are kept, Q is 0.

    Contributions split a row's larger statistic, before smoothing: ``z_i (P L^-1 P' z)_i`` of T-squared, which may be
    negative, or the sensor's squared residual of Q. They sum to the row's own score.

    Parameters
    ----------
    variance
        Share of the variance that the components hold at least, above 0 and at most 1.
    confidence
        Confidence of both control limits, at least 0.5 and below 1.
    smoothing
        Rows of the trailing median over both statistics, before the larger is taken; 1: none.

    Notes
    -----
    Equations
        With P the first k components and L their variances: ``T2(x) = z' P L^-1 P' z`` and ``Q(x) = |z - P P' z|^2``.
        The score is ``max(T2 / T2_limit, Q / Q_limit)``. T2's limit is ``k (n - 1) (n + 1) / (n (n - k)) F(k, n - k)``;
        Q's is Jackson and Mudholkar's, ``theta1 (1 + z_a h0 sqrt(2 theta2) / theta1 + theta2 h0 (h0 - 1) / theta1^2)^(1
        / h0)`` with ``theta_i = sum_(j > k) lambda_j^i`` and ``h0 = 1 - 2 theta1 theta3 / (3 theta2^2)``, or, if h0 is
        not positive, the scaled chi-squared limit.
    Differences
        The limits join both statistics into one score; charts show them side by side. The SKAB benchmark's code takes
        ``(sum lambda)^i`` for theta_i and residual components from unsorted eigenvalues, so its Q limit is 1.6 to 4.4
        times the right one.
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

    variance: Annotated[float, Gt(0), Le(1), Tune(0.5, 0.99)] = 0.85
    confidence: Annotated[float, Ge(0.5), Lt(1), Choice((0.95, 0.99, 0.999, 0.9999))] = 0.999
    smoothing: Smoothing = 1

    def _fit(self, recordings: tuple[Recording, ...]) -> None:
        self.standardiser_ = Standardiser.of(recordings)
        self.standardiser_.require_variation("T2Q")
        n_rows = sum(recording.n_rows for recording in recordings)
        ascending, vectors = np.linalg.eigh(self.standardiser_.covariance(recordings))
        variances, vectors = ascending[::-1], vectors[:, ::-1]
        smallest = NEGLIGIBLE_VARIANCE * variances[0]
        positive = variances[variances > smallest]
        held = np.cumsum(positive) / positive.sum()
        k = min(int(np.searchsorted(held, self.variance)) + 1, len(positive))
        self.components_ = np.ascontiguousarray(vectors[:, :k])
        self.component_variances_ = variances[:k].copy()
        self.t2_limit_ = t2_limit(k, n_rows, self.confidence)
        self.q_limit_ = q_limit(np.maximum(variances[k:], smallest), self.confidence)

    def _split(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        z = self.standardiser_.varying_z_scores(rows)
        scores = z @ self.components_
        distances = scores / self.component_variances_ @ self.components_.T
        residuals = z - scores @ self.components_.T
        return z * distances / self.t2_limit_, residuals**2 / self.q_limit_
