"""Every class of the two libraries that can be run keeps the contract, or fails what its table says.

``tsadbench check`` runs the whole suite on any of them, which took minutes for all. Here it is run on some of every
kind, and what a foreign class is most likely to break is tried on each.
"""

from __future__ import annotations

import random

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from tsadbench.registry import load_detector, load_library
from tsadbench.testing import check_detector, normal, with_fault
from tsadbench_detectors.adapters.known import Known
from tsadbench_detectors.adapters.pyod_classes import CLASSES as PYOD
from tsadbench_detectors.adapters.sklearn import CLASSES as SKLEARN

# Warnings are the libraries' own affair: they go to the trial's log.
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]

TABLES = {"pyod": PYOD, "sklearn": SKLEARN}
KNOWN = {f"{family}:{name}": known for family, table in TABLES.items() for name, known in table.items()}
# What can be loaded here: two need packages that are no extra of ours.
RUNNABLE = {name: one for name, one in KNOWN.items() if not (one.refusal or one.note.startswith("needs the package"))}
FAILING = {name: [check for check, _ in one.fails] for name, one in RUNNABLE.items() if one.fails}

TRAIN = (normal(100, 1), normal(60, 101))
FAULTY, LABELS = with_fault(normal(60, 1002), 30, 45)


@pytest.mark.parametrize("name", RUNNABLE)
def test_each_is_honest(name):
    cls = load_detector(name)
    detector = cls(**cls.test_params())
    before = random.getstate(), str(np.random.get_state())
    scores = detector.fit(TRAIN).score(FAULTY)
    assert before == (random.getstate(), str(np.random.get_state())), "it moves the global generators"

    size = 1e-5 * (1 + np.median(np.abs(scores)))
    np.testing.assert_allclose(detector.score(FAULTY.rows(0, 25)), scores[:25], atol=size, err_msg="it looks ahead")
    np.testing.assert_allclose(detector.score(FAULTY.rows(20, 60)), scores[20:], atol=size, err_msg="it looks back")
    np.testing.assert_array_equal(detector.score(FAULTY), scores, err_msg="scoring changes it")
    np.testing.assert_array_equal(cls(**cls.test_params()).fit(TRAIN).score(FAULTY), scores, err_msg="fits differ")

    if "fault" not in FAILING.get(name, ()):
        assert roc_auc_score(LABELS, scores) > 0.7
    if "training-scores" not in FAILING.get(name, ()):
        assert np.mean(scores[~LABELS] > np.concatenate(detector.training_scores(TRAIN)).max()) < 0.5


@pytest.mark.parametrize(
    "name", [name for name in RUNNABLE if "seed" in load_detector(name)().get_params() and name != "pyod:AnoGAN"]
)
def test_another_seed_gives_other_scores_where_there_is_chance(name):
    cls = load_detector(name)
    one, two = (cls(**cls.test_params(), seed=seed) for seed in (1, 2))
    differ = not np.allclose(one.fit(TRAIN).score(FAULTY), two.fit(TRAIN).score(FAULTY), rtol=1e-5)
    assert differ == one.declared_traits().stochastic


@pytest.mark.parametrize(("name", "check"), [(name, check) for name, checks in FAILING.items() for check in checks])
def test_a_failure_in_the_table_is_one(name, check):
    (result,) = check_detector(load_detector(name), only=[check], on_fail=None)
    assert result.status == "fail"


@pytest.mark.parametrize("name", ["pyod:KNN", "pyod:LODA", "sklearn:LocalOutlierFactor"])
def test_some_of_every_kind_pass_the_whole_suite(name):
    check_detector(load_detector(name))


def test_windows_pass_the_whole_suite():
    check_detector(load_detector("pyod:KNN")(window=4))


@pytest.mark.parametrize("name", ["ALAD", "CD", "COF", "ROD", "VAE"])
def test_who_is_refused_for_a_leak_has_one(name):
    """Made without its table's refusal, it gives a row other scores where other rows stand beside it."""
    family = load_library("pyod")
    cls = family._detector_of(family._imported(name), Known(global_chance=True))
    detector = cls(**cls.test_params()).fit(TRAIN)
    together, beside_others = detector.score(FAULTY)[20:], detector.score(FAULTY.rows(20, 60))
    assert not np.allclose(together, beside_others, rtol=1e-4)
