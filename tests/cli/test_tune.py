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
        (("-d", "t2", "--timeout", "-1"), "timeout: expected a number greater than 0"),
        (("-d", "t2", "--folds", "30"), "take fewer --folds"),
        (("-d", "t2", "--out", "DATA/train/out"), "lies in the data's folder"),
        (("-d", "t2", "--storage", "nonsense"), "--storage: expected a URL"),
        (("-d", "t2", "--storage", "sqlite:////proc/no/x"), "cannot be written"),
        (("-d", "t2", "--out", "/proc/no"), "cannot be written"),
    ],
)
def test_a_wrong_option_is_one_line(tsadbench, card, arguments, said):
    done = tsadbench("tune", "--dataset", card, *(one.replace("DATA", str(card.parent)) for one in arguments))
    assert done.code == 2
    assert said in done.err
    assert len(done.err.strip().splitlines()) <= 2
    assert "Traceback" not in done.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("detector", "ranges", "holds"),
    [
        (
            "pyod:KNN",
            ("pyod:KNN.n_neighbors=2:20:log", "pyod:KNN.method=mean|median"),
            lambda point: 2 <= point["n_neighbors"] <= 20 and point["method"] in ("mean", "median"),
        ),
        (
            "sklearn:OneClassSVM",
            ("sklearn:OneClassSVM.nu=0.01:0.5:log",),
            lambda point: isinstance(point["nu"], float) and 0.01 <= point["nu"] <= 0.5,
        ),
    ],
    ids=["pyod", "sklearn"],
)
@pytest.mark.slow
def test_detectors_of_other_libraries_are_tuned_over_ranges(tmp_path, card, detector, ranges, holds):
    options = [part for text in ranges for part in ("--range", text)]
    out = tmp_path / "tuning"
    done = in_a_process("tune", "-d", detector, *options, "--dataset", card, "--trials", 3, "--folds", 2, "--out", out)
    assert done.returncode == 0, done.stderr
    assert "points: 3 complete" in done.stderr
    (file,) = out.glob("*.toml")
    tuned = tomllib.loads(file.read_text())["tuned"]
    assert tuned["ranges"] == list(ranges)
    assert holds(tuned["parameters"])
    study = optuna.load_study(study_name=tuned["study"], storage=tuned["storage"])
    assert all(holds(trial.params) for trial in study.trials)


@pytest.mark.slow
def test_another_range_is_another_study_and_the_tuned_file_runs(tsadbench, tmp_path, card):
    arguments = ("tune", "-d", "t2", "--dataset", card, "--folds", 2, "--trials", 2, "--out", tmp_path)
    for text in ("t2.smoothing=2:4", "t2.smoothing=5:9", "t2.smoothing=2:4"):
        done = tsadbench(*arguments, "--range", text)
        assert done.code == 0, done.err
    narrow, wide = sorted(
        (tomllib.loads(file.read_text()) for file in tmp_path.glob("*.toml")), key=lambda one: one["tuned"]["ranges"]
    )
    assert narrow["tuned"]["study"] != wide["tuned"]["study"]
    assert 2 <= narrow["tuned"]["parameters"]["smoothing"] <= 4  # t2 itself declares a space; the range wins
    assert 5 <= wide["tuned"]["parameters"]["smoothing"] <= 9
    assert "[" not in done.err.split("points:")[0]  # no point was measured: the study was complete
    (file,) = tmp_path.glob(f"{wide['tuned']['study']}.toml")
    done = tsadbench(
        "run", "--config", file, "--no-floors", "--seeds", 1, "--out", tmp_path / "runs", "--format", "json"
    )
    assert done.code == 0, done.err
    assert f"smoothing={wide['tuned']['parameters']['smoothing']}" in done.out


def in_a_process(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Call the command line as a shell does."""
    command = [sys.executable, "-m", "tsadbench", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)


KNN = "pyod:KNN"


@pytest.mark.parametrize(
    ("detector", "ranges", "said"),
    [
        (KNN, (), "declares no search space: say what to search, --range pyod:KNN.PARAMETER=LOW:HIGH"),
        (KNN, ("nonsense",), "--range nonsense: expected NAME.parameter=LOW:HIGH"),
        (KNN, (f"{KNN}.p=",), f"--range {KNN}.p=: expected NAME.parameter"),
        (KNN, (f"{KNN}.neighbours=1:5",), "pyod:KNN has no parameter 'neighbours'; did you mean 'n_neighbors'?"),
        (KNN, (f"{KNN}.n_neighbors=50:2",), "expected finite bounds, LOW below HIGH, found 50 and 2"),
        (KNN, (f"{KNN}.radius=1.0:inf",), "radius=1.0:inf: "),
        (KNN, (f"{KNN}.n_neighbors=0:9:log",), "n_neighbors=0:9:log: a logarithmic scale starts above 0, found 0"),
        (KNN, (f"{KNN}.n_neighbors=a:9",), "n_neighbors=a:9: pyod:KNN: parameter 'n_neighbors' cannot be 'a'"),
        (KNN, (f"{KNN}.n_neighbors=1:2.5",), "parameter 'n_neighbors' cannot be '2.5'"),
        (KNN, (f"{KNN}.n_neighbors=1:5:lin",), "expected LOW:HIGH, LOW:HIGH:log or A|B|..., found '1:5:lin'"),
        (KNN, (f"{KNN}.method=mean:median",), "expected numbers as bounds, found 'mean'"),
        (KNN, (f"{KNN}.method=mean",), "found 'mean'"),
        (KNN, (f"{KNN}.method=mean|mean",), "at least two values, each once"),
        (KNN, (f"{KNN}.window=0:3",), "window=0:3: KNN: window must be an integer of at least 1, found 0"),
        (KNN, ("t2.smoothing=1:9",), "--range t2.smoothing=1:9: it is pyod:KNN that is tuned"),
        (KNN, (f"{KNN}.p=1:3", f"{KNN}.p=2:3"), f"--range {KNN}.p=2:3: another range names 'p' as well"),
        (f"{KNN}[p=1]", (f"{KNN}.p=1:3",), "pyod:KNN[p=1] sets 'p': leave out one of the two"),
        ("pyod:IForest", ("pyod:IForest.seed=1:3",), "'seed' is not searched"),
        ("sklearn:OneClassSVM", ("sklearn:OneClassSVM.nu=0:0.5",), "nu=0:0.5: OneClassSVM: The 'nu' parameter"),
    ],
)
def test_a_wrong_range_is_one_line_that_names_it(tsadbench, card, tmp_path, detector, ranges, said):
    options = [part for text in ranges for part in ("--range", text)]
    done = tsadbench("tune", "-d", detector, "--dataset", card, "--out", tmp_path / "out", *options)
    assert done.code == 2
    assert said in done.err
    assert all(f"--range {text}" in done.err for text in ranges[-1:])
    assert len(done.err.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_a_range_whose_losses_nobody_says_can_be_compared_is_refused_for_heldout(tsadbench, card, tmp_path):
    where = f"{ROOT}/tests/helpers/tunable.py:Guess"
    done = tsadbench(
        "tune",
        "-d",
        where,
        "--objective",
        "heldout",
        "--range",
        f"{where}.memory=1:2",
        "--dataset",
        card,
        "--out",
        tmp_path,
    )
    assert done.code == 2
    assert f"--range {where}.memory: " in done.err
    assert "take --objective injection" in done.err


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
