"""The views' statistics, each against an explicit formula; and causal means against pandas."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.covariance import ledoit_wolf

from tests.helpers.planted import series
from tsadbench import Recording
from tsadbench.base import FloatArray
from tsadbench_detectors.multiview import MultiView
from tsadbench_detectors.multiview.accumulation import mean_of_last
from tsadbench_detectors.multiview.beginning import without_beginning
from tsadbench_detectors.multiview.panel import z_scores
from tsadbench_detectors.multiview.views import VIEWS, Forecast, Graph, Level, Movement, Range, Relation, View
from tsadbench_detectors.standardise import Standardiser

# Three series of three sensors: one is shorter than a window of forecasts.
TRAIN = [series(400)[:, :3], series(7, 5)[:, :3], series(200, 3)[:, 1:4]]
TEST = series(60, 4)[:, :3]
OWN = {name: view for name, view in VIEWS.items() if name != "graph"}


def _windows(rows: FloatArray, length: int) -> FloatArray:
    return np.array([rows[start : start + length].ravel() for start in range(len(rows) - length + 1)])


def _padded_windows(rows: FloatArray, length: int) -> FloatArray:
    return _windows(np.concatenate([np.repeat(rows[:1], length - 1, axis=0), rows]), length)


def _conditional(length: int, own: list[int], left_out: tuple[int, ...] = ()) -> FloatArray:
    """Return what all else in a window leaves of its values at places ``own``: the last of these, standardised.

    The Gaussian conditional ``x_B - m_B - C_BR C_RR^-1 (x_R - m_R)``, of which the covariance is
    ``C_BB - C_BR C_RR^-1 C_RB``; for each row of `TEST`.
    """
    stretches = np.concatenate([_windows(z, length) for z in TRAIN if len(z) >= length])
    covariance, _ = ledoit_wolf(stretches)
    mean = stretches.mean(axis=0)
    rest = [place for place in range(len(mean)) if place not in own and place % 3 not in left_out]
    to_own = np.linalg.solve(covariance[np.ix_(rest, rest)], covariance[np.ix_(rest, own)])
    left = covariance[np.ix_(own, own)] - covariance[np.ix_(own, rest)] @ to_own
    windows = _padded_windows(TEST, length)
    residuals = windows[:, own] - mean[own] - (windows[:, rest] - mean[rest]) @ to_own
    return np.abs(residuals[:, -1]) / np.sqrt(left[-1, -1])


def test_relation_is_what_the_other_sensors_last_five_rows_leave_of_a_sensor() -> None:
    expected = np.column_stack([_conditional(5, list(range(sensor, 15, 3))) for sensor in range(3)])
    np.testing.assert_allclose(Relation.of(TRAIN).statistics(TEST), expected, rtol=1e-5, atol=1e-6)


def test_forecast_is_what_ten_rows_and_the_other_sensors_of_the_row_leave_of_a_sensor() -> None:
    expected = np.column_stack([_conditional(11, [30 + sensor]) for sensor in range(3)])
    np.testing.assert_allclose(Forecast.of(TRAIN).statistics(TEST), expected, rtol=1e-5, atol=1e-6)


def test_graph_is_relation_to_the_neighbours_alone() -> None:
    """Sensors 0 and 1 are neighbours; sensor 2 is nobody's, and its coupling to itself is none."""
    neighbours = np.array([[False, True, False], [True, False, False], [False, False, True]])
    found = Graph.over(neighbours, TRAIN).statistics(TEST)
    expected = np.column_stack([_conditional(5, list(range(sensor, 15, 3)), left_out=(2,)) for sensor in (0, 1)])
    np.testing.assert_allclose(found[:, :2], expected, rtol=1e-5, atol=1e-6)
    everybody = Graph.over(np.ones((3, 3), dtype=bool), TRAIN).statistics(TEST)
    np.testing.assert_allclose(everybody, Relation.of(TRAIN).statistics(TEST), rtol=1e-6, atol=1e-8)


def test_a_sensor_without_neighbours_has_no_part_in_the_graph() -> None:
    found = Graph.over(np.array([[False, True, False], [True, False, False], [False, False, False]]), TRAIN)
    np.testing.assert_array_equal(found.statistics(TEST)[:, 2], 0.0)
    assert found.statistics(TEST)[:, :2].max() > 1


def test_relation_leaves_a_sensors_own_past_out_so_that_it_stays_visible() -> None:
    view = Relation.of(TRAIN)
    rows = series(400, 8)[:, :3]
    shifted = rows.copy()
    shifted[100:, 1] += 2.0
    assert view.statistics(shifted)[100:, 1].mean() > 3 * view.statistics(rows)[100:, 1].mean()
    # Its four earlier rows have no weight in what is left of it; those of the others have.
    weights = view.weights.reshape(5, 3, 3)[:, :, 1]
    np.testing.assert_allclose(weights[:4, 1], 0.0, atol=1e-6)
    assert np.abs(weights[:, [0, 2]]).max() > 1


def test_one_sensor_has_no_others_and_relates_to_its_mean() -> None:
    alone = [z[:, :1] for z in TRAIN]
    windows = np.concatenate([_windows(z, 5) for z in alone])
    covariance, _ = ledoit_wolf(windows)
    expected = np.abs(TEST[:, :1] - windows.mean(axis=0)[-1]) / np.sqrt(covariance[-1, -1])
    np.testing.assert_allclose(Relation.of(alone).statistics(TEST[:, :1]), expected, rtol=1e-6)


@pytest.mark.parametrize("name", ["relation", "forecast"])
def test_collinear_sensors_leave_nothing_until_they_part(name: str) -> None:
    doubled = [np.hstack([z, z[:, :1]]) for z in TRAIN]
    view = VIEWS[name].of(doubled)
    together = view.statistics(np.hstack([TEST, TEST[:, :1]]))
    parted = np.hstack([TEST, TEST[:, :1]])
    parted[30, 3] += 1.0
    assert np.isfinite(together).all()
    found = view.statistics(parted)[30]
    assert min(found[0], found[3]) > 4 * max(together[:, [0, 3]].max(), found[1], found[2])


@pytest.mark.parametrize("name", ["relation", "forecast"])
def test_series_that_are_all_too_short_are_filled_up(name: str) -> None:
    view = VIEWS[name].of([z[:3] for z in TRAIN])
    assert np.isfinite(view.statistics(TEST)).all()


def _naive_log_steps(z: FloatArray, row: int) -> FloatArray:
    steps = [(z[later] - z[later - 1]) ** 2 for later in range(max(1, row - 15), row + 1)]
    return np.log10(sum(steps) / len(steps) + 1e-6)


def test_movement_is_the_mean_squared_step_above_and_below_that_of_normal_rows() -> None:
    # The first 16 rows have too few steps: nothing is learned from them, and they are neutral.
    learned = [_naive_log_steps(z, row) for z in TRAIN for row in range(16, len(z))]
    mean, scale = np.mean(learned, axis=0), np.std(learned, axis=0)
    expected = np.zeros((len(TEST), 6))
    for row in range(16, len(TEST)):
        deviation = (_naive_log_steps(TEST, row) - mean) / scale
        expected[row] = [*np.maximum(deviation, 0), *np.maximum(-deviation, 0)]
    np.testing.assert_allclose(Movement.of(TRAIN).statistics(TEST), expected, atol=1e-9)


def test_movement_finds_a_sensor_that_stands_still_and_one_that_shakes() -> None:
    view = Movement.of(TRAIN)
    rows = series(300, 4)[:, :3]
    usual = view.statistics(rows)[30:].max(axis=0)
    rows[100:150, 1] = rows[99, 1]
    rows[200:250, 2] += np.random.default_rng(0).normal(0.0, 3.0, 50)
    found = view.statistics(rows)
    assert found[116:150, 3 + 1].min() > 2 * usual[3 + 1]
    assert found[216:250, 2].min() > 2 * usual[2]
    np.testing.assert_array_equal(found[0], 0.0)
    others = [0, 3]  # too much and too little of the first sensor, which nothing happened to
    np.testing.assert_array_equal(found[:, others], view.statistics(series(300, 4)[:, :3])[:, others])


def test_movement_of_a_sensor_that_always_steps_alike_is_finite() -> None:
    ramps = [np.linspace(-1.7, 1.7, 300)[:, None]]
    view = Movement.of(ramps)
    found = view.statistics(np.concatenate([ramps[0], np.full((40, 1), 1.7)]))
    assert np.isfinite(found).all()
    assert found[330:, 1].min() > 1 > found[:300].max()


def test_range_is_how_far_a_row_sticks_out_of_the_box() -> None:
    view = Range.of(TRAIN)
    pooled = np.concatenate(TRAIN)
    rows = TEST.copy()
    rows[3] = pooled.max(axis=0) + np.array([3.0, -1.0, 4.0])
    rows[5] = pooled.min(axis=0) - np.array([0.0, 12.0, 5.0])
    found = view.statistics(rows)
    assert found.shape == (60, 1)
    assert found[3, 0] == pytest.approx(5.0)
    assert found[5, 0] == pytest.approx(13.0)
    shares = view.shares(rows)
    assert shares is not None
    np.testing.assert_allclose(shares[3], [9 / 25, 0, 16 / 25])
    np.testing.assert_allclose(shares[5], [0, 144 / 169, 25 / 169])
    np.testing.assert_array_equal(view.statistics(pooled), 0.0)
    np.testing.assert_array_equal(view.shares(pooled), 1 / 3)


def test_level_is_the_distance_from_the_mean_in_standard_deviations() -> None:
    np.testing.assert_array_equal(Level.of(TRAIN).statistics(TEST), np.abs(TEST))


@pytest.mark.parametrize("constant", [0.1, -7.3e6, 1e-9])
def test_a_sensor_that_never_moved_counts_once_it_does_and_rounding_is_no_move(constant: float) -> None:
    train = np.hstack([TRAIN[0], np.full((400, 1), constant)])
    standardiser = Standardiser.of([Recording("plant", train, tuple("abcd"))])
    rows = np.hstack([TEST, np.full((60, 1), constant)])
    rows[7, 3] = np.nextafter(constant, np.inf)
    rows[8, 3] *= 1 + 1e-12
    rows[9, 3] *= 1.01
    rows[10, 3] *= 0.5
    z = z_scores(standardiser, rows)
    expected = np.zeros(60)
    expected[9], expected[10] = 10.0 * np.sign(constant), -10.0 * np.sign(constant)
    np.testing.assert_array_equal(z[:, 3], expected)
    np.testing.assert_array_equal(z[:, :3], standardiser.z_scores(rows)[:, :3])

    level, bounds, relation = MultiView(views="level+range+relation").fit(train).panel_.statistics(rows)
    np.testing.assert_array_equal(level[:, 3], 0.0)  # its box is what it leaves
    assert bounds[9:11, 0].min() >= 10
    assert relation.shape == (60, 4)
    np.testing.assert_array_equal(relation[:, 3], 0.0)  # a constant has no relation to anything


@pytest.mark.parametrize("view", OWN.values(), ids=OWN)
def test_a_view_depends_on_no_rows_but_those_it_says(view: type[View]) -> None:
    fitted = view.of(TRAIN)
    rows = series(1_300, 6)[:, :3]
    whole = fitted.statistics(rows)
    for row in (view.memory, 300, 511, 512, 513, 1_299):  # to the bit, wherever in a block of 512
        np.testing.assert_array_equal(fitted.statistics(rows[row - view.memory : row + 1])[-1], whole[row])
    changed = rows.copy()
    changed[600 - view.memory] += 5.0
    assert not np.array_equal(fitted.statistics(changed)[600], whole[600])


@pytest.mark.parametrize("view", OWN.values(), ids=OWN)
def test_statistics_are_finite_and_not_negative(view: type[View]) -> None:
    fitted = view.of(TRAIN)
    for rows in (TEST[:1], TEST[:2], 1e6 * TEST, np.zeros((30, 3)), np.round(TEST)):
        found = fitted.statistics(rows)
        assert np.isfinite(found).all()
        assert found.min() >= 0
        assert len(found) == len(rows)


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=80),
    st.sampled_from([1, 2, 4, 8, 16, 64]),
)
@settings(max_examples=80)
def test_mean_of_last_is_pandas_rolling_mean(values: list[float], rows: int) -> None:
    given_values = np.array(values)
    expected = pd.Series(given_values).rolling(rows, min_periods=1).mean().to_numpy()
    by_hand = [np.mean(given_values[max(0, row - rows + 1) : row + 1]) for row in range(len(values))]
    found = mean_of_last(given_values, rows)
    np.testing.assert_allclose(found, expected, atol=1e-7)
    np.testing.assert_allclose(found, by_hand, rtol=1e-12, atol=1e-9)
    np.testing.assert_array_equal(mean_of_last(np.column_stack([given_values, -given_values]), rows)[:, 1], -found)


@pytest.mark.parametrize("rows", [1, 2, 4, 16, 64])
def test_the_bits_of_a_mean_depend_on_its_own_values_alone(rows: int) -> None:
    values = np.random.default_rng(0).normal(size=300)
    huge = values.copy()
    huge[:100] *= 1e15
    found, after_huge = mean_of_last(values, rows), mean_of_last(huge, rows)
    np.testing.assert_array_equal(after_huge[100 + rows - 1 :], found[100 + rows - 1 :])
    for row in range(rows - 1, 300, 7):
        assert mean_of_last(values[row - rows + 1 : row + 1], rows)[-1] == found[row]


def test_what_a_recording_begins_with_is_taken_from_all_of_it() -> None:
    rows = 40.0 + series(200, 2)[:, :3]
    expected = np.array([rows[row] - rows[: min(row + 1, 60)].mean(axis=0) for row in range(200)])
    np.testing.assert_allclose(without_beginning(rows), expected, atol=1e-12)
    np.testing.assert_array_equal(without_beginning(rows)[:90], without_beginning(rows[:90]))
    for n_rows in (1, 59, 60, 61):
        np.testing.assert_allclose(without_beginning(rows[:n_rows]), expected[:n_rows], atol=1e-12)
