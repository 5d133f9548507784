"""Hotelling's T-squared: the Mahalanobis distance of a row to the training mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, ClassVar

import numpy as np
from scipy.linalg import pinvh

from tsadbench.base import (
    CONDITION_NUMBER,
    Detector,
    Fact,
    FloatArray,
    Ge,
    Recording,
    Traits,
    Tune,
    detector,
    trailing_mean,
)
from tsadbench_detectors.rows import trailing_median
from tsadbench_detectors.standardise import Standardiser
from tsadbench_detectors.window_covariance import shrunk_covariance

# Directions with a smaller share of the largest variance are rounding: collinear sensors give about 1e-15.
NEGLIGIBLE_VARIANCE = 1e-12
_LARGEST_CONDITION_NUMBER = 1e18  # instead of infinity: facts are finite


@detector
class T2(Detector):
    """T-squared of a row: ``z' S^+ z``, z its z-scores, S their covariance (ddof 1) over the training rows.

    Sensors that are constant over the training rows are left out. If the others are collinear, S has no inverse and the
    pseudo-inverse is used: T-squared then misses a row that breaks the collinearity (`T2Q` does not), and if they are
    nearly collinear, rounding decides. Tables say if the condition number of S is above 1e6; ``shrinkage`` lowers it.

    Contributions split a row's own T-squared, before the median: ``z_i (S^+ z)_i``. A contribution is negative if the
    sensor's deviation is what the other sensors' deviations predict. They are averaged like the scores.

    Parameters
    ----------
    smoothing
        Rows of the trailing median over the statistic, at least 1 (= none); fewer at a recording's start.
    mean
        Rows of the trailing mean over the statistic, after the median, at least 1 (= no mean).
    shrinkage
        Whether S is shrunk towards a multiple of the identity by Ledoit and Wolf's formula.

    Notes
    -----
    Equations
        ``T2(x) = z' S^+ z``, z the z-scores of row x and S their covariance over the training rows.
    Differences
        Hotelling's chart has a limit from the F distribution; here the protocol finds the threshold. The SKAB
        benchmark's code finds its quantile of F by a search on a grid, takes twice the limit without a reason, and does
        not subtract the mean if scaling is off. ``smoothing=5`` is that benchmark's median; it is off by default.
    Defaults
        The statistic has no parameters. smoothing = 1, mean = 1 and no shrinkage leave it as it is.

    References
    ----------
    H. Hotelling, Multivariate quality control illustrated by the air testing of sample bombsights, in: Techniques
    of Statistical Analysis, McGraw-Hill, 1947; O. Ledoit and M. Wolf, A well-conditioned estimator for
    large-dimensional covariance matrices, Journal of Multivariate Analysis 88(2), 2004.

    Examples
    --------
    >>> detector = T2().fit(np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]]))
    >>> detector.score(np.array([[0.0, 0.0], [2.0, 0.0]]))
    array([0., 3.])
    """

    traits: ClassVar[Traits] = Traits(family="statistics", paper="Hotelling 1947")

    smoothing: Annotated[int, Ge(1), Tune(1, 30, log=True)] = 1
    mean: Annotated[int, Ge(1)] = 1
    shrinkage: bool = False

    def declared_traits(self) -> Traits:  # noqa: D102
        return replace(self.traits, memory=self.smoothing - 1 + self.mean - 1)

    def _fit(self, recordings: tuple[Recording, ...]) -> None:
        self.standardiser_ = Standardiser.of(recordings)
        self.standardiser_.require_variation("T2")
        covariance = self.standardiser_.covariance(recordings)
        if self.shrinkage:
            z = [self.standardiser_.varying_z_scores(recording.values) for recording in recordings]
            covariance = shrunk_covariance(z, 1)[1]
        self.condition_number_ = min(float(np.linalg.cond(covariance)), _LARGEST_CONDITION_NUMBER)
        self.precision_ = np.asarray(pinvh(covariance, rtol=NEGLIGIBLE_VARIANCE), dtype=np.float64)

    def _training_facts(self) -> Mapping[str, Fact]:
        return {CONDITION_NUMBER: self.condition_number_}

    def _score(self, recording: Recording) -> FloatArray:
        statistic = self._by_varying_sensor(recording.values).sum(axis=1)
        return trailing_mean(trailing_median(statistic, self.smoothing), self.mean)

    def _contributions(self, recording: Recording) -> FloatArray:
        split = self.standardiser_.with_constant_sensors(self._by_varying_sensor(recording.values))
        return trailing_mean(split, self.mean)

    def _by_varying_sensor(self, rows: FloatArray) -> FloatArray:
        z = self.standardiser_.varying_z_scores(rows)
        split: FloatArray = z * (z @ self.precision_)
        return split
