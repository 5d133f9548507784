"""Runs committed leaderboards again from Python, with T-squared because it is quick."""

from __future__ import annotations

from pathlib import Path

import pytest

from tsadbench.execution.runner import run_plan
from tsadbench.leaderboard.regression import run_again

LEADERBOARDS = Path(__file__).parents[2] / "leaderboards"


def test_every_cell_of_a_detector_holds_when_it_runs_again():
    plans = []

    def run(plan):
        plans.append(plan)
        return run_plan(plan, None)

    cells, _ = run_again(LEADERBOARDS, run=run, detectors=["t2"], datasets=["pumploop"])
    (plan,) = plans
    labels = ["t2", "t2[mean=10,shrinkage=on]", "t2[mean=10]"]
    assert [(trial.contender.label, trial.seed) for trial in plan.trials] == [(label, 0) for label in labels]
    assert {*cells["dataset"]} == {"pumploop"}
    assert {*cells["detector"]} == {*labels}
    assert {"auroc", "auprc", "mcc"} <= {*cells.loc[cells["found"].notna(), "metric"]}
    assert cells["holds"].all()


@pytest.mark.skab
def test_a_row_runs_again_with_its_own_seeds(skab_directory):
    """Under ``skab``, networks ran with one seed, the floor with five; a mean over five must not meet a single seed."""
    trials = []

    def run(plan):
        trials.extend((trial.contender.label, trial.seed) for trial in plan.trials)
        return ()

    run_again(LEADERBOARDS, run=run, detectors=["vanilla-ae", "random"], protocols=["skab"], directory=skab_directory)
    assert sorted(trials) == [*(("random", seed) for seed in range(5)), ("vanilla-ae", 0)]
