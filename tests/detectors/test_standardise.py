"""Standardising by the training rows, against scikit-learn and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from tsadbench.base.recording import Recording
from tsadbench.errors import DataError
from tsadbench_detectors.standardise import Standardiser, pooled_rows


def _recording(values: object, id: str = "a") -> Recording:  # noqa: A002
    array = np.array(values, dtype=np.float64)
    return Recording(id=id, values=array, sensors=tuple(f"x{i}" for i in range(array.shape[1])))


def test_pools_the_rows_of_all_recordings_like_scikit_learn() -> None:
    rows = np.random.default_rng(0).normal(3.0, [1.0, 20.0, 0.01], size=(100, 3))
    standardiser = Standardiser.of([_recording(rows[:30], "a"), _recording(rows[30:], "b")])
    np.testing.assert_allclose(standardiser.z_scores(rows), StandardScaler().fit_transform(rows), atol=1e-12)
    np.testing.assert_array_equal(pooled_rows([_recording(rows[:30]), _recording(rows[30:])]), rows)


@pytest.mark.parametrize("n_sensors", [1, 2, 7, 50])
@pytest.mark.parametrize("cuts", [[], [1], [3, 8_192, 8_193, 15_000]])
def test_a_long_recording_is_standardised_as_numpy_does_to_the_bit(n_sensors: int, cuts: list[int]) -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(rng.uniform(-1e6, 1e6, n_sensors), rng.uniform(0.1, 1e3, n_sensors), size=(20_000, n_sensors))
    standardiser = Standardiser.of([_recording(piece) for piece in np.split(rows, cuts)])
    np.testing.assert_array_equal(standardiser.mean, rows.mean(axis=0))
    np.testing.assert_array_equal(standardiser.scale, rows.std(axis=0))


@pytest.mark.parametrize(("n_rows", "tolerance"), [(2, 0.0), (9_000, 0.0), (65_536, 0.0), (150_000, 1e-12)])
def test_the_covariance_is_numpys_and_to_the_bit_up_to_65536_rows(n_rows: int, tolerance: float) -> None:
    rows = np.random.default_rng(0).normal(size=(n_rows, 4)) @ np.triu(np.ones((4, 4))) * [1, 20, 1e-3, 0] + 7
    pieces = [_recording(piece) for piece in np.split(rows, [max(n_rows // 3, 1)])]
    standardiser = Standardiser.of(pieces)
    expected = np.cov(standardiser.varying_z_scores(rows), rowvar=False)
    assert expected.shape == (3, 3)
    np.testing.assert_allclose(standardiser.covariance(pieces), expected, rtol=tolerance)


def test_a_constant_sensor_counts_in_its_own_unit() -> None:
    standardiser = Standardiser.of([_recording([[0.0, 5.0], [2.0, 5.0]])])
    np.testing.assert_array_equal(standardiser.varies, [True, False])
    np.testing.assert_array_equal(standardiser.z_scores(np.array([[1.0, 5.0], [3.0, 8.0]])), [[0, 0], [2, 3]])


@pytest.mark.parametrize("value", [0.1, 1e9 / 3, -1e-9 / 7, 0.0])
def test_rounding_in_the_mean_does_not_make_a_constant_sensor_vary(value: float) -> None:
    rows = np.full((1001, 1), value)
    standardiser = Standardiser.of([_recording(rows)])
    assert not standardiser.varies.any()
    np.testing.assert_array_equal(standardiser.z_scores(rows), 0.0)


def test_a_sensor_that_varies_little_around_a_large_mean_varies() -> None:
    standardiser = Standardiser.of([_recording([[1e6], [1e6 + 1e-3]] * 500)])
    assert standardiser.varies.all()


def test_constant_sensors_are_put_back_as_zero() -> None:
    standardiser = Standardiser.of([_recording([[0.0, 5.0, 1.0], [2.0, 5.0, 3.0]])])
    z = standardiser.varying_z_scores(np.array([[3.0, 8.0, 2.0]]))
    np.testing.assert_array_equal(z, [[2.0, 0.0]])
    np.testing.assert_array_equal(standardiser.with_constant_sensors(z), [[2.0, 0.0, 0.0]])


def test_says_which_detector_needs_variation() -> None:
    Standardiser.of([_recording([[1.0, 2.0], [1.0, 3.0]])]).require_variation("T2")
    with pytest.raises(DataError, match="T2: expected training rows in which at least one sensor varies, found all 2"):
        Standardiser.of([_recording([[1.0, 2.0]])]).require_variation("T2")
