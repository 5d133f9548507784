"""Trials with a fit for each entity: what is run, stored, read again, verified and repeated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.helpers.machines import DISTANCE, MACHINES, NOISY, Made, made_machines
from tests.helpers.plans import make_plan
from tests.helpers.tiny import Distance
from tsadbench.base.dataset import LabelledDataset
from tsadbench.execution.record import Record
from tsadbench.execution.runner import run_plan
from tsadbench.results.trial_result import TrialResult


def plan_for(data: LabelledDataset, *detectors: str, **options):
    return make_plan(list(detectors), dataset=data, floors=False, **options)


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Made:
    return made_machines(tmp_path_factory.mktemp("made"), DISTANCE, NOISY)


def test_scores_are_those_of_a_detector_fitted_on_the_entity_alone(made):
    result = TrialResult(made.records[0], made.store, made.data)
    for machine in MACHINES:
        train = [one for one in made.data.dataset.train if one.id.startswith(f"{machine}/")]
        alone = Distance().fit(train)
        for name in (f"{machine}/1", f"{machine}/2"):
            scored = result.recordings[name]
            np.testing.assert_allclose(scored.scores, alone.score(scored.recording), rtol=1e-12)
            assert scored.episode == machine
            assert scored.contributions.shape == (240, 2)
    assert list(result.recordings) == [one.id for one in made.data.dataset.test]


def test_a_record_has_a_threshold_and_metrics_for_each_entity_and_survives_json(made):
    for record in made.records:
        assert [entry.episode for entry in record.thresholds] == list(MACHINES)
        assert list(record.splits["overall"].entities) == list(MACHINES)
        assert record.rows_scored == 3 * 4 * 240
        assert Record.from_json(record.to_json(), "here") == record


def test_other_entities_are_another_trial_and_one_entity_is_not(made):
    def name(entities):
        data = LabelledDataset(replace(made.data.dataset, entities=entities), made.data.labels)
        (record,) = run_plan(plan_for(data, DISTANCE), None)
        return record.trial

    declared = made.data.dataset.entities
    renamed = {one: f"the {entity}" for one, entity in declared.items()}
    assert len({name(declared), name(renamed), name({})}) == 3
    assert name({}) == name(dict.fromkeys(declared, "plant"))
