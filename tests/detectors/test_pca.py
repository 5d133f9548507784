"""The principal component classifier, against an eigendecomposition of numpy's correlation matrix."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.covariance import EmpiricalCovariance

from tests.helpers.planted import few_causes
from tsadbench.utils.arrays import FloatArray
from tsadbench_detectors.pca import PCA

TRAIN, TEST = few_causes(400), few_causes(100, seed=1)


def _by_numpy(
    train: FloatArray, test: FloatArray, trimmed: float = 0.005, variance: float = 0.5, minor: float = 0.2
) -> tuple[FloatArray, FloatArray]:
    """Return the sums over the major and the minor components of train and test rows, [n_rows, 2] each."""
    distances = EmpiricalCovariance().fit(train).mahalanobis(train)
    kept = train[np.sort(distances.argsort()[: len(train) - int(trimmed * len(train))])]
    variances, vectors = np.linalg.eigh(np.corrcoef(kept.T))
    variances, vectors = variances[::-1], vectors[:, ::-1]
    n_major = next(k for k in range(1, 99) if variances[:k].sum() >= variance * variances.sum() - 1e-12)
    is_major = np.arange(len(variances)) < n_major
    is_minor = (variances < minor) & ~is_major
    sums = []
    for rows in (train, test):
        squares = ((rows - kept.mean(axis=0)) / kept.std(axis=0) @ vectors) ** 2 / variances
        sums.append(np.stack([squares[:, is_major].sum(axis=1), squares[:, is_minor].sum(axis=1)], axis=1))
    return sums[0], sums[1]


@pytest.mark.parametrize(
    "parameters",
    [{}, {"trimmed": 0.0}, {"trimmed": 0.1}, {"variance": 0.8, "minor": 0.05}, {"minor": 0.0}, {"minor": 9.0}],
)
def test_is_the_larger_of_both_sums_over_their_quantiles(parameters) -> None:
    false_alarms = 0.05
    train, test = _by_numpy(TRAIN, TEST, **parameters)
    # Two independent rules at rate a each raise an alarm in 2 a - a^2 of the rows.
    each = 1 - np.sqrt(1 - false_alarms)
    assert 2 * each - each**2 == pytest.approx(false_alarms)
    limits = np.maximum(np.quantile(train, 1 - each, axis=0), 1.0)
    detector = PCA(false_alarms=false_alarms, **parameters).fit([TRAIN[:150], TRAIN[150:]])
    np.testing.assert_allclose(detector.score(TEST), (test / limits).max(axis=1), rtol=1e-9)


def test_sees_a_row_that_breaks_an_exact_collinearity() -> None:
    collinear = TRAIN[:, :1] * [1.0, -3.0] + [0.0, 8.0]
    detector = PCA().fit(collinear)
    assert detector.score(TEST[:, :1] * [1.0, -3.0] + [0.0, 8.0]).max() < 3  # rounding does not count
    assert detector.score(collinear.mean(axis=0) + np.array([[0.01, 0.0]]))[0] > 1e3
