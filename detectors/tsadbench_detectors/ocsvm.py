"""One-class support vector machine: how far a row is outside the region that holds the training rows."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import logsumexp
from sklearn.svm import OneClassSVM as SklearnOneClassSVM

from tsadbench.base import (
    Cheap,
    Choice,
    Detector,
    FloatArray,
    Ge,
    Gt,
    Le,
    Lt,
    Recording,
    Traits,
    Tune,
    detector,
    seeded,
)
from tsadbench_detectors.rows import by_blocks, evenly_spaced_rows
from tsadbench_detectors.standardise import Standardiser

# The distances of this many rows to 250 support vectors take 4 MiB.
_ROWS_AT_ONCE = 2_048


@detector
class OneClassSVM(Detector):
    """Scores how far a row is outside the region that a one-class support vector machine draws around normal rows.

    The machine (scikit-learn's, with an RBF kernel) finds the weights of a few training rows, its support vectors, so
    that the weighted sum of their kernels lies above a bound for all but a share ``nu`` of the training rows. The
    smaller a row's sum, the more anomalous the row. Rows are z-scores. Training time grows with the square of the
    number of rows, so at most ``max_rows`` take part, evenly spaced.

    Contributions are the squared differences between a row and the mean of the support vectors, weighted by their parts
    in the row's sum: the score grows fastest in that direction.

    Parameters
    ----------
    nu
        Above 0 and at most 1: bounds the share of training rows outside the region from above, and the share of
        support vectors from below.
    gamma
        Factor in the kernel ``exp(-gamma |x - y|^2)``, above 0; None: 1 / (number of sensors x z-scores' variance).
    max_rows
        Maximum number of training rows that take part, at least 2.

    Notes
    -----
    Equations
        Minimise ``|w|^2 / 2 + sum_i xi_i / (nu n) - rho`` subject to ``w . phi(x_i) >= rho - xi_i`` and ``xi_i >= 0``.
        With the dual's weights ``alpha_i``, a row is outside if ``f(x) = sum_i alpha_i k(x_i, x)`` is below rho. The
        score is ``log rho - log f(x)``.
    Differences
        The paper's decision function is ``f(x) - rho``. The score orders rows in the same way, but is a difference of
        logarithms: a few standard deviations away from all support vectors, every kernel is lost in the rounding of
        rho, and all rows would get the same score (on SKAB, all valve recordings). The paper trains on all rows; here
        ``max_rows`` bounds their number.
    Defaults
        nu = 0.05, as in the paper's experiment with handwritten digits; scikit-learn's 0.5 would put half of the
        training rows outside. gamma as scikit-learn's "scale". max_rows for cost.

    References
    ----------
    B. Scholkopf, J. C. Platt, J. Shawe-Taylor, A. J. Smola and R. C. Williamson, Estimating the support of a
    high-dimensional distribution, Neural Computation 13(7), 2001.
    """

    traits: ClassVar[Traits] = Traits(
        family="one-class", memory=0, paper="Scholkopf et al., Neural Computation 13(7), 2001"
    )

    nu: Annotated[float, Gt(0), Le(1), Tune(0.001, 0.5, log=True)] = 0.05
    gamma: Annotated[float | None, Gt(0), Lt(float("inf")), Choice((None, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0))] = None
    max_rows: Annotated[int, Ge(2), Cheap(500)] = 5_000

    def _fit(self, recordings: tuple[Recording, ...]) -> None:
        self.standardiser_ = Standardiser.of(recordings)
        rows, _ = evenly_spaced_rows(recordings, self.max_rows)
        z = self.standardiser_.z_scores(rows)
        variance = float(z.var())
        scale = 1 / (z.shape[1] * variance) if variance > 0 else 1.0
        self.gamma_ = float(scale if self.gamma is None else self.gamma)
        # scikit-learn draws a number from the global generator, but a one-class machine does not use it.
        with seeded(0):
            machine = SklearnOneClassSVM(kernel="rbf", gamma=self.gamma_, nu=self.nu).fit(z)
        self.support_vectors_ = np.ascontiguousarray(z[machine.support_])
        self.log_weights_ = np.log(machine.dual_coef_[0])
        self.log_bound_ = float(np.log(machine.offset_[0]))

    def _score(self, recording: Recording) -> FloatArray:
        return by_blocks(
            lambda rows: self.log_bound_ - logsumexp(self._log_terms(rows), axis=1), recording.values, _ROWS_AT_ONCE
        )

    def _contributions(self, recording: Recording) -> FloatArray:
        return by_blocks(self._squares, recording.values, _ROWS_AT_ONCE)

    def _squares(self, rows: FloatArray) -> FloatArray:
        terms = self._log_terms(rows)
        parts = np.exp(terms - logsumexp(terms, axis=1, keepdims=True))
        return np.asarray((self.standardiser_.z_scores(rows) - parts @ self.support_vectors_) ** 2, dtype=np.float64)

    def _log_terms(self, rows: FloatArray) -> FloatArray:
        """Return the logarithm of each support vector's part in each row's sum, [n_rows, n_support_vectors]."""
        distances = cdist(self.standardiser_.z_scores(rows), self.support_vectors_, "sqeuclidean")
        return np.asarray(self.log_weights_ - self.gamma_ * distances, dtype=np.float64)
