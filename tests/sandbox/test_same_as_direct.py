"""The box changes nothing: scores are equal to the bit to those of the same detector called directly."""

from __future__ import annotations

import pytest
from numpy.testing import assert_array_equal

from tests.helpers.plans import make_plan
from tsadbench.base.dataset import Dataset, LabelledDataset, Labels
from tsadbench.execution.trial import run_trial
from tsadbench.registry import entries, load_detector
from tsadbench.testing.synthetic import PRIOR, normal
from tsadbench.utils.threads import limit_threads

SHIPPED = [entry.name for entry in entries("detectors") if entry.package == "tsadbench"]


@pytest.fixture(scope="module")
def plant() -> LabelledDataset:
    test = normal(300, seed=3, name="test")
    splits = {"overall": ("test",)}
    dataset = Dataset("plant", (normal(400, 1, "one"), normal(400, 2, "two")), (test,), splits, prior=PRIOR)
    return LabelledDataset(dataset, Labels({"test": test.values[:, 0] > 11.0}, splits))


@pytest.mark.parametrize("name", SHIPPED)
def test_boxed_and_direct_scores_are_equal(plant, name):
    detector = load_detector(name)(**load_detector(name).test_params())
    plan = make_plan([detector], dataset=plant, seeds=1, floors=False)
    outcome = run_trial(plan.trials[0], plan)
    assert outcome.record.status == "ok", outcome.record.reason
    limit_threads(1)
    direct = plan.trials[0].contender.seeded(0).construct().fit(plant.dataset.train)
    assert_array_equal(outcome.scores["test/all/test"], direct.score(plant.dataset.test[0]))
    for recording, scores in zip(plant.dataset.train, direct.training_scores(plant.dataset.train), strict=True):
        assert_array_equal(outcome.scores[f"train/all/{recording.id}"], scores)
