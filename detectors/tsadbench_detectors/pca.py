"""The principal component classifier: far along the major components, or off along the minor ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
from sklearn import decomposition

from tsadbench.base import Choice, Detector, FloatArray, Recording, Space, Traits, Tune
from tsadbench_detectors.row_blocks import by_blocks
from tsadbench_detectors.smoothing import trailing_median
from tsadbench_detectors.standardise import Standardiser, pooled_rows
from tsadbench_detectors.t2 import NEGLIGIBLE_VARIANCE, T2


class PCA(Detector):
    """Scores how far a row lies along the major or the minor principal components, whichever is more unusual.

    The components are those of the sensors' correlation matrix. A row that is extreme, but moves as the training rows
    do, lies far along the major components, those with the largest variances. A row that breaks a correlation lies off
    along the minor ones, along which training rows hardly vary. What lies between is ignored. Each of the two sums is
    divided by a quantile of its training values, and the larger one counts, so that a score above 1 is an alarm.

    The most extreme training rows have no part in the components: the ``trimmed`` share with the largest Mahalanobis
    distances. They do count for the quantiles. Sensors that are constant over the remaining rows are left out. A
    direction in which these do not vary at all (collinear sensors) counts with 1e-12 of the largest variance. There are
    no more components than training rows.

    Contributions split the sum that is the larger one in a row, before smoothing, divided by its quantile:
    ``z_i (P L^-1 P' z)_i`` (P its components, L their variances). They sum to the row's own score; one is negative if
    the sensor's deviation is what the other sensors' deviations predict.

    Parameters
    ----------
    trimmed
        Share of the training rows that the components do without, at least 0 and below 0.5.
    variance
        Share of the variance that the major components hold at least, above 0 and at most 1.
    minor
        Components with a variance below it are minor ones; the mean variance of all is 1. At least 0 (= none).
    false_alarms
        Share of the training rows that score above 1, if the two sums are independent; above 0 and at most 0.5.
    smoothing
        Rows of the trailing median over both sums, at least 1 (= no smoothing). At a recording's start it is taken
        over the rows that exist.

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
        an alarm; at other false-alarm rates, both thresholds move by the same factor. A quantile counts as 1 at least,
        the mean of a single term: if sensors are exactly collinear, ``minor`` is rounding over the training rows. The
        paper does not say whether trimmed rows count for the quantiles. PyOD's PCA is another method: it adds up
        distances of a row to the ends of the unit eigenvectors.
    Defaults
        ``trimmed`` (0.5 %), ``variance`` and ``minor`` are the paper's; ``false_alarms`` is the smallest rate in its
        tables, 1 %.

    References
    ----------
    M.-L. Shyu, S.-C. Chen, K. Sarinnapakorn and L. Chang, A novel anomaly detection scheme based on principal
    component classifier, IEEE Foundations and New Directions of Data Mining Workshop (ICDM), 2003.
    """

    traits: ClassVar[Traits] = Traits(family="statistics", paper="Shyu et al., ICDM Workshops 2003")

    def __init__(
        self,
        *,
        trimmed: float = 0.005,
        variance: float = 0.5,
        minor: float = 0.2,
        false_alarms: float = 0.01,
        smoothing: int = 1,
    ) -> None:
        self.trimmed = trimmed
        self.variance = variance
        self.minor = minor
        self.false_alarms = false_alarms
        self.smoothing = smoothing

    def declared_traits(self) -> Traits:  # noqa: D102
        return replace(self.traits, memory=self.smoothing - 1)

    @classmethod
    def search_space(cls) -> Mapping[str, Space]:  # noqa: D102
        return {
            "trimmed": Choice((0.0, 0.005, 0.02)),
            "variance": Tune(0.3, 0.9),
            "minor": Tune(0.01, 0.5, log=True),
            "false_alarms": Choice((0.001, 0.01, 0.1)),
            "smoothing": Tune(1, 30, log=True),
        }

    def _check(self, sensors: tuple[str, ...]) -> None:  # noqa: ARG002
        self._require(0 <= self.trimmed < 0.5, "trimmed", "at least 0 and below 0.5")
        self._require(0 < self.variance <= 1, "variance", "above 0 and at most 1")
        self._require(0 <= self.minor < np.inf, "minor", "at least 0 and finite")
        self._require(0 < self.false_alarms <= 0.5, "false_alarms", "above 0 and at most 0.5")
        self._require(self.smoothing >= 1, "smoothing", "at least 1")

    def _fit(self, recordings: tuple[Recording, ...]) -> None:
        Standardiser.of(recordings).require_variation("PCA")
        typical = _without_the_most_extreme(recordings, self.trimmed)
        self.standardiser_ = Standardiser.of([typical])
        self.standardiser_.require_variation("PCA")
        pca = decomposition.PCA(svd_solver="covariance_eigh").fit(self.standardiser_.varying_z_scores(typical.values))
        # The divisor of scikit-learn is one less than the number of rows, that of the z-scores is this number.
        variances = pca.explained_variance_ * (typical.n_rows - 1) / typical.n_rows
        variances = np.maximum(variances, NEGLIGIBLE_VARIANCE * variances[0])
        held = np.cumsum(variances) / variances.sum()
        # Rounding must not add a component: the first of two equal variances holds one half.
        n_major = min(int(np.searchsorted(held, self.variance - 1e-12)) + 1, len(variances))
        self.n_major_ = n_major
        kept = (variances < self.minor) | (np.arange(len(variances)) < n_major)
        # A copy of a view with other strides sums in another order: pickled and fitted detector must agree to the bit.
        self.components_ = np.ascontiguousarray(pca.components_[kept].T)
        self.variances_ = variances[kept]
        sums = np.concatenate([by_blocks(self._sums, recording.values) for recording in recordings])
        quantiles = np.quantile(sums, np.sqrt(1 - self.false_alarms), axis=0)
        self.limits_ = np.maximum(quantiles, 1.0)

    def _score(self, recording: Recording) -> FloatArray:
        shares = by_blocks(self._sums, recording.values) / self.limits_
        major, minor = (trailing_median(share, self.smoothing) for share in shares.T)
        return np.maximum(major, minor)

    def _contributions(self, recording: Recording) -> FloatArray:
        return by_blocks(self._of_the_larger, recording.values)

    def _sums(self, rows: FloatArray) -> FloatArray:
        """Return each row's sums over the major and over the minor components, [n_rows, 2]."""
        squares = self._along(self.standardiser_.varying_z_scores(rows)) ** 2 / self.variances_
        return np.column_stack([squares[:, : self.n_major_].sum(axis=1), squares[:, self.n_major_ :].sum(axis=1)])

    def _of_the_larger(self, rows: FloatArray) -> FloatArray:
        z = self.standardiser_.varying_z_scores(rows)
        weighted = self._along(z) / self.variances_
        shares = self._sums(rows) / self.limits_
        major_is_larger = shares[:, :1] >= shares[:, 1:]
        is_major = np.arange(len(self.variances_)) < self.n_major_
        weighted[is_major != major_is_larger] = 0.0
        split = z * np.einsum("rk,ik->ri", weighted, self.components_)
        return self.standardiser_.with_constant_sensors(split / np.where(major_is_larger, *self.limits_))

    def _along(self, z: FloatArray) -> FloatArray:
        """Return the rows' scores on the components, [n_rows, n_components]."""
        # einsum instead of @: a row's last bits must not depend on how many rows are scored with it.
        scores: FloatArray = np.einsum("ri,ik->rk", z, self.components_)
        return scores


def _without_the_most_extreme(recordings: Sequence[Recording], share: float) -> Recording:
    """Return the rows of all recordings but for the share with the largest Mahalanobis distances, as one recording."""
    rows = pooled_rows(recordings)
    n_trimmed = int(share * len(rows))
    if n_trimmed:
        distances = np.concatenate(T2().fit(recordings).training_scores(recordings))
        rows = np.delete(rows, np.argsort(distances, kind="stable")[-n_trimmed:], axis=0)
    return Recording(id="typical rows", values=rows, sensors=recordings[0].sensors)
