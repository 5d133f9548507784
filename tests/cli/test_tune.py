"""``tsadbench tune`` as a user calls it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import optuna
import psutil
import pytest

from tests.helpers.cards import CARD, frame
from tests.helpers.processes import boxes

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def card(tmp_path_factory) -> Path:
    """A plant of one training and one test recording."""
    folder = tmp_path_factory.mktemp("plant")
    for part, seed, faults in (("train", 0, None), ("test", 1, (40, 60))):
        (folder / part).mkdir()
        frame(300, seed=seed, faults=faults).to_csv(folder / part / "a.csv", index=False)
    (folder / "card.toml").write_text(CARD)
    return folder / "card.toml"


@pytest.mark.slow
def test_it_tunes_goes_on_and_writes_what_run_takes(tsadbench, tmp_path, card):
    arguments = ("tune", "-d", "t2", "--dataset", card, "--out", tmp_path)
    done = tsadbench(*arguments, "--trials", 2)
    assert done.code == 0, done.err
    assert "[2/2] trial 1:" in done.err
    assert "points: 2 complete" in done.err
    (file,) = tmp_path.glob("*.toml")
    assert str(file) in done.err
    tuned = tomllib.loads(file.read_text())
    assert tuned["detectors"] == [tuned["tuned"]["label"]]
    assert tuned["datasets"] == [str(card)]
    for part in ("mean AUPRC on planted faults", "defaults", "best", "broken-coupling", tuned["tuned"]["label"]):
        assert part in done.out
    again = tsadbench(*arguments, "--trials", 3)
    assert "[3/3] trial 2:" in again.err
    assert "trial 1:" not in again.err
    assert tomllib.loads(file.read_text())["tuned"]["trials"] == 3


FAILS = """
from tsadbench import Detector, Traits
from tsadbench.base.search_space import IntegerRange

class Fails(Detector):
    traits = Traits(memory=0)
    def __init__(self, *, depth: int = 1):
        self.depth = depth
    @classmethod
    def search_space(cls):
        return {%s: IntegerRange(1, 4)}
    def _fit(self, recordings):
        raise ValueError("no luck")
    def _score(self, recording):
        raise AssertionError
"""


def test_where_every_point_fails_the_reason_is_told_and_nothing_is_written(tsadbench, tmp_path, card):
    (tmp_path / "fails.py").write_text(FAILS % "'depth'")
    out = tmp_path / "out"
    done = tsadbench("tune", "-d", f"{tmp_path}/fails.py:Fails", "--dataset", card, "--trials", 2, "--out", out)
    assert done.code == 1
    assert "points: 2 error" in done.err
    assert "error: ValueError: no luck" in done.err
    assert "Traceback" not in done.err
    assert not list(out.glob("*.toml"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "--detector is missing"),
        (("-d", "nothing"), "there is no detector 'nothing'"),
        (("-d", "max-z"), "declares no search space"),
        (("-d", "t2", "--objective", "heldout"), "has no held-out loss"),
        (("-d", "t2[smoothing=3]"), "nothing is left to search"),
        (("-d", "t2", "--trials", "0"), "--trials must be at least 1, found 0"),
        (("-d", "t2", "--folds", "1"), "--folds must be at least 2, found 1"),
        (("-d", "t2", "--jobs", "0"), "--jobs must be at least 1"),
        (("-d", "t2", "--timeout", "-1"), "--timeout must be positive"),
        (("-d", "t2", "--folds", "30"), "take fewer --folds"),
        (("-d", "t2", "--out", "DATA/train/out"), "lies in the data's folder"),
        (("-d", "t2", "--storage", "nonsense"), "--storage: expected a URL"),
        (("-d", "t2", "--storage", "sqlite:////proc/no/x"), "cannot be written"),
        (("-d", "t2", "--out", "/proc/no"), "cannot be written"),
        (("report", "--seeds", "0"), "--seeds must be at least 1"),
        (("report", "--trials", "0"), "--trials must be at least 1"),
    ],
)
def test_a_wrong_option_is_one_line(tsadbench, card, arguments, said):
    command = ("tune", *arguments) if arguments[:1] == ("report",) else ("tune", "--dataset", card, *arguments)
    done = tsadbench(*(str(one).replace("DATA", str(card.parent)) for one in command))
    assert done.code == 2
    assert said in done.err
    assert len(done.err.strip().splitlines()) <= 2
    assert "Traceback" not in done.err


def test_a_class_whose_space_names_no_parameter_is_refused(tsadbench, tmp_path, card):
    (tmp_path / "fails.py").write_text(FAILS % "'width'")
    done = tsadbench("tune", "-d", f"{tmp_path}/fails.py:Fails", "--dataset", card, "--out", tmp_path)
    assert done.code == 2
    assert "search_space names 'width'" in done.err


def test_without_optuna_the_pip_command_is_named(tmp_path, card):
    code = (
        "import sys; sys.modules['optuna'] = None; from tsadbench.cli import main; "
        f"sys.argv = ['tsadbench', 'tune', '-d', 't2', '--dataset', {str(card)!r}, '--out', {str(tmp_path)!r}]; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 2
    assert "pip install 'tsadbench[tune]'" in done.stderr
    assert "Traceback" not in done.stderr


def begun(storage):
    """Say whether a study in this storage has begun a point."""
    try:
        return any(study.n_trials for study in optuna.get_all_study_summaries(storage))
    except Exception:  # its tables are being made
        return False


@pytest.mark.processes
def test_an_interrupt_keeps_what_had_ended_and_leaves_no_process(tmp_path, card):
    storage = f"sqlite:///{tmp_path}/studies.sqlite3"
    arguments = [
        "-d",
        "tests.helpers.tunable:Waits",
        "--storage",
        storage,
        "--dataset",
        str(card),
        "--out",
        str(tmp_path),
    ]
    run = subprocess.Popen(
        [sys.executable, "-m", "tsadbench", "tune", *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])},
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    deadline = time.monotonic() + 300
    while not (begun(storage) and boxes(run.pid)):
        assert run.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    inside = psutil.Process(run.pid).children(recursive=True)
    run.send_signal(signal.SIGINT)
    _, told = run.communicate(timeout=60)
    assert run.returncode == 130
    assert "run the same command to continue" in told
    assert "Traceback" not in told
    _, alive = psutil.wait_procs(inside, timeout=60)
    assert not alive
