"""T-squared and Q of rows, and of rows with their lags, against scikit-learn; their control limits by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.covariance import EmpiricalCovariance, LedoitWolf
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from tests.helpers.planted import few_causes, padded, series, stretches
from tsadbench.utils.arrays import FloatArray
from tsadbench_detectors.control_limits import q_limit, t2_limit
from tsadbench_detectors.dynamic_pca import DynamicPCA
from tsadbench_detectors.t2 import T2
from tsadbench_detectors.t2_q import T2Q


def _correlated(n_rows: int, seed: int = 0) -> FloatArray:
    mixing = np.array([[1.0, 0.5, 0.0, 0.2], [0.0, 1.0, 0.8, 0.0], [0.0, 0.0, 1.0, 0.3], [0.1, 0.0, 0.0, 1.0]])
    independent = np.random.default_rng(seed).normal(size=(n_rows, 4))
    rows: FloatArray = independent @ mixing * [1, 100, 0.01, 5] + [0, 50, 3, -2]
    return rows


TRAIN, TEST = _correlated(300), _correlated(80, seed=1) * 1.3


def test_is_the_squared_mahalanobis_distance() -> None:
    # scikit-learn divides by n, T-squared by n - 1.
    expected = EmpiricalCovariance().fit(TRAIN).mahalanobis(TEST) * (len(TRAIN) - 1) / len(TRAIN)
    np.testing.assert_allclose(T2().fit([TRAIN[:100], TRAIN[100:]]).score(TEST), expected)


def test_a_shrunk_covariance_is_ledoit_and_wolfs_and_well_conditioned() -> None:
    collinear = np.hstack([TRAIN, TRAIN[:, :1] * 3.0])
    scaler = StandardScaler().fit(collinear)
    expected = (
        LedoitWolf().fit(scaler.transform(collinear)).mahalanobis(scaler.transform(np.hstack([TEST, TEST[:, :1]])))
    )
    shrunk = T2(shrinkage=True).fit(collinear)
    np.testing.assert_allclose(shrunk.score(np.hstack([TEST, TEST[:, :1]])), expected, rtol=1e-6)
    assert shrunk.training_facts()["condition_number"] < 1e6 < T2().fit(collinear).training_facts()["condition_number"]


def test_leaves_out_a_constant_sensor() -> None:
    constant = np.full((len(TRAIN), 1), 0.1)
    moved = np.linspace(-9, 9, len(TEST))[:, None]
    detector = T2().fit(np.hstack([TRAIN[:, :2], constant, TRAIN[:, 2:]]))
    rows = np.hstack([TEST[:, :2], moved, TEST[:, 2:]])
    np.testing.assert_array_equal(detector.score(rows), T2().fit(TRAIN).score(TEST))
    np.testing.assert_array_equal(detector.contributions(rows)[:, 2], 0.0)


def test_the_mean_is_taken_after_the_median_and_of_the_contributions_too() -> None:
    median, both = T2(smoothing=5).fit(TRAIN), T2(smoothing=5, mean=3).fit(TRAIN)
    np.testing.assert_allclose(both.score(TEST)[10], median.score(TEST)[8:11].mean())
    np.testing.assert_allclose(both.contributions(TEST)[10], median.contributions(TEST)[8:11].mean(axis=0))
    mean = T2(mean=10).fit(TRAIN)
    np.testing.assert_allclose(mean.contributions(TEST).sum(axis=1), mean.score(TEST))
    assert not mean.declared_traits().floor


def test_contributions_point_at_the_sensor() -> None:
    broken = TRAIN.mean(axis=0) + np.array([[0, 0, 10 * TRAIN[:, 2].std(), 0]])
    assert T2().fit(TRAIN).contributions(broken).argmax() == 2


CAUSED, CAUSED_TEST = few_causes(400), few_causes(100, seed=1)


def test_sees_a_row_that_breaks_an_exact_collinearity() -> None:
    collinear = CAUSED[:, :1] * [1.0, -3.0] + [0.0, 8.0]
    detector = T2Q().fit(collinear)
    training_scores = detector.training_scores(collinear)[0]
    np.testing.assert_allclose(training_scores, T2Q().fit(CAUSED[:, :1]).training_scores(CAUSED[:, :1])[0], atol=1e-9)
    broken = collinear.mean(axis=0) + np.array([[0.01, 0.0]])
    assert detector.score(broken)[0] > 1e3


def test_keeps_no_component_that_is_rounding() -> None:
    doubled = np.hstack([CAUSED, CAUSED])
    detector = T2Q(variance=1.0).fit(doubled)
    assert len(detector.component_variances_) == 6
    assert np.isfinite(detector.score(np.hstack([CAUSED_TEST, CAUSED_TEST[::-1]]))).all()


# Three recordings, one of which is too short for any lag above 1.
LAGGED, LAGGED_TEST = [series(150), series(2, 5), series(250, 3)], series(60, 4)


@pytest.mark.parametrize(("lags", "variance"), [(0, 0.3), (0, 0.85), (1, 0.85), (2, 0.5), (5, 0.95)])
def test_is_the_larger_of_t2_and_q_of_rows_and_their_lags_over_their_limits(lags: int, variance: float) -> None:
    train = np.concatenate([stretches(rows, lags + 1) for rows in LAGGED if len(rows) > lags])
    test = stretches(padded(LAGGED_TEST, lags), lags + 1)
    scaler = StandardScaler().fit(train)
    pca = PCA(variance, svd_solver="full").fit(scaler.transform(train))
    variances = PCA().fit(scaler.transform(train)).explained_variance_
    z, k = scaler.transform(test), pca.n_components_
    scores = pca.transform(z)
    t2 = (scores**2 / pca.explained_variance_).sum(axis=1)
    q = ((z - pca.inverse_transform(scores)) ** 2).sum(axis=1)
    expected = np.maximum(t2 / t2_limit(k, len(train), 0.99), q / q_limit(variances[k:], 0.99))
    shape = {"variance": variance, "confidence": 0.99}
    detector = DynamicPCA(lags=lags, **shape) if lags else T2Q(**shape)  # type: ignore[arg-type]
    np.testing.assert_allclose(detector.fit(LAGGED).score(LAGGED_TEST), expected)


def test_t2_limit_of_one_variable_is_the_squared_prediction_interval_of_a_new_value() -> None:
    n, confidence = 12, 0.99
    half_width = stats.t.ppf((1 + confidence) / 2, n - 1) * np.sqrt(1 + 1 / n)
    assert t2_limit(1, n, confidence) == pytest.approx(half_width**2)


def test_q_limit_of_equal_variances_is_the_wilson_hilferty_quantile_of_their_chi_squared() -> None:
    # Equal variances give h0 = 1/3: the cube-root approximation of a chi-squared quantile with 5 degrees of freedom.
    cube_root = 1 - 2 / (9 * 5) + stats.norm.ppf(0.999) * np.sqrt(2 / (9 * 5))
    assert q_limit(np.full(5, 0.7), 0.999) == pytest.approx(0.7 * 5 * cube_root**3)
    assert q_limit(np.full(5, 0.7), 0.999) == pytest.approx(0.7 * stats.chi2.ppf(0.999, 5), rel=0.02)


def test_q_limit_without_a_positive_exponent_is_the_scaled_chi_squared() -> None:
    # theta = 2, 1.01, 1.0001: h0 = 1 - 2 * 2 * 1.0001 / (3 * 1.0201) = -0.307
    variances = np.array([1.0, *[0.01] * 100])
    assert q_limit(variances, 0.99) == pytest.approx(0.505 * stats.chi2.ppf(0.99, 4 / 1.01))
