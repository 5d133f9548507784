"""`tsadbench fit` and `tsadbench tune` on a data set whose entities have a model each."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.machines import DISTANCE, MACHINES, make_machines
from tests.helpers.plans import make_plan
from tsadbench import fit_model
from tsadbench.errors import UsageError
from tsadbench.execution.trial import run_trial
from tsadbench.tuning.task import Settings, make_task


def test_a_model_is_that_of_the_entity_that_is_named(tmp_path):
    data = make_machines()
    model = fit_model(DISTANCE, data, tmp_path / "beta.model", entity="beta")
    plan = make_plan([DISTANCE], dataset=data, floors=False)
    outcome = run_trial(plan.trials[0], plan)
    (threshold,) = (entry.threshold for entry in outcome.record.thresholds if entry.episode == "beta")
    assert model.card.threshold == threshold
    assert (model.card.n_rows, model.card.manifest["entity"]) == (480, "beta")
    (recording,) = (one for one in data.dataset.test if one.id == "beta/1")
    np.testing.assert_allclose(model.score(recording).scores, outcome.scores["test/beta/beta/1"])


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "fits a detector 3 times, but a model is one fit: choose an entity by --entity: alpha, beta, gamma"),
        ({"entity": "beat"}, "fits no model for 'beat' of machines alone; did you mean 'beta'"),
        ({"entity": "alpha/1", "protocol": "skab", "settings": ["skab.train_rows=90"]}, "fits no model for 'alpha/1'"),
        ({"protocol": "skab", "settings": ["skab.train_rows=90"]}, "choose strict or published"),
    ],
)
def test_which_entity_is_asked_in_one_line(tmp_path, options, told):
    with pytest.raises(UsageError, match=told):
        fit_model(DISTANCE, make_machines(), tmp_path / "x.model", **options)
    assert not list(tmp_path.iterdir())


def test_a_fold_is_of_one_entity(tmp_path):
    plan = make_plan(["tests.helpers.tunable:Guess"], dataset=make_machines(), seeds=1, floors=False)
    folds = make_task(plan, Settings(folds=2, trials=2)).folds()
    assert len(folds) == 2 * len(MACHINES)
    of_each = [{one.id.partition("/")[0] for one in (*fold.train, *fold.held_out)} for fold in folds]
    assert of_each == [{machine} for machine in MACHINES for _ in range(2)]


def test_other_entities_of_the_same_recordings_are_another_study():
    def study(order):
        plan = make_plan(["tests.helpers.tunable:Guess"], dataset=make_machines(order), seeds=1, floors=False)
        return make_task(plan, Settings(folds=2, trials=2)).study

    assert study(("alpha", "beta")) == study(("alpha", "beta"))
    assert study(("alpha", "beta")) != study(("beta", "alpha"))
