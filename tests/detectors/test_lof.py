"""The local outlier factor against scikit-learn's own, of new rows and of training rows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.neighbors import LocalOutlierFactor
from sklearn.preprocessing import StandardScaler

from tsadbench.base import FloatArray
from tsadbench_detectors.lof import LOF

RNG = np.random.default_rng(0)
TRAIN = RNG.normal(5.0, [1.0, 30.0, 0.1], size=(300, 3))


def _factors(memory: FloatArray, rows: FloatArray, k: int) -> FloatArray:
    """Return scikit-learn's factors of new rows among remembered ones."""
    return np.asarray(-LocalOutlierFactor(n_neighbors=k, novelty=True).fit(memory).score_samples(rows))


# With 3 sensors scikit-learn uses a tree, with 20 it computes all distances.
@pytest.mark.parametrize(("n_neighbors", "n_sensors"), [(1, 3), (20, 20)])
def test_new_rows_have_scikit_learns_factors(n_neighbors: int, n_sensors: int) -> None:
    rng = np.random.default_rng(1)
    train, test = rng.normal(3.0, 2.0, size=(200, n_sensors)), rng.normal(3.0, 4.0, size=(40, n_sensors))
    scaler = StandardScaler().fit(train)
    scores = LOF(n_neighbors=n_neighbors).fit([train[:50], train[50:]]).score(test)
    expected = _factors(scaler.transform(train), scaler.transform(test), n_neighbors)
    np.testing.assert_allclose(scores, expected, rtol=1e-7)


def test_blocks_0_gives_scikit_learns_factors_of_the_training_rows() -> None:
    oracle = LocalOutlierFactor(n_neighbors=20).fit(StandardScaler().fit_transform(TRAIN))
    recordings = [TRAIN[:100], TRAIN[100:]]
    parts = LOF(blocks=0).fit(recordings).training_scores(recordings)
    assert [len(part) for part in parts] == [100, 200]
    np.testing.assert_allclose(np.concatenate(parts), -oracle.negative_outlier_factor_)


def test_training_scores_are_held_out_by_blocks() -> None:
    z = StandardScaler().fit_transform(TRAIN)
    recordings = [TRAIN[:100], TRAIN[100:]]
    scores = np.concatenate(LOF(blocks=3).fit(recordings).training_scores(recordings))
    for block in np.split(np.arange(300), 3):
        expected = _factors(np.delete(z, block, axis=0), z[block], 20)
        np.testing.assert_allclose(scores[block], expected, rtol=1e-7)


@pytest.mark.parametrize("blocks", [0, 5])
def test_training_rows_that_it_does_not_remember_are_scored_too(blocks: int) -> None:
    detector = LOF(max_rows=60, blocks=blocks).fit(TRAIN)
    np.testing.assert_allclose(detector.memory_, np.unique(StandardScaler().fit(TRAIN).transform(TRAIN[::5]), axis=0))
    (scores,) = detector.training_scores(TRAIN)
    assert np.isfinite(scores).all()
    if blocks == 0:
        np.testing.assert_array_equal(scores[1::5], detector.score(TRAIN[1::5]))
        assert not np.allclose(scores[::5], detector.score(TRAIN[::5]))
