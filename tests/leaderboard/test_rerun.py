"""Runs committed leaderboards again from Python."""

from __future__ import annotations

from pathlib import Path

import pytest

from tsadbench.leaderboard.regression import run_again

LEADERBOARDS = Path(__file__).parents[2] / "leaderboards"


@pytest.mark.skab
def test_a_row_runs_again_with_its_own_seeds(skab_directory):
    """Under ``skab``, networks ran with one seed, the floor with five; a mean over five must not meet a single seed."""
    trials = []

    def run(plan):
        trials.extend((trial.contender.label, trial.seed) for trial in plan.trials)
        return ()

    run_again(LEADERBOARDS, run=run, detectors=["vanilla-ae", "random"], protocols=["skab"], directory=skab_directory)
    assert sorted(trials) == [*(("random", seed) for seed in range(5)), ("vanilla-ae", 0)]
