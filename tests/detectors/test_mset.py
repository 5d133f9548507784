"""MSET: similarities and estimates against loops, held-out training scores."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.planted import in_deviations, waves
from tsadbench.utils.arrays import FloatArray
from tsadbench_detectors.mset import MSET, Memory, chosen_rows, similarities


def _similarity(a: FloatArray, b: FloatArray) -> float:
    if (a == b).all():
        return 1.0
    return 1.0 - np.linalg.norm(a - b) / (np.linalg.norm(a) + np.linalg.norm(b))


def test_similarities_by_loops() -> None:
    some, others = np.vstack([waves(4), np.zeros((1, 3))]), np.vstack([waves(3, seed=1), np.zeros((1, 3))])
    expected = [[_similarity(a, b) for b in others] for a in some]
    np.testing.assert_allclose(similarities(some, others), expected, rtol=1e-12)


@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_the_estimate_by_its_formula(ridge: float) -> None:
    remembered, x = waves(12), waves(1, seed=1)[0]
    gram = np.array([[_similarity(a, b) for b in remembered] for a in remembered])
    weights = np.linalg.inv(gram + ridge * np.eye(12)) @ np.array([_similarity(a, x) for a in remembered])
    estimate = Memory.of(remembered, ridge=ridge).estimate(x[None])[0]
    np.testing.assert_allclose(estimate, remembered.T @ weights, rtol=1e-8)


def test_the_score_is_the_length_of_the_residual_in_z_scores() -> None:
    detector = MSET(memory_rows=1000, ridge=1e-12).fit(waves(200))
    z, fresh = in_deviations(waves(200), waves(200)), waves(5, seed=2)
    fresh_z = in_deviations(fresh, waves(200))
    residual = fresh_z - Memory.of(z, 0.0).estimate(fresh_z)
    np.testing.assert_allclose(detector.score(fresh), np.linalg.norm(residual, axis=1), rtol=1e-6)
    np.testing.assert_allclose(detector.contributions(fresh), residual**2, rtol=1e-6)


def test_a_block_is_scored_by_the_other_blocks_of_all_recordings() -> None:
    first, second = waves(50), waves(31, seed=1)
    detector = MSET(memory_rows=1000).fit([first, second])
    scores = detector.training_scores([first, second])
    others = np.concatenate([first[10:], np.delete(second, np.arange(7), axis=0)])
    pooled = np.concatenate([first, second])
    memory = Memory.of(in_deviations(others, pooled), 1e-6)
    for found, block in zip(scores, (first[:10], second[:7]), strict=True):
        z = in_deviations(block, pooled)
        np.testing.assert_allclose(found[: len(z)], np.linalg.norm(z - memory.estimate(z), axis=1), rtol=1e-6)


def test_extremes_are_remembered_then_rows_of_all_lengths() -> None:
    given = waves(200)
    chosen = chosen_rows(given, 30)
    assert len(chosen) == 30
    assert {*given.argmin(axis=0), *given.argmax(axis=0)} <= set(chosen)
    lengths = np.sort(np.linalg.norm(given, axis=1))
    gaps = np.diff(np.searchsorted(lengths, np.sort(np.linalg.norm(given[chosen], axis=1))))
    assert gaps.max() <= 2 * len(given) / 24
    np.testing.assert_array_equal(chosen_rows(given, 200), np.arange(200))
    assert len(chosen_rows(given, 1)) == len({*given.argmin(axis=0), *given.argmax(axis=0)})
