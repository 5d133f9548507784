"""LSTM-NDT: forecast errors, their exponential mean and the dynamic threshold against independent computations."""

from __future__ import annotations

from itertools import groupby

import numpy as np
import pandas as pd
import pytest
import torch

from tests.helpers.planted import in_deviations, padded, waves, windows
from tsadbench.base import FloatArray
from tsadbench_detectors.lstm_ndt import LSTMNDT, dynamic_threshold


def small(**parameters: object) -> LSTMNDT:
    return LSTMNDT(**{"window": 4, "hidden_size": 5, "span": 3, "epochs": 1, "min_steps": 1, **parameters})  # type: ignore[arg-type]


def test_the_score_is_the_largest_smoothed_error_relative_to_the_training_errors() -> None:
    training, fresh = waves(), waves(40, seed=1)
    detector = small().fit(training)

    def smoothed(rows: FloatArray) -> FloatArray:
        given = windows(in_deviations(rows, training), 5)
        with torch.inference_mode():
            errors = (detector.network_(given[:, :4])[:, 0] - given[:, 4]).abs().double().numpy()
        return pd.DataFrame(errors).ewm(span=3, adjust=False).mean().to_numpy()

    usual = smoothed(training)
    ratios = smoothed(padded(fresh, 4)) / (usual.mean(axis=0) + usual.std(axis=0))
    np.testing.assert_allclose(detector.contributions(fresh), ratios, rtol=5e-3, atol=2e-3)
    np.testing.assert_array_equal(detector.score(fresh), detector.contributions(fresh).max(axis=1))
    np.testing.assert_allclose(detector.scale_, usual.mean(axis=0) + usual.std(axis=0), rtol=5e-3)
    detector.set_params(severity=True)
    thresholds = [dynamic_threshold([usual[:, sensor]]) for sensor in range(3)]
    above = ratios - np.array(thresholds) / (usual.mean(axis=0) + usual.std(axis=0))
    np.testing.assert_allclose(detector.contributions(fresh), above, rtol=5e-3, atol=1e-2)


@pytest.mark.parametrize("seed", range(2))
def test_the_dynamic_threshold_is_the_best_of_all_candidates(seed: int) -> None:
    rng = np.random.default_rng(seed)
    errors = rng.exponential(size=300)
    errors[40:52] *= 6.0
    errors[200:203] *= 20.0
    parts = [errors[:46], errors[46:]]  # a run ends at the end of its part
    mean, deviation = errors.mean(), errors.std()
    merits = {}
    for z in [2.5 + 0.5 * i for i in range(19)]:
        threshold = mean + z * deviation
        rest, above = errors[errors <= threshold], errors[errors > threshold]
        n_runs = sum(key for part in parts for key, _ in groupby(part > threshold))
        if 0 < len(above) < 150 and n_runs <= 5:
            falls = (mean - rest.mean()) / mean + (deviation - rest.std()) / deviation
            merits[z] = falls / (n_runs**2 + len(above))
    assert merits
    expected = mean + max(merits, key=lambda z: merits[z]) * deviation
    assert dynamic_threshold(parts) == pytest.approx(expected, rel=1e-12)


def test_the_dynamic_threshold_by_hand() -> None:
    # 95 errors of 1 and a run of five 11s: mean 1.5, variance .95 * .25 + .05 * 90.25. Every z with the run above the
    # threshold is equally good, and the first is 2.5.
    errors = np.ones(100)
    errors[50:55] = 11.0
    assert dynamic_threshold([errors]) == pytest.approx(1.5 + 2.5 * 4.75**0.5)
    # Six runs are too many at every z, so the threshold falls back to 12 standard deviations.
    six = np.ones(1_000)
    six[::180] = 11.0
    assert dynamic_threshold([six]) == pytest.approx(six.mean() + 12.0 * six.std())
    assert dynamic_threshold([np.full(9, 2.0)]) == 2.0


def test_a_network_for_each_sensor_has_its_own_weights_and_sees_all_sensors() -> None:
    # A layer of width h with k inputs: 4 h (k + h) weights and 8 h biases; the head h + 1.
    of_one = 4 * 5 * (3 + 5) + 8 * 5 + 4 * 5 * (5 + 5) + 8 * 5
    shared, separate = small().fit(waves()), small(separate_networks=True).fit(waves())
    counts = [sum(weight.numel() for weight in one.network_.parameters()) for one in (shared, separate)]
    assert counts == [of_one + 3 * 6, 3 * (of_one + 6)]
