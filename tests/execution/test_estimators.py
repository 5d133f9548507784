"""Scikit-learn estimator objects run as detectors; other objects are refused with a message."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LinearRegression
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KernelDensity, LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import tsadbench
from tests.helpers.data import make_data
from tests.helpers.detectors import load_detector
from tsadbench import UsageError

DATA = make_data()


def records(detectors, **options):
    board = tsadbench.run(detectors, DATA, floors=False, splits="overall", **options)
    return {(record.label, record.seed): record for record in board.records}


def test_an_object_is_cloned_and_gets_the_runs_seeds():
    mine = IsolationForest(n_estimators=20, random_state=7, n_jobs=2)
    found = records(mine, seeds=2)
    label = "estimator[of=IsolationForest(n_estimators=20)]"
    assert {key: one.status for key, one in found.items()} == {(label, 0): "ok", (label, 1): "ok"}
    assert mine.get_params()["random_state"] == 7
    assert not hasattr(mine, "estimators_")


def test_a_pipeline_is_fitted_on_the_rows_as_they_are_with_the_trials_seed():
    pipe = make_pipeline(StandardScaler(), PCA(n_components=2), IsolationForest(n_estimators=20, random_state=5))
    label = "estimator[of=StandardScaler() > PCA(n_components=2) > IsolationForest(n_estimators=20)]"
    found = records(pipe, seeds=[3, 4])
    assert {key: one.status for key, one in found.items()} == {(label, 3): "ok", (label, 4): "ok"}
    # Scored by hand: fitted again on the training rows, with the seed and the opposite sign.
    rows = np.concatenate([one.values for one in DATA.dataset.train])
    for step in ("pca", "isolationforest"):
        pipe.set_params(**{f"{step}__random_state": 3})
    by_hand = pipe.fit(rows)
    scored = _wrapped(pipe, seed=3).fit(DATA.dataset.train).score(DATA.dataset.test[0])
    np.testing.assert_array_equal(scored, -by_hand.score_samples(DATA.dataset.test[0].values))


def _wrapped(estimator, seed=0):
    from tsadbench.execution.estimators import construction_of

    construction = construction_of(estimator)
    return construction.source.load()(**construction.arguments, seed=seed)


def test_densities_local_outlier_factors_and_own_classes_score():
    class Own(OutlierMixin, BaseEstimator):
        def __init__(self, power=1.0):
            self.power = power

        def fit(self, X, y=None):
            self.mean_ = X.mean(axis=0)
            return self

        def decision_function(self, X):
            return -(np.abs(X - self.mean_).sum(axis=1) ** self.power)

    found = records(
        [
            KernelDensity(bandwidth=0.5),
            GaussianMixture(n_components=2),
            make_pipeline(FunctionTransformer(np.abs), LocalOutlierFactor(n_neighbors=5)),
            Own(power=2.0),
        ],
        seeds=1,
    )
    assert {key[0].partition(" #")[0].rstrip("]") for key in found} == {
        "estimator[of=KernelDensity(bandwidth=0.5)",
        "estimator[of=GaussianMixture(n_components=2)",
        "estimator[of=FunctionTransformer(func=absolute) > LocalOutlierFactor(n_neighbors=5)",
        "estimator[of=Own(power=2.0)",
    }
    assert {one.status for one in found.values()} == {"ok"}
    assert min(one.splits["overall"].metrics["auroc"] for one in found.values()) > 0.9


PLAIN = """
import numpy as np

class Plain:
    def __init__(self, power: float = 1.0, window=None, random_state=None):
        self.power, self.chance = power, np.random.default_rng(random_state)

    def fit(self, X, y=None):
        self.noise = 1e-3 * self.chance.random(X.shape[1])
        return self

    def decision_function(self, X):
        return -np.abs(X + self.noise).sum(axis=1) ** self.power
"""


def test_a_class_in_scikit_learns_manner_is_named_like_a_detector(tmp_path):
    name = f"{tmp_path}/plain.py:Plain"
    Path(tmp_path, "plain.py").write_text(PLAIN)
    found = records(f"{name}[power=2]", seeds=2)
    assert {(key, one.status) for key, one in found.items()} == {
        (("plain.py:Plain[power=2.0]", seed), "ok") for seed in (0, 1)
    }
    made, rows = load_detector(name), DATA.dataset.test[0]
    by_hand = np.abs(rows.values + 1e-3 * np.random.default_rng(3).random(rows.n_sensors)).sum(axis=1) ** 2
    np.testing.assert_array_equal(made(power=2.0, seed=3).fit(DATA.dataset.train).score(rows), by_hand)
    assert {one.status for one in tsadbench.check(name, only=["copies", "constructor", "seed"])} == {"pass"}


SCRIPT = """
    import json
    from sklearn.neighbors import KernelDensity
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer
    from tests.helpers.data import make_data
    from tsadbench.execution.plan import make_plan
    from tsadbench.execution.identity import identity
    from tsadbench.execution.request import RunRequest

    if __name__ == "__main__":
        functions = {"minus": lambda x: x - 1, "minus two": lambda x: x - 2}
        pipes = {
            **{name: make_pipeline(FunctionTransformer(one), KernelDensity()) for name, one in functions.items()},
            "wide": KernelDensity(bandwidth=2.0),
            "narrow": KernelDensity(bandwidth=1.0),
        }
        plan = make_plan(RunRequest(detectors=list(pipes.values()), datasets=[make_data()], floors=False))
        print(json.dumps([identity(trial, plan).trial for trial in plan.trials]))
"""


@pytest.mark.long  # two processes with different hash seeds
def test_the_identity_is_the_same_in_every_process(tmp_path):
    (tmp_path / "script.py").write_text(textwrap.dedent(SCRIPT), encoding="utf-8")
    found = []
    for hash_seed in ("1", "2"):
        env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "PYTHONHASHSEED": hash_seed}
        done = subprocess.run(
            [sys.executable, "script.py"], cwd=tmp_path, env=env, capture_output=True, text=True, check=True
        )
        found.append(json.loads(done.stdout))
    assert [len(set(trials)) for trials in found] == [4, 4]
    assert found[0][2:] == found[1][2:]  # a lambda may be another function in another process


@pytest.mark.parametrize(
    ("detector", "name"),
    [
        (LinearRegression(), "LinearRegression"),
        (make_pipeline(StandardScaler(), KMeans()), "KMeans"),
        (IsolationForest, r"IsolationForest\(\)"),
        (object(), "object"),
    ],
)
def test_other_objects_are_refused(detector, name):
    with pytest.raises(UsageError, match=f"^detectors: .*{name}"):
        tsadbench.run(detector, DATA)
