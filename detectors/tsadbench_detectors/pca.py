"""The principal component classifier: far along the major components, or along the minor ones."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from sklearn import decomposition

from tsadbench.base import Choice, FloatArray, Ge, Gt, Le, Lt, Recording, Traits, Tune, detector
from tsadbench_detectors.control_limits import Smoothing, TwoCharts
from tsadbench_detectors.standardise import Standardiser, pooled_rows
from tsadbench_detectors.t2 import NEGLIGIBLE_VARIANCE, T2


@detector
class PCA(TwoCharts):
    """Scores how far a row lies along the major or the minor principal components, whichever is more unusual.

    The components are those of the sensors' correlation matrix. An extreme row that moves as the training rows do lies
    far along the major components, which have the largest variances. A row that breaks a correlation lies far along the
    minor ones. The components between are ignored. Each of the two sums is divided by a quantile of its training
    values, and the larger one counts, so that a score above 1 is an alarm.

    The ``trimmed`` share of the training rows with the largest Mahalanobis distances counts for the quantiles, not for
    the components. Sensors that are constant over the remaining rows are left out. A direction in which these rows do
    not vary (collinear sensors) counts with 1e-12 of the largest variance.

    Contributions split a row's larger sum, before smoothing, divided by its quantile, into ``z_i (P L^-1 P' z)_i`` (P
    its components, L their variances). They sum to the row's own score and may be negative.

    Parameters
    ----------
    trimmed
        Share of the training rows that the components leave out, at least 0 and below 0.5.
    variance
        Share of the variance that the major components hold at least, above 0 and at most 1.
    minor
        Components with a variance below it are minor ones; the mean variance of all is 1. At least 0 (= none).
    false_alarms
        Share of the training rows that score above 1, if the two sums are independent; above 0 and at most 0.5.
    smoothing
        Rows of the trailing median over both sums; 1: none.

    Notes
    -----
    Equations
        ``y_k = p_k' z`` is a row's score on component k, with variance ``l_k``: ``l_1 >= ... >= l_m``.
        ``major = sum of y_k^2 / l_k`` over ``k <= q``, q the smallest number for which ``l_1 + ... + l_q`` is at least
        half of ``l_1 + ... + l_m``; ``minor`` is the same sum over all k with ``l_k < 0.20``. The paper calls a row an
        outlier if ``major > c_1`` or ``minor > c_2``, with c_1 and c_2 the training values' quantiles at ``1 - a``,
        ``false_alarms = 2 a - a^2``. The score is ``max(major / c_1, minor / c_2)``.
    Differences
        The paper has a rule with two thresholds, and no score. This score exceeds 1 exactly if the paper's rule raises
        an alarm. A quantile counts as 1 at least, the mean of a single term: if sensors are exactly collinear,
        ``minor`` is rounding over the training rows. The paper does not say whether trimmed rows count for the
        quantiles. PyOD's PCA is another method.
    Defaults
        ``trimmed`` (0.5 %), ``variance`` and ``minor`` are the paper's; ``false_alarms`` is the smallest rate in its
        tables, 1 %.

    References
    ----------
    M.-L. Shyu, S.-C. Chen, K. Sarinnapakorn and L. Chang, A novel anomaly detection scheme based on principal
    component classifier, IEEE Foundations and New Directions of Data Mining Workshop (ICDM), 2003.
    """

    traits: ClassVar[Traits] = Traits(family="statistics", paper="Shyu et al., ICDM Workshops 2003")

    trimmed: Annotated[float, Ge(0), Lt(0.5), Choice((0.0, 0.005, 0.02))] = 0.005
    variance: Annotated[float, Gt(0), Le(1), Tune(0.3, 0.9)] = 0.5
    minor: Annotated[float, Ge(0), Lt(float("inf")), Tune(0.01, 0.5, log=True)] = 0.2
    false_alarms: Annotated[float, Gt(0), Le(0.5), Choice((0.001, 0.01, 0.1))] = 0.01
    smoothing: Smoothing = 1

    def _fit(self, recordings: tuple[Recording, ...]) -> None:
        Standardiser.of(recordings).require_variation("PCA")
        rows = pooled_rows(recordings)
        if n_trimmed := int(self.trimmed * len(rows)):
            distances = np.concatenate(T2().fit(recordings).training_scores(recordings))
            rows = np.delete(rows, np.argsort(distances, kind="stable")[-n_trimmed:], axis=0)
        self.standardiser_ = Standardiser.of([Recording("typical rows", rows, recordings[0].sensors)])
        self.standardiser_.require_variation("PCA")
        pca = decomposition.PCA(svd_solver="covariance_eigh").fit(self.standardiser_.varying_z_scores(rows))
        # scikit-learn divides by one less than the number of rows, the z-scores by the number of rows.
        variances = pca.explained_variance_ * (len(rows) - 1) / len(rows)
        variances = np.maximum(variances, NEGLIGIBLE_VARIANCE * variances[0])
        held = np.cumsum(variances) / variances.sum()
        # Rounding must not add a component: the first of two equal variances holds one half.
        self.n_major_ = min(int(np.searchsorted(held, self.variance - 1e-12)) + 1, len(variances))
        kept = (variances < self.minor) | (np.arange(len(variances)) < self.n_major_)
        self.components_ = np.ascontiguousarray(pca.components_[kept].T)
        self.variances_ = variances[kept]
        self.limits_ = np.ones(2)  # until the sums of the training rows are known
        sums = np.concatenate([self._statistics(recording) for recording in recordings])
        self.limits_ = np.maximum(np.quantile(sums, np.sqrt(1 - self.false_alarms), axis=0), 1.0)

    def _split(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        z = self.standardiser_.varying_z_scores(rows)
        weighted = z @ self.components_ / self.variances_
        q = self.n_major_
        major, minor = (
            z * (weighted[:, part] @ self.components_[:, part].T) / limit
            for part, limit in zip((slice(q), slice(q, None)), self.limits_, strict=True)
        )
        return major, minor
