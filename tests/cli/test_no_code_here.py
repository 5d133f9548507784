"""No command that asks about a detector, or runs one, lets its code into this process."""

from __future__ import annotations

import builtins
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.cards import CARD, frame, write
from tests.helpers.packages import write_package
from tests.helpers.plans import make_plan, run_trial
from tests.helpers.tiny import Distance
from tsadbench.execution.trial import IMPORTED

HOSTILE = """
import builtins, os, sys
print("noise on standard output")
print("noise on standard error", file=sys.stderr)
builtins.hostile_was_here = True
for name in ("/tmp", os.path.expanduser("~"), {folder!r}):
    try:
        open(os.path.join(name, "hostile-was-here"), "w").write("x")
    except OSError:
        pass
import tsadbench.base.detector, tsadbench.sandbox.description, tsadbench.utils.parameters
tsadbench.sandbox.description.ask = tsadbench.utils.parameters.parse_label = None

import numpy as np
from tsadbench import Detector, Traits

class Mine(Detector):
    '''What a box tells.'''

    traits = Traits(family="hostile")

    def __init__(self, *, power: float = 2.0) -> None:
        self.power = power

    def _check(self, sensors):
        if self.power < 0:
            raise KeyError("not a message for users")

    def _fit(self, recordings):
        self.mean_ = recordings[0].values.mean(axis=0)

    def _score(self, recording):
        return (np.abs(recording.values - self.mean_) ** self.power).max(axis=1)
"""


@pytest.fixture
def hostile(tmp_path, monkeypatch) -> Path:
    """Registers the detector ``hostile``, and returns its file."""
    folder = tmp_path / "plugin"
    text = HOSTILE.format(folder=str(tmp_path))
    write_package(folder, "hostile_pkg", "[tsadbench.detectors]\nhostile = hostile_pkg:Mine\n", text)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder / "hostile_pkg.py"


def require_nothing_left(tmp_path: Path) -> None:
    assert not [name for name in sys.modules if "hostile_pkg" in name]
    assert not hasattr(builtins, "hostile_was_here")
    assert not [folder for folder in (Path("/tmp"), Path.home(), tmp_path) if (folder / "hostile-was-here").exists()]


@pytest.mark.parametrize("by_file", [False, True])
def test_run_info_list_and_check(tsadbench, tmp_path, hostile, by_file):
    name = f"{hostile}:Mine" if by_file else "hostile"
    run = tsadbench("run", "-d", f"{name}[power=3]", "--dataset", "pumploop", "--no-floors", "--format", "json",
                    "--out", tmp_path / "runs")  # fmt: skip
    assert run.code == 0, run.err
    (row,) = json.loads(run.out)["rows"][:1]
    label = "hostile_pkg.py:Mine[power=3.0]" if by_file else "hostile[power=3.0]"
    assert (row["label"], row["family"], row["status"]) == (label, "hostile", "ok")
    info = tsadbench("info", name)
    assert (info.code, "What a box tells." in info.out, "power=2.0" in info.out) == (0, True, True)
    check = tsadbench("check", name, "--only", "repeat", "--only", "same-in-box", "--only", "pickle")
    assert (check.code, "no check 'pickle'" in check.err) == (2, True)
    check = tsadbench("check", name, "--only", "repeat", "--only", "same-in-box", "--format", "json")
    assert [one["status"] for one in json.loads(check.out)["checks"]] == ["pass", "pass"], check.out
    fit = tsadbench("fit", "-d", name, "--dataset", "pumploop", "--out", tmp_path / "m.tsad")
    assert (fit.code, "0 later rows" in fit.out) == (0, True)
    if not by_file:
        assert "hostile" in tsadbench("list").out
    for done in (run, info, check, fit):
        assert "noise" not in done.out + done.err
    require_nothing_left(tmp_path)


def test_an_error_of_its_own_check_is_one_line(tsadbench, tmp_path, hostile):
    done = tsadbench("run", "-d", "hostile[power=-1]", "--dataset", "pumploop", "--out", tmp_path / "runs")
    assert (done.code, done.out) == (2, "")
    (line,) = done.err.splitlines()
    assert "KeyError: 'not a message for users' (hostile_pkg.py:" in line
    assert not (tmp_path / "runs").exists()
    require_nothing_left(tmp_path)


def test_a_module_that_ends_its_process_is_one_line(tsadbench, hostile):
    hostile.write_text("import os\nos._exit(7)\n")
    done = tsadbench("info", "hostile")
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)
    assert "exit code 7" in done.err


class Own(Distance):
    """A class of the calling program."""


OWN = """
from tsadbench import Detector, Traits

class Own(Detector):
    traits = Traits(memory=0)
    def _fit(self, recordings): pass
    def _score(self, recording): return recording.values[:, 0]
"""


def test_what_the_caller_has_imported_is_guarded_and_says_why(small_data, tiny_plugin, tmp_path, monkeypatch):
    file = tmp_path / "own.py"
    file.write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("own")
    # Named classes are guarded, too, if the program has imported them, as the tests have "distance".
    for detector in (Own, Own(power=3.0), "distance", "tests.helpers.tiny:Distance", "own:Own", f"{file}:Own"):
        plan = make_plan([detector], dataset=small_data, floors=False)
        record = run_trial(plan.trials[0], plan).record
        assert (record.status, record.seal, record.seal_reason) == ("ok", "guarded", IMPORTED)
    monkeypatch.delitem(sys.modules, "own")


def test_what_is_named_is_as_sealed_as_its_boxes(small_data, tmp_path):
    file = tmp_path / "own.py"
    file.write_text(OWN)
    plan = make_plan(["max-z", f"{file}:Own"], dataset=small_data, floors=False)
    assert [run_trial(trial, plan).record.seal_reason == IMPORTED for trial in plan.trials] == [False, False]


@pytest.mark.long  # eight commands, as a user starts them
def test_no_folder_that_a_command_takes_can_be_imported_from(tmp_path):
    witness = tmp_path / "witness"
    here, card, runs, model, bank = (tmp_path / name for name in ("here", "card", "runs", "model", "bank"))
    code = f"open({str(witness)!r}, 'a').write(__file__)\n"

    def plant(*folders: Path) -> None:
        points = "[tsadbench.detectors]\nstranger = stranger:Mine\n[tsadbench.commands]\nstranger = stranger:app\n"
        for folder in folders:
            write_package(folder, "stranger", points, code)
            for name in ("sitecustomize", "usercustomize", "numpy", "json", "tsadbench"):
                (folder / f"{name}.py").write_text(code)

    def command(*words: object, cwd: Path = here) -> str:
        # -P: as the script `tsadbench` does, and not `python -m`, which imports from the current folder.
        start = [sys.executable, *(["-P"] if cwd == here else []), "-m", "tsadbench"]
        done = subprocess.run([*start, *map(str, words)], cwd=cwd, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    plant(here, card, model)
    files = {"card.toml": CARD, "train/a.csv": frame(), "test/b.csv": frame(seed=1, faults=(20, 30))}
    write(card, {name: one if isinstance(one, str) else one.to_csv(index=False) for name, one in files.items()})
    (here / "own.py").write_text(OWN)
    own, data = ("-d", "own.py:Own"), ("--dataset", card / "card.toml")
    command("run", *own, *data, "--no-floors", "--out", runs)
    command("bank", "build", runs, "--out", bank)
    plant(runs, bank)
    assert "stranger" not in command("leaderboard", runs) + command("list")
    command("verify", runs, "--redo", "1", *own, *data)
    command("judge", bank, *data)
    (tmp_path / "sitecustomize.py").write_text(code)
    command("fit", "-d", "max-z", *data, "--out", model / "max.tsad", cwd=tmp_path)
    command("score", model / "max.tsad", card / "test/b.csv")
    assert not witness.exists(), witness.read_text()
    subprocess.run([sys.executable, "-c", ""], env={**os.environ, "PYTHONPATH": str(here)}, check=True)
    assert "sitecustomize" in witness.read_text()  # the planted files work
