"""Canonical variate analysis, against a generalised eigenvalue problem and against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import eigh
from scipy.stats import norm
from sklearn.covariance import LedoitWolf, ledoit_wolf

from tests.helpers.planted import in_deviations, padded, series, stretches
from tsadbench.utils.arrays import FloatArray
from tsadbench_detectors.cva import CVA
from tsadbench_detectors.window_covariance import shrunk_covariance

# The second recording is mostly too short for past plus future, but long enough for a past.
TRAIN, TEST = [series(150), series(8, 5), series(250, 3)], series(60, 4)


def _by_eigenvalues(past: int, future: int, states: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the canonical correlations, and T-squared and Q of training and test rows, [n_rows, 2]."""
    pooled = np.concatenate(TRAIN)
    train = [in_deviations(rows, pooled) for rows in TRAIN]
    test = in_deviations(TEST, pooled)
    both_parts = [stretches(z, past + future) for z in train if len(z) >= past + future]
    estimate = LedoitWolf().fit(np.concatenate(both_parts))
    n_past = past * 8
    of_past, of_future = estimate.covariance_[:n_past, :n_past], estimate.covariance_[n_past:, n_past:]
    cross = estimate.covariance_[n_past:, :n_past]
    squares, vectors = eigh(cross.T @ np.linalg.solve(of_future, cross), of_past)  # vectors' of_past vectors = 1
    pasts = np.concatenate([stretches(z, past) for z in train if len(z) >= past])
    both = []
    for vectors_of_past in (pasts, stretches(padded(test, past - 1), past)):
        p = vectors_of_past - estimate.location_[:n_past]
        t2 = ((p @ vectors[:, -states:]) ** 2).sum(axis=1)
        both.append(np.stack([t2, (p * np.linalg.solve(of_past, p.T).T).sum(axis=1) - t2], axis=1))
    return np.sqrt(np.maximum(squares[::-1], 0.0)), both[0], both[1]


@pytest.mark.parametrize(("past", "future", "states"), [(5, 5, 12), (4, 7, 3), (3, 3, 24)])
def test_is_the_larger_of_t2_of_the_states_and_q_of_the_rest(past: int, future: int, states: int) -> None:
    correlations, train, test = _by_eigenvalues(past, future, states)
    detector = CVA(past=past, future=future, states=states, confidence=0.9).fit(TRAIN)
    np.testing.assert_allclose(detector.correlations_, correlations[: len(detector.correlations_)], atol=1e-6)
    t2_limit, q_limit = detector.limits_
    assert _share_below(t2_limit, train[:, 0]) == pytest.approx(0.9)
    if states == past * 8:
        assert q_limit == np.inf
        np.testing.assert_allclose(test[:, 1], 0.0, atol=1e-6)
    else:
        assert _share_below(q_limit, train[:, 1]) == pytest.approx(0.9)
    np.testing.assert_allclose(detector.score(TEST), (test / detector.limits_).max(axis=1), rtol=1e-6)


def _share_below(limit: float, values: FloatArray) -> float:
    """Return the share of a kernel density estimate below a limit: the mean over the kernels."""
    width = (4 / 3) ** 0.2 * values.std(ddof=1) * len(values) ** -0.2
    return float(norm.cdf((limit - values) / width).mean())


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 6), st.integers(1, 4), st.lists(st.integers(0, 40), min_size=1, max_size=3), st.integers(0, 99))
def test_the_covariance_of_overlapping_windows_is_scikit_learns(length, n_sensors, more_rows, seed) -> None:
    rng = np.random.default_rng(seed)
    parts = [rng.normal(size=(length + 1 + more, n_sensors)).cumsum(axis=0) for more in more_rows]
    windows = np.concatenate([stretches(rows, length) for rows in parts])
    mean, covariance = shrunk_covariance(parts, length)
    expected, _ = ledoit_wolf(windows)
    np.testing.assert_allclose(mean, windows.mean(axis=0), atol=1e-10)
    np.testing.assert_allclose(covariance, expected, atol=1e-9 * np.abs(expected).max())
