"""Control limits against the fact sheet's values, hand-computed ones and the distributions that they stand for."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tsadbench_detectors.control_limits import q_limit, t2_limit


@pytest.mark.parametrize(("n_components", "limit"), [(8, 27.35), (6, 23.34), (7, 25.37)])
def test_t2_limit_of_400_rows(n_components: int, limit: float) -> None:
    assert t2_limit(n_components, 400, 0.999) == pytest.approx(limit, abs=0.005)


def test_t2_limit_of_one_variable_is_the_squared_prediction_interval_of_a_new_value() -> None:
    n, confidence = 12, 0.99
    half_width = stats.t.ppf((1 + confidence) / 2, n - 1) * np.sqrt(1 + 1 / n)
    assert t2_limit(1, n, confidence) == pytest.approx(half_width**2)


def test_t2_limit_is_exceeded_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    n, m, runs, confidence = 15, 4, 4000, 0.95
    train, new = rng.normal(size=(runs, n, m)), rng.normal(size=(runs, m))
    deviation = new - train.mean(axis=1)
    centred = train - train.mean(axis=1, keepdims=True)
    covariance = np.einsum("rni,rnj->rij", centred, centred) / (n - 1)
    t2 = np.einsum("ri,ri->r", deviation, np.linalg.solve(covariance, deviation[..., None])[..., 0])
    assert np.mean(t2 > t2_limit(m, n, confidence)) == pytest.approx(0.05, abs=4 * np.sqrt(0.05 * 0.95 / runs))


def test_q_limit_by_hand() -> None:
    # theta = 1, 0.38, 0.16; h0 = 1 - 0.32 / 0.4332 = 0.26131; z(0.95) = 1.64485;
    # 1 + 1.64485 * 0.26131 * 0.87178 + 0.38 * 0.26131 * (-0.73869) = 1.30136; 1.30136 ^ (1 / 0.26131) = 2.7404
    assert q_limit(np.array([0.5, 0.3, 0.2]), 0.95) == pytest.approx(2.7404, abs=2e-3)


def test_q_limit_of_equal_variances_is_the_wilson_hilferty_quantile_of_their_chi_squared() -> None:
    # Equal variances give h0 = 1/3: the cube-root approximation of a chi-squared quantile with 5 degrees of freedom.
    cube_root = 1 - 2 / (9 * 5) + stats.norm.ppf(0.999) * np.sqrt(2 / (9 * 5))
    assert q_limit(np.full(5, 0.7), 0.999) == pytest.approx(0.7 * 5 * cube_root**3)
    assert q_limit(np.full(5, 0.7), 0.999) == pytest.approx(0.7 * stats.chi2.ppf(0.999, 5), rel=0.02)


def test_q_limit_without_a_positive_exponent_is_the_scaled_chi_squared() -> None:
    # theta = 2, 1.01, 1.0001: h0 = 1 - 2 * 2 * 1.0001 / (3 * 1.0201) = -0.307
    variances = np.array([1.0, *[0.01] * 100])
    assert q_limit(variances, 0.99) == pytest.approx(0.505 * stats.chi2.ppf(0.99, 4 / 1.01))


@pytest.mark.parametrize(
    "variances", [[0.5, 0.3, 0.2], [1.0, 0.9, 0.8, 0.01], [2.0], [1.0, *[0.01] * 100]], ids=["a", "b", "one", "h0<0"]
)
def test_q_limit_is_exceeded_about_as_often_as_it_says(variances: list[float]) -> None:
    normal = np.random.default_rng(0).normal(size=(40_000, len(variances)))
    q = (normal**2 * variances).sum(axis=1)
    assert 0.007 < np.mean(q > q_limit(np.array(variances), 0.99)) < 0.02


def test_q_limit_of_no_residual_is_infinite() -> None:
    assert q_limit(np.array([]), 0.999) == float("inf")


def test_q_limit_scales_with_the_variances() -> None:
    variances = np.array([0.5, 0.3, 0.2])
    assert q_limit(1000 * variances, 0.999) == pytest.approx(1000 * q_limit(variances, 0.999))
