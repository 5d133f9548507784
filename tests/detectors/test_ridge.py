"""The linear forecast, against scikit-learn's ridge regression."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge as Oracle

from tsadbench.errors import DataError, UsageError
from tsadbench.utils.arrays import FloatArray
from tsadbench_detectors.ridge import Ridge


def _walk(n_rows: int, seed: int, n_sensors: int = 3) -> FloatArray:
    noise = np.random.default_rng(seed).normal(size=(n_rows, n_sensors))
    for row in range(1, n_rows):
        noise[row] += 0.8 * np.roll(noise[row - 1], 1)
    rows: FloatArray = noise * [1.0, 50.0, 0.01] + [7.0, -200.0, 0.0]
    return rows


# Longer than a block of windows; shorter than the lags; and one of medium length.
TRAIN, TEST = [_walk(2500, 0), _walk(6, 1), _walk(300, 2)], _walk(80, 3)


def _past(rows: FloatArray, lags: int) -> FloatArray:
    """Return the rows before each row from number ``lags`` on, the oldest first."""
    return np.array([rows[last - lags : last].ravel() for last in range(lags, len(rows))])


@pytest.mark.parametrize(("lags", "penalty"), [(10, 1.0), (3, 1.0), (10, 250.0)])
def test_forecasts_as_scikit_learns_ridge_does(lags: int, penalty: float) -> None:
    pooled = np.concatenate(TRAIN)
    z_train, z_test = ([(rows - pooled.mean(axis=0)) / pooled.std(axis=0) for rows in part] for part in (TRAIN, [TEST]))
    with_past = [z for z in z_train if len(z) > lags]
    oracle = Oracle(alpha=penalty).fit(
        np.concatenate([_past(z, lags) for z in with_past]), np.concatenate([z[lags:] for z in with_past])
    )
    # While it scores, rows before the first are copies of it.
    (z,) = z_test
    padded = np.concatenate([np.repeat(z[:1], lags, axis=0), z])
    residuals = z - oracle.predict(_past(padded, lags))
    detector = Ridge(lags=lags, penalty=penalty).fit(TRAIN)
    np.testing.assert_allclose(detector.score(TEST), np.linalg.norm(residuals, axis=1), rtol=1e-9)
    np.testing.assert_allclose(detector.contributions(TEST), residuals**2, rtol=1e-9, atol=1e-15)


def test_a_shift_of_all_rows_costs_nothing_since_the_intercept_is_not_penalised() -> None:
    shifted = [rows + 1e3 for rows in TRAIN]
    np.testing.assert_allclose(Ridge().fit(shifted).score(TEST + 1e3), Ridge().fit(TRAIN).score(TEST), rtol=1e-5)


def test_training_scores_are_those_of_any_recording() -> None:
    detector = Ridge().fit(TRAIN)
    for own, rows in zip(detector.training_scores(TRAIN), TRAIN, strict=True):
        np.testing.assert_array_equal(own, detector.score(rows))


def test_finds_a_row_that_breaks_the_dynamics_inside_the_sensors_ranges() -> None:
    detector = Ridge().fit(TRAIN)
    broken = TEST.copy()
    broken[40] = TRAIN[0].mean(axis=0) - 1.5 * (broken[39] - TRAIN[0].mean(axis=0))
    assert detector.score(broken)[40] > detector.score(TEST)[40]
    np.testing.assert_array_equal(detector.score(broken)[:40], detector.score(TEST)[:40])
    np.testing.assert_array_equal(detector.score(broken)[51:], detector.score(TEST)[51:])


def test_declares_its_lags_as_its_memory() -> None:
    detector = Ridge(lags=4).fit(TRAIN)
    traits = detector.declared_traits()
    assert (traits.family, traits.floor, traits.look_ahead, traits.memory) == ("floor", True, 0, 4)
    assert detector.score(TEST[20:25])[-1] == detector.score(TEST)[24]


def test_needs_a_recording_with_a_row_after_the_lags() -> None:
    with pytest.raises(DataError, match="at least 11 rows \\(lags \\+ 1\\), the longest has 10"):
        Ridge().fit(TRAIN[0][:10])


@pytest.mark.parametrize(
    ("detector", "message"),
    [
        (Ridge(lags=0), "lags must be an integer of at least 1, found 0"),
        (Ridge(penalty=0.0), "penalty must be a number above 0, found 0.0"),
        (Ridge(penalty=float("inf")), "penalty must be a number above 0, found inf"),
    ],
)
def test_refuses_a_wrong_parameter(detector: Ridge, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        detector.check(("a",))
