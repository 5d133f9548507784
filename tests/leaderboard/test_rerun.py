"""Committed leaderboards run again from Python: with T-squared, a row of theirs that is quick."""

from __future__ import annotations

from pathlib import Path

import pytest

from tsadbench import UsageError
from tsadbench.execution.runner import run_plan
from tsadbench.leaderboard.rerun import run_again

LEADERBOARDS = Path(__file__).parents[2] / "leaderboards"


def test_every_cell_of_a_detector_holds_when_it_runs_again():
    plans = []

    def run(plan):
        plans.append(plan)
        return run_plan(plan, None)

    cells = run_again(LEADERBOARDS, run=run, detectors=["t2"], datasets=["pumploop"])
    (plan,) = plans
    assert [(trial.contender.label, trial.seed) for trial in plan.trials] == [("t2", 0)]
    assert {(cell.dataset, cell.protocol, cell.label) for cell in cells} == {("pumploop", "strict", "t2")}
    assert {"auroc", "auprc", "mcc"} <= {cell.metric for cell in cells if cell.found is not None}
    assert all(cell.holds for cell in cells)


@pytest.mark.skab
def test_a_row_runs_again_with_its_own_seeds(skab_directory):
    """Under ``skab`` networks have two seeds, the floor five: a mean over five would be held against one over two."""
    trials = []

    def run(plan):
        trials.extend((trial.contender.label, trial.seed) for trial in plan.trials)
        return ()

    run_again(LEADERBOARDS, run=run, detectors=["vanilla-ae", "random"], protocols=["skab"], directory=skab_directory)
    assert sorted(trials) == [*(("random", seed) for seed in range(5)), ("vanilla-ae", 0), ("vanilla-ae", 1)]


def test_nothing_that_fits_is_refused():
    with pytest.raises(UsageError, match="nothing there fits"):
        run_again(LEADERBOARDS, run=lambda plan: (), detectors=["t22"])
