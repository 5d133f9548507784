"""Hotelling's T-squared, against scikit-learn's Mahalanobis distance and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.covariance import EmpiricalCovariance

from tsadbench.errors import DataError, UsageError
from tsadbench.utils.arrays import FloatArray
from tsadbench_detectors.t2 import T2


def _correlated(n_rows: int, seed: int = 0) -> FloatArray:
    mixing = np.array([[1.0, 0.5, 0.0, 0.2], [0.0, 1.0, 0.8, 0.0], [0.0, 0.0, 1.0, 0.3], [0.1, 0.0, 0.0, 1.0]])
    independent = np.random.default_rng(seed).normal(size=(n_rows, 4))
    rows: FloatArray = independent @ mixing * [1, 100, 0.01, 5] + [0, 50, 3, -2]
    return rows


TRAIN, TEST = _correlated(300), _correlated(80, seed=1) * 1.3


def test_scores_by_hand() -> None:
    # Standardised rows (-1,-1), (-1,1), (1,-1), (1,1): S = 4/3 I, so T-squared = 3/4 |z|^2.
    detector = T2().fit(np.array([[-1.0, -10.0], [-1.0, 10.0], [1.0, -10.0], [1.0, 10.0]]) + 7)
    np.testing.assert_allclose(detector.score(np.array([[7.0, 7.0], [9.0, 7.0], [10.0, 47.0]])), [0, 3, 18.75])


def test_is_the_squared_mahalanobis_distance() -> None:
    # scikit-learn divides by n, T-squared by n - 1.
    expected = EmpiricalCovariance().fit(TRAIN).mahalanobis(TEST) * (len(TRAIN) - 1) / len(TRAIN)
    np.testing.assert_allclose(T2().fit([TRAIN[:100], TRAIN[100:]]).score(TEST), expected)


@given(arrays(np.float64, (4, 4), elements=st.floats(-1, 1)), arrays(np.float64, 4, elements=st.floats(-10, 10)))
def test_any_invertible_change_of_units_leaves_it_alone(change: FloatArray, shift: FloatArray) -> None:
    change = change + 5 * np.eye(4)
    scale = TRAIN.std(axis=0)
    train, test = TRAIN / scale, TEST / scale
    np.testing.assert_allclose(
        T2().fit(train @ change + shift).score(test @ change + shift), T2().fit(train).score(test), rtol=1e-6
    )


def test_the_training_rows_mean_is_the_number_of_sensors_but_for_ddof() -> None:
    scores = T2().fit(TRAIN).training_scores(TRAIN)[0]
    assert scores.sum() == pytest.approx(4 * (len(TRAIN) - 1))


def test_one_sensor_is_the_squared_z_score() -> None:
    train, test = TRAIN[:, :1], TEST[:, :1]
    expected = (test[:, 0] - train.mean()) ** 2 / train.var(ddof=1)
    np.testing.assert_allclose(T2().fit(train).score(test), expected)


def test_leaves_out_a_constant_sensor() -> None:
    constant = np.full((len(TRAIN), 1), 0.1)
    moved = np.linspace(-9, 9, len(TEST))[:, None]
    detector = T2().fit(np.hstack([TRAIN[:, :2], constant, TRAIN[:, 2:]]))
    rows = np.hstack([TEST[:, :2], moved, TEST[:, 2:]])
    np.testing.assert_array_equal(detector.score(rows), T2().fit(TRAIN).score(TEST))
    np.testing.assert_array_equal(detector.contributions(rows)[:, 2], 0.0)


@pytest.mark.parametrize("weights", [[1, 0, 0, 0], [1, -2, 300, 0.5], [0.1, 0.1, 0.1, 0.1]])
def test_a_collinear_sensor_changes_nothing(weights: list[float]) -> None:
    detector = T2().fit(np.hstack([TRAIN, TRAIN @ np.array(weights)[:, None] + 3]))
    rows = np.hstack([TEST, TEST @ np.array(weights)[:, None] + 3])
    np.testing.assert_allclose(detector.score(rows), T2().fit(TRAIN).score(TEST), rtol=1e-6)


def test_fewer_rows_than_sensors_still_give_finite_scores() -> None:
    detector = T2().fit(TRAIN[:3])
    assert np.isfinite(detector.score(TEST)).all()
    # Three rows span two directions; seen from their mean all three are equally far: (n - 1)^2 / n each.
    np.testing.assert_allclose(detector.score(TRAIN[:3]), 4 / 3)


def test_smoothing_is_the_trailing_median() -> None:
    raw = T2().fit(TRAIN).score(TEST)
    smooth = T2(smoothing=5).fit(TRAIN).score(TEST)
    np.testing.assert_allclose(smooth[10], np.median(raw[6:11]))
    np.testing.assert_allclose(smooth[:3], [raw[0], np.median(raw[:2]), np.median(raw[:3])])


def test_the_mean_is_taken_after_the_median_and_of_the_contributions_too() -> None:
    median, both = T2(smoothing=5).fit(TRAIN), T2(smoothing=5, mean=3).fit(TRAIN)
    np.testing.assert_allclose(both.score(TEST)[10], median.score(TEST)[8:11].mean())
    np.testing.assert_allclose(both.contributions(TEST)[10], median.contributions(TEST)[8:11].mean(axis=0))
    mean = T2(mean=10).fit(TRAIN)
    np.testing.assert_allclose(mean.contributions(TEST).sum(axis=1), mean.score(TEST))
    assert not mean.declared_traits().floor


@pytest.mark.parametrize(("smoothing", "mean"), [(1, 1), (5, 1), (1, 4), (5, 3)])
def test_depends_on_no_other_rows_than_its_traits_say(smoothing: int, mean: int) -> None:
    detector = T2(smoothing=smoothing, mean=mean).fit(TRAIN)
    traits = detector.declared_traits()
    assert (traits.family, traits.look_ahead, traits.memory) == ("statistics", 0, smoothing + mean - 2)
    scores = detector.score(TEST)
    for row in (0, 1, 20, 79):
        np.testing.assert_array_equal(detector.score(TEST[: row + 1]), scores[: row + 1])
        seen = TEST[max(0, row - smoothing - mean + 2) : row + 1]
        assert detector.score(seen)[-1] == scores[row]


def test_contributions_sum_to_the_score_and_point_at_the_sensor() -> None:
    detector = T2().fit(TRAIN)
    np.testing.assert_allclose(detector.contributions(TEST).sum(axis=1), detector.score(TEST))
    broken = TRAIN.mean(axis=0) + np.array([[0, 0, 10 * TRAIN[:, 2].std(), 0]])
    assert detector.contributions(broken).argmax() == 2


@pytest.mark.parametrize("train", [np.full((20, 2), 3.0), np.array([[1.0, 2.0]])], ids=["constant", "one row"])
def test_refuses_training_rows_in_which_nothing_varies(train: FloatArray) -> None:
    with pytest.raises(DataError, match="T2: expected training rows in which at least one sensor varies"):
        T2().fit(train)


def test_refuses_a_wrong_parameter() -> None:
    with pytest.raises(UsageError, match="smoothing must be at least 1, found 0"):
        T2(smoothing=0).fit(TRAIN)
    with pytest.raises(UsageError, match="mean must be an integer of at least 1, found 0"):
        T2(mean=0).fit(TRAIN)
