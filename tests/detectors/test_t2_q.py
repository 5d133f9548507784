"""T-squared and Q, against scikit-learn's principal component analysis."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from tsadbench.errors import DataError, UsageError
from tsadbench.utils.arrays import FloatArray
from tsadbench_detectors.control_limits import q_limit, t2_limit
from tsadbench_detectors.t2 import T2
from tsadbench_detectors.t2_q import T2Q


def _few_causes(n_rows: int, seed: int = 0) -> FloatArray:
    """Six sensors that follow three causes, with noise."""
    rng = np.random.default_rng(seed)
    mixing = np.random.default_rng(99).normal(size=(3, 6))
    return (rng.normal(size=(n_rows, 3)) @ mixing + 0.3 * rng.normal(size=(n_rows, 6))) * [1, 9, 0.1, 1, 50, 1] + 4


TRAIN, TEST = _few_causes(400), _few_causes(100, seed=1)


def _by_scikit_learn(n_components: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return T-squared and Q of the test rows, and the variances of all components."""
    scaler = StandardScaler().fit(TRAIN)
    z_train, z_test = scaler.transform(TRAIN), scaler.transform(TEST)
    pca = PCA(n_components).fit(z_train)
    scores = pca.transform(z_test)
    residuals = z_test - pca.inverse_transform(scores)
    t2 = (scores**2 / pca.explained_variance_).sum(axis=1)
    return t2, (residuals**2).sum(axis=1), PCA().fit(z_train).explained_variance_


@pytest.mark.parametrize("n_components", [1, 2, 3, 5])
def test_is_the_larger_of_both_statistics_over_their_limits(n_components: int) -> None:
    t2, q, variances = _by_scikit_learn(n_components)
    held = variances.cumsum() / variances.sum()
    expected = np.maximum(t2 / t2_limit(n_components, 400, 0.99), q / q_limit(variances[n_components:], 0.99))
    detector = T2Q(variance=held[n_components - 1] - 1e-6, confidence=0.99).fit([TRAIN[:150], TRAIN[150:]])
    np.testing.assert_allclose(detector.score(TEST), expected)


def test_keeps_the_fewest_components_that_hold_the_variance() -> None:
    pca = PCA().fit(StandardScaler().fit_transform(TRAIN))
    kept = T2Q(variance=0.85).fit(TRAIN).component_variances_
    np.testing.assert_allclose(kept, pca.explained_variance_[: len(kept)])
    held = pca.explained_variance_ratio_.cumsum()
    assert held[len(kept) - 2] < 0.85 <= held[len(kept) - 1]


def test_sees_both_kinds_of_deviation() -> None:
    detector = T2Q().fit(TRAIN)
    mean, spread = TRAIN.mean(axis=0), TRAIN.std(axis=0)
    far_along_the_components = mean + 9 * spread * detector.components_[:, 0]
    off_the_components = mean + 9 * spread * np.linalg.svd(detector.components_)[0][:, -1]
    assert (detector.score(np.stack([far_along_the_components, off_the_components])) > 1).all()
    assert detector.score(mean[None])[0] == pytest.approx(0, abs=1e-12)


def test_normal_rows_exceed_one_as_often_as_the_confidence_says() -> None:
    alarms = np.mean(T2Q(confidence=0.99).fit(TRAIN).score(_few_causes(20_000, seed=2)) > 1)
    assert 0.01 <= alarms <= 0.03  # two limits, each exceeded by one row in a hundred


def test_with_all_components_it_is_t2_over_its_limit() -> None:
    detector = T2Q(variance=1.0).fit(TRAIN)
    assert detector.components_.shape == (6, 6)
    np.testing.assert_allclose(detector.score(TEST), T2().fit(TRAIN).score(TEST) / t2_limit(6, 400, 0.999))


def test_one_sensor_has_no_residual() -> None:
    scores = T2Q().fit(TRAIN[:, :1]).score(TEST[:, :1])
    np.testing.assert_allclose(scores, T2().fit(TRAIN[:, :1]).score(TEST[:, :1]) / t2_limit(1, 400, 0.999))


def test_leaves_out_a_constant_sensor() -> None:
    detector = T2Q().fit(np.hstack([np.full((400, 1), 0.1), TRAIN]))
    rows = np.hstack([np.linspace(-9, 9, 100)[:, None], TEST])
    np.testing.assert_array_equal(detector.score(rows), T2Q().fit(TRAIN).score(TEST))
    np.testing.assert_array_equal(detector.contributions(rows)[:, 0], 0.0)


def test_sees_a_row_that_breaks_an_exact_collinearity() -> None:
    collinear = TRAIN[:, :1] * [1.0, -3.0] + [0.0, 8.0]
    detector = T2Q().fit(collinear)
    training_scores = detector.training_scores(collinear)[0]
    np.testing.assert_allclose(training_scores, T2Q().fit(TRAIN[:, :1]).training_scores(TRAIN[:, :1])[0], atol=1e-9)
    broken = collinear.mean(axis=0) + np.array([[0.01, 0.0]])
    assert detector.score(broken)[0] > 1e3


def test_keeps_no_component_that_is_rounding() -> None:
    doubled = np.hstack([TRAIN, TRAIN])
    detector = T2Q(variance=1.0).fit(doubled)
    assert len(detector.component_variances_) == 6
    assert np.isfinite(detector.score(np.hstack([TEST, TEST[::-1]]))).all()


def test_fewer_rows_than_sensors_still_give_finite_scores() -> None:
    assert np.isfinite(T2Q(variance=1.0).fit(TRAIN[:3]).score(TEST)).all()


def test_smooths_both_statistics_before_it_takes_the_larger() -> None:
    t2, q, variances = _by_scikit_learn(2)  # what the default share of 0.85 keeps
    t2_share, q_share = t2 / t2_limit(2, 400, 0.999), q / q_limit(variances[2:], 0.999)
    smooth = T2Q(smoothing=5).fit(TRAIN).score(TEST)
    expected = [max(np.median(t2_share[row - 4 : row + 1]), np.median(q_share[row - 4 : row + 1])) for row in (4, 50)]
    np.testing.assert_allclose(smooth[[4, 50]], expected)
    assert smooth[0] == pytest.approx(max(t2_share[0], q_share[0]))


@pytest.mark.parametrize("smoothing", [1, 4])
def test_depends_on_no_other_rows_than_its_traits_say(smoothing: int) -> None:
    detector = T2Q(smoothing=smoothing).fit(TRAIN)
    traits = detector.declared_traits()
    assert (traits.family, traits.look_ahead, traits.memory) == ("statistics", 0, smoothing - 1)
    scores = detector.score(TEST)
    for row in (0, 1, 20, 99):
        np.testing.assert_array_equal(detector.score(TEST[: row + 1]), scores[: row + 1])
        assert detector.score(TEST[max(0, row - smoothing + 1) : row + 1])[-1] == scores[row]


@given(st.floats(0.05, 1.0))
def test_contributions_sum_to_the_score(variance: float) -> None:
    detector = T2Q(variance=variance).fit(TRAIN)
    np.testing.assert_allclose(detector.contributions(TEST).sum(axis=1), detector.score(TEST))


def test_contributions_point_at_the_sensor_that_left_the_others() -> None:
    broken = TRAIN.mean(axis=0) + 9 * np.diag(TRAIN.std(axis=0))
    np.testing.assert_array_equal(T2Q().fit(TRAIN).contributions(broken).argmax(axis=1), range(6))


def test_refuses_training_rows_in_which_nothing_varies() -> None:
    with pytest.raises(DataError, match="T2Q: expected training rows in which at least one sensor varies"):
        T2Q().fit(np.ones((20, 2)))


@pytest.mark.parametrize(
    ("detector", "message"),
    [
        (T2Q(variance=0.0), "variance must be above 0 and at most 1, found 0.0"),
        (T2Q(variance=1.1), "variance must be above 0 and at most 1, found 1.1"),
        (T2Q(confidence=1.0), "confidence must be at least 0.5 and below 1, found 1.0"),
        (T2Q(confidence=0.4), "confidence must be at least 0.5 and below 1, found 0.4"),
        (T2Q(smoothing=0), "smoothing must be at least 1, found 0"),
    ],
)
def test_refuses_a_wrong_parameter(detector: T2Q, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        detector.check(("a",))
