"""The principal component classifier, against an eigendecomposition of numpy's correlation matrix."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.covariance import EmpiricalCovariance

from tsadbench.utils.arrays import FloatArray
from tsadbench_detectors.pca import PCA


def _few_causes(n_rows: int, seed: int = 0) -> FloatArray:
    """Six sensors that follow three causes, with noise."""
    rng = np.random.default_rng(seed)
    mixing = np.random.default_rng(99).normal(size=(3, 6))
    return (rng.normal(size=(n_rows, 3)) @ mixing + 0.3 * rng.normal(size=(n_rows, 6))) * [1, 9, 0.1, 1, 50, 1] + 4


TRAIN, TEST = _few_causes(400), _few_causes(100, seed=1)


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


def test_extreme_training_rows_have_no_part_in_the_components() -> None:
    broken = TRAIN.copy()
    broken[[7, 300]] = TRAIN.mean(axis=0) + 300 * TRAIN.std(axis=0) * [1, -1, 1, -1, 1, -1]
    without = np.delete(broken, [7, 300], axis=0)
    robust, plain = PCA(minor=9.0).fit(broken), PCA(minor=9.0, trimmed=0.0).fit(without)  # all components
    np.testing.assert_allclose(robust.variances_, plain.variances_)
    np.testing.assert_allclose(robust.standardiser_.mean, plain.standardiser_.mean)
    assert not np.allclose(PCA(minor=9.0, trimmed=0.0).fit(broken).variances_, plain.variances_, rtol=0.1)


def test_sees_a_row_that_breaks_an_exact_collinearity() -> None:
    collinear = TRAIN[:, :1] * [1.0, -3.0] + [0.0, 8.0]
    detector = PCA().fit(collinear)
    assert detector.score(TEST[:, :1] * [1.0, -3.0] + [0.0, 8.0]).max() < 3  # rounding does not count
    assert detector.score(collinear.mean(axis=0) + np.array([[0.01, 0.0]]))[0] > 1e3


def test_smooths_both_sums_before_it_takes_the_larger() -> None:
    train, test = _by_numpy(TRAIN, TEST)
    shares = test / np.quantile(train, np.sqrt(0.99), axis=0)
    smooth = PCA(smoothing=5).fit(TRAIN).score(TEST)
    np.testing.assert_allclose(smooth[50], np.median(shares[46:51], axis=0).max())
    np.testing.assert_allclose(smooth[0], shares[0].max())


@settings(max_examples=25)
@given(st.floats(0.05, 1.0), st.floats(0.0, 2.0))
def test_contributions_sum_to_the_score(variance: float, minor: float) -> None:
    detector = PCA(variance=variance, minor=minor).fit(TRAIN)
    np.testing.assert_allclose(detector.contributions(TEST).sum(axis=1), detector.score(TEST))
