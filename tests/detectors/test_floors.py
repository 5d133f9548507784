"""The floors: by hand, against brute force, and what must hold for any data."""

from __future__ import annotations

from zlib import crc32

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import cdist
from sklearn.preprocessing import StandardScaler

from tests.helpers.planted import noise
from tsadbench.utils.arrays import FloatArray
from tsadbench_detectors.averaged_floor import AveragedFloor
from tsadbench_detectors.l1_z import L1Z
from tsadbench_detectors.l2_z import L2Z
from tsadbench_detectors.lag import Lag
from tsadbench_detectors.max_z import MaxZ
from tsadbench_detectors.moving_spread import MovingSpread
from tsadbench_detectors.nearest_neighbour import NearestNeighbour
from tsadbench_detectors.own_start import OwnStart
from tsadbench_detectors.random import Random
from tsadbench_detectors.ridge import Ridge
from tsadbench_detectors.sensor_range import SensorRange

AVERAGED: list[type[AveragedFloor]] = [MaxZ, L1Z, L2Z, SensorRange, NearestNeighbour, Ridge, Lag, MovingSpread]

# Whole numbers: they collide, which makes duplicates and constant sensors likely.
ROWS = st.integers(1, 4).flatmap(
    lambda n_sensors: st.tuples(
        arrays(np.float64, st.tuples(st.integers(2, 20), st.just(n_sensors)), elements=st.integers(-5, 5)),
        arrays(np.float64, st.tuples(st.integers(1, 10), st.just(n_sensors)), elements=st.integers(-9, 9)),
    )
)


@settings(max_examples=40)
@given(ROWS)
def test_norms_of_the_z_scores_and_distances_from_the_range(rows: tuple[FloatArray, FloatArray]) -> None:
    train, test = rows
    scaler = StandardScaler().fit(train)  # scale 1 for a constant sensor, as here
    for floor, order in ((MaxZ, np.inf), (L2Z, 2), (L1Z, 1)):
        expected = np.linalg.norm(scaler.transform(test), order, axis=1)
        np.testing.assert_allclose(floor().fit(train).score(test), expected, atol=1e-9)
    beyond = np.maximum(train.min(axis=0) - test, test - train.max(axis=0)).clip(0) / scaler.scale_
    np.testing.assert_allclose(SensorRange().fit(train).score(test), beyond.max(axis=1), atol=1e-9)


@settings(max_examples=40)
@given(ROWS)
def test_sensor_range_scores_training_rows_by_the_range_of_the_other_blocks(
    rows: tuple[FloatArray, FloatArray],
) -> None:
    train, _ = rows
    scale = StandardScaler().fit(train).scale_
    length = -(-len(train) // 10)
    expected = []
    for first in range(0, len(train), length):
        others = np.delete(train, range(first, min(first + length, len(train))), axis=0)
        block = train[first : first + length]
        beyond = np.maximum(others.min(axis=0) - block, block - others.max(axis=0)).clip(0)
        expected += list((beyond / scale).max(axis=1))
    np.testing.assert_allclose(SensorRange().fit(train).training_scores(train)[0], expected, atol=1e-9)


@pytest.mark.parametrize("floor", AVERAGED)
def test_mean_averages_scores_and_contributions_over_the_rows_up_to_each(floor: type[AveragedFloor]) -> None:
    train, rows = [noise(30, 4), noise(20, 4, seed=2)], noise(30, 4, seed=1)
    plain, averaged = floor().fit(train), floor(mean=4).fit(train)

    def expected(values: FloatArray) -> FloatArray:
        return np.array([values[max(0, row - 3) : row + 1].mean(axis=0) for row in range(len(values))])

    np.testing.assert_allclose(averaged.score(rows), expected(plain.score(rows)), rtol=1e-12)
    np.testing.assert_allclose(averaged.contributions(rows), expected(plain.contributions(rows)), rtol=1e-12)
    # A mean does not cross from one recording into the next.
    for own, of_plain in zip(averaged.training_scores(train), plain.training_scores(train), strict=True):
        np.testing.assert_allclose(own, expected(of_plain), rtol=1e-12)


@settings(max_examples=40)
@given(ROWS, st.integers(1, 12))
def test_lag_moving_spread_and_own_start_match_a_loop(rows: tuple[FloatArray, FloatArray], n: int) -> None:
    train, test = rows
    z = StandardScaler().fit(train).transform(test)
    lag, spread, start = [], [], []
    for row in range(len(z)):
        before = [z[max(0, row - back)] for back in range(n + 1)]
        lag.append(((z[row] - before[n]) ** 2).sum())
        spread.append(np.std(before, axis=0).sum())
        start.append(np.linalg.norm(z[row] - z[: min(n, row + 1)].mean(axis=0)))
    np.testing.assert_allclose(Lag(lag=n).fit(train).score(test), lag, atol=1e-9)
    np.testing.assert_allclose(MovingSpread(rows=n + 1).fit(train).score(test), spread, atol=1e-9)
    np.testing.assert_allclose(OwnStart(rows=n).fit(train).score(test), start, atol=1e-9)


def test_random_follows_from_the_seed_and_the_first_row() -> None:
    rows = noise(4, 4)
    expected = np.random.default_rng([3, crc32(rows[0].tobytes())]).random(4)
    np.testing.assert_array_equal(Random(seed=3).fit(rows).score(rows), expected)
    assert not np.array_equal(Random(seed=4).fit(rows).score(rows), expected)
    assert not np.array_equal(Random(seed=3).fit(rows).score(rows[1:]), expected[:3])


@settings(max_examples=40)
@given(ROWS)
def test_nearest_neighbour_matches_brute_force(rows: tuple[FloatArray, FloatArray]) -> None:
    train, test = rows
    scaler = StandardScaler().fit(train)  # scale 1 for a constant sensor, as here
    z_train, z_test = scaler.transform(train), scaler.transform(test)
    detector = NearestNeighbour().fit(train)
    np.testing.assert_allclose(detector.score(test), cdist(z_test, z_train).min(axis=1), atol=1e-12)


@settings(max_examples=40)
@given(ROWS, st.integers(2, 30), st.sampled_from([0.0, 0.05, 0.1]))
def test_nearest_neighbours_training_scores_leave_out_neighbours_in_time(
    rows: tuple[FloatArray, FloatArray], max_rows: int, exclude: float
) -> None:
    train, _ = rows
    count = min(len(train), max_rows)
    remembered = np.array([place * len(train) // count for place in range(count)])
    z = StandardScaler().fit_transform(train)
    distances = cdist(z, z[remembered])
    apart = np.abs(np.arange(len(train))[:, None] - remembered)
    distances[apart <= int(exclude * len(train))] = np.inf
    scores = NearestNeighbour(max_rows=max_rows, exclude=exclude).fit(train).training_scores(train)[0]
    np.testing.assert_allclose(scores, distances.min(axis=1), atol=1e-12)
