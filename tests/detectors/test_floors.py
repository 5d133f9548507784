"""The floors: by hand, against brute force, and what must hold for any data."""

from __future__ import annotations

from zlib import crc32

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import cdist
from sklearn.preprocessing import StandardScaler

from tsadbench.base.detector import Detector
from tsadbench.errors import DataError, UsageError
from tsadbench.utils.arrays import FloatArray
from tsadbench_detectors.all_positive import AllPositive
from tsadbench_detectors.l1_z import L1Z
from tsadbench_detectors.l2_z import L2Z
from tsadbench_detectors.max_z import MaxZ
from tsadbench_detectors.nearest_neighbour import NearestNeighbour
from tsadbench_detectors.random import Random
from tsadbench_detectors.row_floor import RowFloor
from tsadbench_detectors.sensor_range import SensorRange

AVERAGED: list[type[RowFloor]] = [MaxZ, L1Z, L2Z, SensorRange]
FLOORS_IN_Z: list[type[Detector]] = [*AVERAGED, NearestNeighbour]
FLOORS: list[type[Detector]] = [AllPositive, Random, *FLOORS_IN_Z]

# Means 1 and 20, standard deviations 1 and 10; the third sensor is constant.
TRAIN = np.array([[0.0, 10.0, 7.0], [2.0, 30.0, 7.0]])
TEST = np.array([[1.0, 20.0, 7.0], [4.0, 60.0, 7.0], [-1.0, 30.0, 6.5], [2.5, 25.0, 12.0]])
BY_HAND: dict[type[Detector], list[float]] = {
    MaxZ: [0.0, 4.0, 2.0, 5.0],
    L1Z: [0.0, 3.0 + 4.0, 2.0 + 1.0 + 0.5, 1.5 + 0.5 + 5.0],
    L2Z: [0.0, 5.0, np.sqrt(4 + 1 + 0.25), np.sqrt(2.25 + 0.25 + 25)],
    SensorRange: [0.0, 3.0, 1.0, 5.0],
    NearestNeighbour: [np.sqrt(2), np.sqrt(4 + 9), np.sqrt(1 + 4 + 0.25), np.sqrt(0.25 + 0.25 + 25)],
}

# Whole numbers: they collide, which makes duplicates and constant sensors likely.
ROWS = st.integers(1, 4).flatmap(
    lambda n_sensors: st.tuples(
        arrays(np.float64, st.tuples(st.integers(2, 20), st.just(n_sensors)), elements=st.integers(-5, 5)),
        arrays(np.float64, st.tuples(st.integers(1, 10), st.just(n_sensors)), elements=st.integers(-9, 9)),
    )
)


def _normal(n_rows: int, n_sensors: int = 4, seed: int = 0) -> FloatArray:
    return np.random.default_rng(seed).normal(size=(n_rows, n_sensors))


@pytest.mark.parametrize("floor", BY_HAND)
def test_scores_by_hand(floor: type[Detector]) -> None:
    np.testing.assert_allclose(floor().fit(TRAIN).score(TEST), BY_HAND[floor])


@pytest.mark.parametrize("floor", FLOORS)
def test_declares_what_it_is(floor: type[Detector]) -> None:
    traits = floor().declared_traits()
    assert (traits.family, traits.floor, traits.look_ahead) == ("floor", True, 0)
    assert traits.stochastic == (floor is Random)
    assert traits.memory == (None if floor is Random else 0)
    assert traits.fixed_threshold == (0.0 if floor is AllPositive else None)


@pytest.mark.parametrize("floor", FLOORS)
def test_scoring_does_not_look_ahead_and_is_repeatable(floor: type[Detector]) -> None:
    detector = floor().fit(_normal(50))
    rows = _normal(30, seed=1)
    scores = detector.score(rows)
    detector.score(_normal(7, seed=2))
    for stop in (1, 2, 9, 30):
        np.testing.assert_array_equal(detector.score(rows[:stop]), scores[:stop])


@pytest.mark.parametrize("floor", FLOORS_IN_Z)
def test_remembers_nothing_of_the_rows_before(floor: type[Detector]) -> None:
    detector = floor().fit(_normal(50))
    rows = _normal(30, seed=1)
    np.testing.assert_array_equal(np.concatenate([detector.score(row[None]) for row in rows]), detector.score(rows))


@pytest.mark.parametrize("floor", FLOORS_IN_Z)
def test_pools_the_training_recordings(floor: type[Detector]) -> None:
    train, rows = _normal(60), _normal(20, seed=1)
    pooled, apart = floor().fit(train), floor().fit([train[:13], train[13:]])
    np.testing.assert_array_equal(apart.score(rows), pooled.score(rows))
    training_scores = apart.training_scores([train[:13], train[13:]])
    assert [len(scores) for scores in training_scores] == [13, 47]
    np.testing.assert_array_equal(np.concatenate(training_scores), pooled.training_scores(train)[0])


@pytest.mark.parametrize("floor", FLOORS_IN_Z)
@given(rows=ROWS, shift=st.integers(-100, 100), data=st.data())
def test_units_do_not_matter(
    floor: type[Detector], rows: tuple[FloatArray, FloatArray], shift: int, data: st.DataObject
) -> None:
    train, test = rows
    varying = np.ptp(train, axis=0) > 0
    train, test = train[:, varying], test[:, varying]
    if not varying.any():
        return
    # Powers of two and whole shifts are exact, so that rounding cannot hide or feign a difference.
    scale = data.draw(arrays(np.float64, train.shape[1], elements=st.sampled_from([-4.0, -0.5, 0.25, 1.0, 1024.0])))
    np.testing.assert_allclose(
        floor().fit(train * scale + shift).score(test * scale + shift), floor().fit(train).score(test), atol=1e-9
    )


@given(ROWS)
def test_max_z_l2_z_and_l1_z_are_the_norms_of_the_z_scores(rows: tuple[FloatArray, FloatArray]) -> None:
    train, test = rows
    z = StandardScaler().fit(train).transform(test)  # scale 1 for a constant sensor, as here
    for floor, order in ((MaxZ, np.inf), (L2Z, 2), (L1Z, 1)):
        np.testing.assert_allclose(floor().fit(train).score(test), np.linalg.norm(z, order, axis=1), atol=1e-9)


@given(ROWS)
def test_sensor_range_is_zero_exactly_inside_the_training_range(rows: tuple[FloatArray, FloatArray]) -> None:
    train, test = rows
    detector = SensorRange().fit(train)
    inside = ((test >= train.min(axis=0)) & (test <= train.max(axis=0))).all(axis=1)
    np.testing.assert_array_equal(detector.score(test) == 0, inside)
    np.testing.assert_array_equal(detector.score(train), 0.0)


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


def test_sensor_range_gives_a_single_training_row_the_score_of_its_own_range() -> None:
    row = np.array([[3.0, 4.0]])
    np.testing.assert_array_equal(SensorRange().fit(row).training_scores(row)[0], [0.0])


@pytest.mark.parametrize("floor", AVERAGED)
def test_mean_averages_scores_and_contributions_over_the_rows_up_to_each(floor: type[RowFloor]) -> None:
    train, rows = [_normal(30), _normal(20, seed=2)], _normal(30, seed=1)
    plain, averaged = floor().fit(train), floor(mean=4).fit(train)

    def expected(values: FloatArray) -> FloatArray:
        return np.array([values[max(0, row - 3) : row + 1].mean(axis=0) for row in range(len(values))])

    np.testing.assert_allclose(averaged.score(rows), expected(plain.score(rows)), rtol=1e-12)
    np.testing.assert_allclose(averaged.contributions(rows), expected(plain.contributions(rows)), rtol=1e-12)
    # A mean does not reach from one recording into another.
    for own, of_plain in zip(averaged.training_scores(train), plain.training_scores(train), strict=True):
        np.testing.assert_allclose(own, expected(of_plain), rtol=1e-12)


@pytest.mark.parametrize("floor", AVERAGED)
def test_mean_is_the_memory_that_the_traits_declare(floor: type[RowFloor]) -> None:
    detector = floor(mean=4).fit(_normal(50))
    traits = detector.declared_traits()
    assert (traits.memory, traits.look_ahead, traits.floor) == (3, 0, True)
    rows = 5 * _normal(30, seed=1)  # outside of the training range, too
    scores = detector.score(rows)
    for row in (3, 10, 29):
        assert detector.score(rows[row - 3 : row + 1])[-1] == scores[row]
        assert detector.score(rows[row - 2 : row + 1])[-1] != scores[row]
    assert floor.floor_variants() == ({"mean": 10},)


def test_contributions_make_up_the_score() -> None:
    rows = _normal(20, seed=1)
    for floor in (MaxZ, SensorRange):
        detector = floor().fit(_normal(50))
        np.testing.assert_array_equal(detector.contributions(rows).max(axis=1), detector.score(rows))
    l1_z = L1Z().fit(_normal(50))
    np.testing.assert_allclose(l1_z.contributions(rows).sum(axis=1), l1_z.score(rows))
    for floor in (L2Z, NearestNeighbour):
        detector = floor().fit(_normal(50))
        np.testing.assert_allclose(np.sqrt(detector.contributions(rows).sum(axis=1)), detector.score(rows))
    np.testing.assert_array_equal(SensorRange().fit(TRAIN).contributions(TEST)[1], [2.0, 3.0, 0.0])
    assert not AllPositive.offers_contributions()
    assert not Random.offers_contributions()


def test_all_positive_lies_above_its_own_threshold() -> None:
    detector = AllPositive().fit(TRAIN)
    threshold = detector.declared_traits().fixed_threshold
    assert threshold is not None
    assert (detector.score(TEST) > threshold).all()


def test_random_follows_from_the_seed_and_the_first_row() -> None:
    expected = np.random.default_rng([3, crc32(TEST[0].tobytes())]).random(len(TEST))
    np.testing.assert_array_equal(Random(seed=3).fit(TRAIN).score(TEST), expected)
    assert not np.array_equal(Random(seed=4).fit(TRAIN).score(TEST), expected)
    assert not np.array_equal(Random(seed=3).fit(TRAIN).score(TEST[1:]), expected[:3])


def test_random_does_not_learn() -> None:
    np.testing.assert_array_equal(Random().fit(TRAIN).score(TEST), Random().fit(TRAIN + 1).score(TEST))


@given(ROWS)
def test_nearest_neighbour_is_brute_force(rows: tuple[FloatArray, FloatArray]) -> None:
    train, test = rows
    scaler = StandardScaler().fit(train)  # scale 1 for a constant sensor, as here
    z_train, z_test = scaler.transform(train), scaler.transform(test)
    detector = NearestNeighbour().fit(train)
    np.testing.assert_allclose(detector.score(test), cdist(z_test, z_train).min(axis=1), atol=1e-12)


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


def test_nearest_neighbours_threshold_does_not_profit_from_the_row_before() -> None:
    # A slow system: a row resembles the ones beside it, not those of other times.
    walk = np.cumsum(_normal(4000, n_sensors=3), axis=0)
    detector = NearestNeighbour().fit(walk[:3000])
    held_out = detector.training_scores(walk[:3000])[0]
    beside = NearestNeighbour(exclude=0.0).fit(walk[:3000]).training_scores(walk[:3000])[0]
    assert np.median(held_out) > 2 * np.median(beside)
    assert (held_out >= beside).all()


def test_nearest_neighbour_remembers_evenly_spaced_rows() -> None:
    rows = np.arange(10.0)[:, None]
    spread = rows.std()
    scores = NearestNeighbour(max_rows=5).fit(rows).score(rows)  # remembers 0, 2, 4, 6, 8
    np.testing.assert_allclose(scores * spread, [0, 1, 0, 1, 0, 1, 0, 1, 0, 1], atol=1e-12)


def test_nearest_neighbour_gives_training_rows_held_out_scores() -> None:
    train = _normal(100)
    detector = NearestNeighbour().fit(train)
    np.testing.assert_array_equal(detector.score(train), 0.0)
    assert (detector.training_scores(train)[0] > 0).all()


def test_nearest_neighbour_keeps_the_distance_of_duplicates_at_zero() -> None:
    train = np.array([[0.0], [0.0], [0.0], [5.0], [9.0], [9.0]])
    scores = NearestNeighbour(exclude=0.0).fit(train).training_scores(train)[0]
    np.testing.assert_allclose(scores * train.std(), [0, 0, 0, 4, 0, 0])


def test_nearest_neighbour_refuses_other_training_rows_than_it_was_fitted_on() -> None:
    detector = NearestNeighbour().fit(_normal(20))
    with pytest.raises(DataError, match="the recordings that fit was given, 20 rows, found 19"):
        detector.training_scores(_normal(19))


def test_nearest_neighbour_needs_two_rows() -> None:
    with pytest.raises(DataError, match="at least 2 training rows"):
        NearestNeighbour().fit(np.zeros((1, 2)))


@pytest.mark.parametrize(
    ("detector", "message"),
    [
        (NearestNeighbour(max_rows=1), "max_rows must be at least 2, found 1"),
        (NearestNeighbour(exclude=0.2), "exclude must be a share from 0 to 0.1, found 0.2"),
        *((floor(mean=0), "mean must be an integer of at least 1, found 0") for floor in AVERAGED),
        (MaxZ(mean=1.5), "mean must be an integer of at least 1, found 1.5"),  # type: ignore[arg-type]  # on purpose
        (Random(seed=-1), "seed must be at least 0, found -1"),
    ],
)
def test_refuses_a_wrong_parameter(detector: Detector, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        detector.check(("a",))
