"""The local outlier factor: the paper's definition computed from all distances, and scikit-learn's own."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.neighbors import LocalOutlierFactor
from sklearn.preprocessing import StandardScaler

from tsadbench.base import FloatArray
from tsadbench_detectors.lof import LOF

RNG = np.random.default_rng(0)
TRAIN = RNG.normal(5.0, [1.0, 30.0, 0.1], size=(300, 3))


def _by_definition(memory: FloatArray, rows: FloatArray, k: int) -> FloatArray:
    """Return Breunig's factors of new rows among remembered ones."""
    among = cdist(memory, memory)
    np.fill_diagonal(among, np.inf)
    order = np.argsort(among, axis=1)[:, :k]
    k_distance = np.take_along_axis(among, order, axis=1)[:, -1]
    density = 1 / np.maximum(k_distance[order], np.take_along_axis(among, order, axis=1)).mean(axis=1)
    to_rows = cdist(rows, memory)
    nearest = np.argsort(to_rows, axis=1)[:, :k]
    reach = np.maximum(k_distance[nearest], np.take_along_axis(to_rows, nearest, axis=1))
    return np.asarray(density[nearest].mean(axis=1) * reach.mean(axis=1))


# scikit-learn asks a tree, or computes all distances.
@pytest.mark.parametrize(("n_neighbors", "n_sensors"), [(1, 3), (20, 20)])
def test_is_the_papers_definition(n_neighbors: int, n_sensors: int) -> None:
    rng = np.random.default_rng(1)
    train, test = rng.normal(3.0, 2.0, size=(200, n_sensors)), rng.normal(3.0, 4.0, size=(40, n_sensors))
    scaler = StandardScaler().fit(train)
    scores = LOF(n_neighbors=n_neighbors).fit([train[:50], train[50:]]).score(test)
    expected = _by_definition(scaler.transform(train), scaler.transform(test), n_neighbors)
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
        expected = _by_definition(np.delete(z, block, axis=0), z[block], 20)
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
