"""The one-class support vector machine against scikit-learn's decision function, and SVDD against its own dual."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM as SklearnOneClassSVM

from tsadbench_detectors.ocsvm import OneClassSVM
from tsadbench_detectors.svdd import SVDD

RNG = np.random.default_rng(0)
TRAIN = RNG.normal(5.0, [1.0, 30.0, 0.1], size=(500, 3))
TEST = RNG.normal(5.0, [2.0, 60.0, 0.2], size=(80, 3))


@pytest.mark.parametrize(("nu", "gamma"), [(0.05, None), (0.3, None), (0.1, 0.7)])
def test_is_scikit_learns_decision_in_logarithms(nu: float, gamma: float | None) -> None:
    scaler = StandardScaler().fit(TRAIN)
    oracle = SklearnOneClassSVM(nu=nu, gamma="scale" if gamma is None else gamma).fit(scaler.transform(TRAIN))
    sums = oracle.score_samples(scaler.transform(TEST))
    scores = OneClassSVM(nu=nu, gamma=gamma).fit([TRAIN[:100], TRAIN[100:]]).score(TEST)
    np.testing.assert_allclose(scores, np.log(oracle.offset_) - np.log(sums), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(scores > 0, oracle.predict(scaler.transform(TEST)) == -1)


def test_rows_far_from_all_support_vectors_are_told_apart() -> None:
    """Once the sum of kernels underflows to 0, the paper's decision function is the same for all rows."""
    far = TRAIN.mean(axis=0) + np.array([[100.0], [200.0], [1e4], [1e6]]) * TRAIN.std(axis=0)
    scaler = StandardScaler().fit(TRAIN)
    oracle = SklearnOneClassSVM(nu=0.05).fit(scaler.transform(TRAIN))
    assert len(set(oracle.decision_function(scaler.transform(far)))) == 1
    scores = OneClassSVM().fit(TRAIN).score(far)
    assert (np.diff(scores) > 0).all()
    assert np.isfinite(scores).all()


def test_contributions_point_where_the_score_grows() -> None:
    """The gradient of the score is ``2 gamma`` times the difference whose squares are the contributions."""
    train = StandardScaler().fit_transform(TRAIN)  # z-scores are the rows themselves
    detector = OneClassSVM().fit(train)
    row, step = np.array([1.3, -0.4, 2.2]), 1e-5
    gradient = [(detector.score((row + e)[None])[0] - detector.score((row - e)[None])[0]) / (2 * step)
                for e in step * np.eye(3)]  # fmt: skip
    expected = (np.array(gradient) / (2 * detector.gamma_)) ** 2
    np.testing.assert_allclose(detector.contributions(row[None])[0], expected, rtol=1e-6)


@pytest.mark.parametrize("nu", [0.1, 0.4])
def test_svdd_is_the_one_class_machine(nu: float) -> None:
    """The score rises with the distance to the centre of SVDD's ball, from its dual as Tax and Duin write it."""
    train, gamma = TRAIN[:40], 0.3
    scaler = StandardScaler().fit(train)
    kernel = rbf_kernel(scaler.transform(train), gamma=gamma)
    weights = minimize(
        lambda a: a @ kernel @ a,
        np.full(40, 1 / 40),
        jac=lambda a: 2 * kernel @ a,
        bounds=[(0, 1 / (nu * 40))] * 40,
        constraints={"type": "eq", "fun": lambda a: a.sum() - 1},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1_000},
    ).x
    nearness = rbf_kernel(scaler.transform(TEST), scaler.transform(train), gamma=gamma) @ weights
    surface = (weights > 1e-3 / 40) & (weights < 0.999 / (nu * 40))
    scores = SVDD(nu=nu, gamma=gamma).fit(train).score(TEST)
    np.testing.assert_allclose(np.exp(-scores), nearness / (kernel @ weights)[surface].mean(), atol=2e-3)
    np.testing.assert_array_equal(scores, OneClassSVM(nu=nu, gamma=gamma).fit(train).score(TEST))
