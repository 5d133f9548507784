"""`tsadbench.run` on classes of scripts, in real processes: from standard input, and with changing variables."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tsadbench.execution.store import Store
from tsadbench.sandbox.description import UNKNOWN_SOURCE

CLASS = """
from __future__ import annotations

from pathlib import Path

import numpy as np
import tsadbench

SIGN = 1.0

class Mean(tsadbench.Detector):
    traits = tsadbench.Traits(family="statistics")

    def __init__(self, *, power: float = 1.0, notes: Path | None = None) -> None:
        self.power = power
        self.notes = notes

    def _fit(self, recordings):
        self.mean_ = np.concatenate([one.values for one in recordings]).mean(axis=0)

    def _score(self, recording):
        return SIGN * np.abs(recording.values - self.mean_).sum(axis=1) ** self.power
"""
RUN = """
board = tsadbench.run(Mean, "pumploop", floors=False, out="runs", settings=["__main__:Mean.power=2"])
print(board.to_frame()["status"].iloc[0])
"""


def output(folder: Path, text: str, *arguments: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, *arguments], input=text, text=True, capture_output=True, cwd=folder, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout.split()


@pytest.mark.long  # three interpreters
def test_a_script_from_standard_input_keeps_trials_that_no_later_run_takes_for_done(tmp_path, tsadbench):
    store = tmp_path / "runs"
    assert output(tmp_path, CLASS + RUN, "-") == ["ok"]
    (first,) = Store.open(store).records()
    assert (first.label, first.parameters) == ("__main__:Mean[power=2.0]", {"power": 2.0, "notes": None})
    assert output(tmp_path, CLASS + RUN, "-") == ["ok"]
    again, *others = Store.open(store).records()
    assert again == first
    if not first.note:  # a later Python may keep the text of standard input, as it keeps a notebook's cells
        assert not others
        return
    (second,) = others
    assert first.note == second.note == UNKNOWN_SOURCE
    assert first.scoring != second.scoring
    assert UNKNOWN_SOURCE in tsadbench("leaderboard", store).out
    assert tsadbench("verify", store).code == 0


@pytest.mark.parametrize("from_file", [False, pytest.param(True, marks=pytest.mark.long)])
def test_a_variable_that_changes_between_runs_makes_another_trial_with_other_scores(tmp_path, from_file):
    """A run must not replace the methods of the class with copies, which would freeze their variables."""
    text = f"""{CLASS}
score = Mean._score
scored = []
for SIGN in (1.0, -1.0, 1.0):
    board = tsadbench.run(Mean, "pumploop", floors=False, out="runs")
    scored.append(board.to_frame()["auroc_mean"].iloc[0])
print(score is Mean._score, scored[0] == scored[2], abs(scored[0] + scored[1] - 1) < 1e-9)
"""
    (tmp_path / "script.py").write_text(text)
    assert output(tmp_path, text, "script.py" if from_file else "-") == ["True", "True", "True"]
    records = Store.open(tmp_path / "runs").records()
    assert len(records) == (3 if records[0].note else 2)  # without its source, no trial counts as done


@pytest.mark.processes
def test_python_in_the_folder_above_a_clone_finds_the_package_not_the_clones_folder(tmp_path):
    (tmp_path / "tsadbench").mkdir()
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-c", "import tsadbench; print(tsadbench.run.__name__)"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("run\n", "")
