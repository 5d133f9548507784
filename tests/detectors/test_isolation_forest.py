"""The isolation forest: scikit-learn's, with a higher score for a more anomalous row."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import IsolationForest as SklearnIsolationForest
from sklearn.preprocessing import StandardScaler

from tsadbench.errors import UsageError
from tsadbench_detectors.isolation_forest import IsolationForest

RNG = np.random.default_rng(0)
TRAIN, TEST = RNG.normal(5.0, [1.0, 30.0, 0.1], size=(500, 3)), RNG.normal(5.0, [1.0, 30.0, 0.1], size=(50, 3))


def test_is_scikit_learns_with_its_defaults() -> None:
    scaler = StandardScaler().fit(TRAIN)
    oracle = SklearnIsolationForest(random_state=3).fit(scaler.transform(TRAIN))
    scores = IsolationForest(seed=3).fit([TRAIN[:100], TRAIN[100:]]).score(TEST)
    np.testing.assert_allclose(scores, -oracle.score_samples(scaler.transform(TEST)))


def test_an_outlier_scores_highest() -> None:
    outlier = TRAIN.mean(axis=0) + np.array([[8.0, 0.0, -0.8]])
    scores = IsolationForest().fit(TRAIN).score(np.vstack([TEST, outlier]))
    assert scores.argmax() == len(TEST)
    assert ((scores > 0) & (scores <= 1)).all()


def test_follows_from_its_seed() -> None:
    scores = IsolationForest(seed=1, n_estimators=20).fit(TRAIN).score(TEST)
    np.testing.assert_array_equal(IsolationForest(seed=1, n_estimators=20).fit(TRAIN).score(TEST), scores)
    assert not np.array_equal(IsolationForest(seed=2, n_estimators=20).fit(TRAIN).score(TEST), scores)


def test_depends_on_no_other_row() -> None:
    detector = IsolationForest(n_estimators=20).fit(TRAIN)
    scores = detector.score(TEST)
    np.testing.assert_array_equal(np.concatenate([detector.score(row[None]) for row in TEST]), scores)
    traits = detector.declared_traits()
    assert (traits.family, traits.look_ahead, traits.memory, traits.stochastic) == ("trees", 0, 0, True)


def test_rows_that_cannot_be_told_apart_score_alike() -> None:
    scores = IsolationForest(n_estimators=20).fit(np.ones((30, 2))).score(np.array([[1.0, 1.0], [9.0, 1.0]]))
    assert np.isfinite(scores).all()
    assert scores[0] == scores[1]


@pytest.mark.parametrize(
    ("detector", "message"),
    [
        (IsolationForest(n_estimators=0), "n_estimators must be at least 1, found 0"),
        (IsolationForest(seed=-1), "seed must be at least 0 and below 2\\^32, found -1"),
        (IsolationForest(seed=2**32), "seed must be at least 0 and below 2\\^32, found 4294967296"),
    ],
)
def test_refuses_a_wrong_parameter(detector: IsolationForest, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        detector.check(("a",))
