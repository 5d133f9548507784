"""Scaling, neighbours and smoothing that row detectors share, ridge and the isolation forest, against oracles."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist
from sklearn.ensemble import IsolationForest as SklearnIsolationForest
from sklearn.linear_model import Ridge as Oracle
from sklearn.preprocessing import StandardScaler

from tests.helpers.planted import in_deviations, noise, padded, stretches
from tsadbench.base.recording import Recording
from tsadbench.utils.arrays import FloatArray, IntArray
from tsadbench_detectors.isolation_forest import IsolationForest
from tsadbench_detectors.neighbours import Neighbours
from tsadbench_detectors.ridge import Ridge
from tsadbench_detectors.rows import trailing_median
from tsadbench_detectors.standardise import Standardiser, pooled_rows


def _recording(values: object, id: str = "a") -> Recording:  # noqa: A002
    array = np.array(values, dtype=np.float64)
    return Recording(id=id, values=array, sensors=tuple(f"x{i}" for i in range(array.shape[1])))


def test_pools_the_rows_of_all_recordings_like_scikit_learn() -> None:
    rows = np.random.default_rng(0).normal(3.0, [1.0, 20.0, 0.01], size=(100, 3))
    standardiser = Standardiser.of([_recording(rows[:30], "a"), _recording(rows[30:], "b")])
    np.testing.assert_allclose(standardiser.z_scores(rows), StandardScaler().fit_transform(rows), atol=1e-12)
    np.testing.assert_array_equal(pooled_rows([_recording(rows[:30]), _recording(rows[30:])]), rows)


@pytest.mark.parametrize("n_rows", [9_000, 150_000])
def test_the_covariance_is_numpys(n_rows: int) -> None:
    rows = np.random.default_rng(0).normal(size=(n_rows, 4)) @ np.triu(np.ones((4, 4))) * [1, 20, 1e-3, 0] + 7
    pieces = [_recording(piece) for piece in np.split(rows, [max(n_rows // 3, 1)])]
    standardiser = Standardiser.of(pieces)
    expected = np.cov(standardiser.varying_z_scores(rows), rowvar=False)
    assert expected.shape == (3, 3)
    np.testing.assert_allclose(standardiser.covariance(pieces), expected, rtol=1e-12)


def test_a_constant_sensor_counts_in_its_own_unit() -> None:
    standardiser = Standardiser.of([_recording([[0.0, 5.0], [2.0, 5.0]])])
    np.testing.assert_array_equal(standardiser.varies, [True, False])
    np.testing.assert_array_equal(standardiser.z_scores(np.array([[1.0, 5.0], [3.0, 8.0]])), [[0, 0], [2, 3]])


@pytest.mark.parametrize("value", [1e9 / 3, -1e-9 / 7])
def test_rounding_in_the_mean_does_not_make_a_constant_sensor_vary(value: float) -> None:
    rows = np.full((1001, 1), value)
    standardiser = Standardiser.of([_recording(rows)])
    assert not standardiser.varies.any()
    np.testing.assert_array_equal(standardiser.z_scores(rows), 0.0)


RNG = np.random.default_rng(0)


def _excluded(n_queries: int, n_rows: int, widest: int) -> IntArray:
    rng = np.random.default_rng(0)
    first = rng.integers(0, n_rows, size=n_queries)
    return np.column_stack([first, np.minimum(first + rng.integers(0, widest + 1, size=n_queries), n_rows)])


def _brute_force(rows: FloatArray, queries: FloatArray, excluded: IntArray) -> FloatArray:
    distances = cdist(queries, rows)
    numbers = np.arange(len(rows))
    distances[(numbers >= excluded[:, :1]) & (numbers < excluded[:, 1:])] = np.inf
    nearest: FloatArray = distances.min(axis=1)
    return nearest


# By a tree or by matrix products; with one block of remembered rows or several.
@pytest.mark.parametrize("shape", [(300, 8), (129, 12), (1500, 53)])
def test_rows_are_left_out_by_their_index(shape: tuple[int, int]) -> None:
    rows = RNG.normal(size=shape)
    queries = np.concatenate([rows, RNG.normal(size=(1100, shape[1]))])
    excluded = _excluded(len(queries), len(rows), min(400, len(rows) - 1))
    distances, indices = Neighbours(rows).nearest(queries, excluded)
    np.testing.assert_allclose(distances, _brute_force(rows, queries, excluded), rtol=1e-12)
    assert not ((indices >= excluded[:, 0]) & (indices < excluded[:, 1])).any()
    np.testing.assert_allclose(np.linalg.norm(queries - rows[indices], axis=1), distances, rtol=1e-12)


@pytest.mark.parametrize("far", [1e9, 1e300])
def test_queries_far_away_in_a_varying_and_in_a_constant_column(far: float) -> None:
    rows, queries = RNG.normal(size=(600, 12)), RNG.normal(size=(40, 12))
    rows[:, 5] = 0.25
    queries[::4, 5] += far
    queries[1::4, 2] -= far
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(Neighbours(rows).nearest(queries)[0], cKDTree(rows).query(queries)[0], rtol=1e-12)


VALUES = arrays(np.float64, st.integers(1, 40), elements=st.floats(-1e6, 1e6))


@given(VALUES, st.integers(1, 50))
def test_is_the_median_of_the_last_rows_that_exist(values: FloatArray, rows: int) -> None:
    expected = [np.median(values[max(0, row - rows + 1) : row + 1]) for row in range(len(values))]
    np.testing.assert_allclose(trailing_median(values, rows), expected, rtol=1e-15)


def _walk(n_rows: int, seed: int) -> FloatArray:
    walk = noise(n_rows, 3, seed)
    for row in range(1, n_rows):
        walk[row] += 0.8 * np.roll(walk[row - 1], 1)
    return walk * [1.0, 50.0, 0.01] + [7.0, -200.0, 0.0]


# Longer than a block of windows; shorter than the lags; and one of medium length.
TRAIN, TEST = [_walk(2500, 0), _walk(6, 1), _walk(300, 2)], _walk(80, 3)


@pytest.mark.parametrize(("lags", "penalty"), [(10, 1.0), (3, 1.0), (10, 250.0)])
def test_forecasts_as_scikit_learns_ridge_does(lags: int, penalty: float) -> None:
    pooled = np.concatenate(TRAIN)
    with_past = [in_deviations(rows, pooled) for rows in TRAIN if len(rows) > lags]
    # The last row of a recording is in the past of no row.
    oracle = Oracle(alpha=penalty).fit(
        np.concatenate([stretches(z[:-1], lags) for z in with_past]), np.concatenate([z[lags:] for z in with_past])
    )
    z = in_deviations(TEST, pooled)
    residuals = z - oracle.predict(stretches(padded(z, lags)[:-1], lags))
    detector = Ridge(lags=lags, penalty=penalty).fit(TRAIN)
    np.testing.assert_allclose(detector.score(TEST), np.linalg.norm(residuals, axis=1), rtol=1e-9)
    np.testing.assert_allclose(detector.contributions(TEST), residuals**2, rtol=1e-9, atol=1e-15)


def test_the_forest_is_scikit_learns_with_its_defaults() -> None:
    train, test = np.split(RNG.normal(5.0, [1.0, 30.0, 0.1], size=(550, 3)), [500])
    scaler = StandardScaler().fit(train)
    oracle = SklearnIsolationForest(random_state=3).fit(scaler.transform(train))
    scores = IsolationForest(seed=3).fit([train[:100], train[100:]]).score(test)
    np.testing.assert_allclose(scores, -oracle.score_samples(scaler.transform(test)))
