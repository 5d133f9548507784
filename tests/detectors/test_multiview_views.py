"""MultiView's statistics against explicit formulas, and their tail probabilities against known distributions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from sklearn.covariance import ledoit_wolf

from tests.helpers.planted import series
from tsadbench import Recording
from tsadbench.base import FloatArray
from tsadbench_detectors.multiview import MultiView
from tsadbench_detectors.multiview.detector import without_beginning
from tsadbench_detectors.multiview.panel import z_scores
from tsadbench_detectors.multiview.tails import Tails
from tsadbench_detectors.multiview.views import Forecast, Graph, Movement, Range, Relation
from tsadbench_detectors.standardise import Standardiser

# Three series of three sensors: one is shorter than a window of forecasts.
TRAIN = [series(400)[:, :3], series(7, 5)[:, :3], series(200, 3)[:, 1:4]]
TEST = series(60, 4)[:, :3]


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


def test_what_a_recording_begins_with_is_taken_from_all_of_it() -> None:
    rows = 40.0 + series(200, 2)[:, :3]
    expected = np.array([rows[row] - rows[: min(row + 1, 60)].mean(axis=0) for row in range(200)])
    np.testing.assert_allclose(without_beginning(rows), expected, atol=1e-12)
    np.testing.assert_array_equal(without_beginning(rows)[:90], without_beginning(rows[:90]))
    for n_rows in (1, 59, 60, 61):
        np.testing.assert_allclose(without_beginning(rows[:n_rows]), expected[:n_rows], atol=1e-12)


def _column(values: FloatArray | list[float]) -> FloatArray:
    return np.asarray(values, dtype=np.float64)[:, None]


def _sample(shape: float, n: int = 10_000, scale: float = 1.0) -> FloatArray:
    """Return the quantiles of a generalised Pareto distribution, as evenly spaced in probability as n values are."""
    return np.asarray(stats.genpareto.ppf((np.arange(n) + 0.5) / n, shape, scale=scale))


@pytest.mark.parametrize(("shape", "scale"), [(0.0, 1.0), (0.2, 1e-6), (0.5, 250.0)])
def test_evidence_is_minus_the_logarithm_of_the_tail_probability(shape: float, scale: float) -> None:
    tails = Tails.of(_column(_sample(shape, scale=scale)))
    # From the middle of the sample to a hundred times beyond it.
    probabilities = np.logspace(np.log10(0.9), -6, 40)
    at = stats.genpareto.isf(probabilities, shape, scale=scale)
    expected = -stats.genpareto.logsf(at, shape, scale=scale)
    found = tails.evidence_of(_column(at))[:, 0]
    np.testing.assert_allclose(found, expected, rtol=0.05, atol=0.01)
    np.testing.assert_allclose(found[probabilities > 0.03], expected[probabilities > 0.03], rtol=0.005, atol=2e-3)
    assert tails.shape[0] == pytest.approx(shape, abs=0.05)


def test_a_lighter_tail_gets_the_least_shape_and_keeps_its_mean_excess() -> None:
    sample, least = _sample(0.0), 0.25
    tails = Tails.of(_column(sample), least)
    assert tails.shape[0] == least
    excesses = sample[sample > np.quantile(sample, 0.98)] - np.quantile(sample, 0.98)
    assert stats.genpareto.mean(least, scale=tails.scale[0]) == pytest.approx(excesses.mean(), rel=1e-9)
    beyond = tails.evidence_of(_column([tails.quantiles[0, -1] + 40.0]))[0, 0] - tails.evidence[0, -1]
    assert beyond == pytest.approx(-stats.genpareto.logsf(40.0, least, scale=tails.scale[0]), rel=1e-9)


def test_a_statistic_that_never_moved_counts_its_first_move_from_the_number_of_rows() -> None:
    n = 5_000
    tails = Tails.of(np.zeros((n, 1)), 0.25)
    # With scale 1 and shape 1/2 the tail is 1 / (1 + x / 2)^2.
    expected = np.log(n + 1) + 2 * np.log1p(np.array([1.0, 10.0]) / 2)
    np.testing.assert_allclose(tails.evidence_of(_column([1.0, 10.0]))[:, 0], expected, rtol=1e-9)


finite = st.floats(0.0, 1e9, allow_subnormal=False).map(lambda value: value if value > 1e-9 else 0.0)


@given(
    sample=arrays(np.float64, st.integers(1, 100), elements=finite),
    values=arrays(np.float64, st.integers(2, 50), elements=finite),
    least=st.sampled_from([0.0, 0.1, 0.25, 0.9]),
)
@settings(max_examples=80)
def test_evidence_is_finite_not_negative_and_never_falls_with_the_value(
    sample: FloatArray, values: FloatArray, least: float
) -> None:
    tails = Tails.of(_column(sample), least)
    assert least <= tails.shape[0] <= 1.0
    values = np.sort(np.concatenate([values, sample, [sample.max() * 2, 1e100]]))
    evidence = tails.evidence_of(_column(values))[:, 0]
    assert np.isfinite(evidence).all()
    assert evidence.min() >= 0
    assert (np.diff(evidence) >= 0).all()
    # No value is rarer than one that none of the rows reached, up to what the tail adds.
    assert evidence[values <= tails.quantiles[0, -1]].max(initial=0.0) <= -np.log(tails.share[0]) + 1e-9
