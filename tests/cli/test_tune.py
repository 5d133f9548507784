"""``tsadbench tune`` as a user calls it."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.helpers.cards import write_plant


@pytest.fixture(scope="module")
def card(tmp_path_factory) -> Path:
    """A plant of one training and one test recording."""
    return write_plant(tmp_path_factory.mktemp("plant"), 300)


@pytest.mark.slow
def test_it_tunes_continues_and_writes_a_configuration(tsadbench, tmp_path, card):
    arguments = ("tune", "-d", "t2", "--dataset", card, "--out", tmp_path)
    done = tsadbench(*arguments, "--trials", 2)
    assert done.code == 0, done.err
    assert "[2/2] point 1:" in done.err
    assert "points: 2 complete" in done.err
    (file,) = tmp_path.glob("*.toml")
    assert str(file) in done.err
    tuned = tomllib.loads(file.read_text())
    assert tuned["detectors"] == [tuned["tuned"]["label"]]
    assert tuned["datasets"] == [str(card)]
    for part in ("mean AUPRC on injected faults", "defaults", "best", "broken-coupling", tuned["tuned"]["label"]):
        assert part in done.out
    again = tsadbench(*arguments, "--trials", 3)
    assert "[3/3] point 2:" in again.err
    assert "point 1:" not in again.err
    assert tomllib.loads(file.read_text())["tuned"]["trials"] == 3


FAILS = """
from tsadbench import Detector, Traits
from tsadbench.base.search_space import Tune

class Fails(Detector):
    traits = Traits(memory=0)
    def __init__(self, *, depth: int = 1):
        self.depth = depth
    @classmethod
    def search_space(cls):
        return {"depth": Tune(1, 4)}
    def _fit(self, recordings):
        raise ValueError("no luck")
    def _score(self, recording):
        raise AssertionError
"""


def test_if_every_point_fails_the_reason_is_shown_and_nothing_is_written(tsadbench, tmp_path, card):
    (tmp_path / "fails.py").write_text(FAILS)
    out = tmp_path / "out"
    done = tsadbench("tune", "-d", f"{tmp_path}/fails.py:Fails", "--dataset", card, "--trials", 2, "--out", out)
    assert done.code == 1
    assert "points: 2 error" in done.err
    assert "ValueError: no luck" in done.err
    assert "Traceback" not in done.err
    assert not list(out.glob("*.toml"))


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ((), "--detector"),
        (("-d", "nothing"), "nothing"),
        (("-d", "max-z"), "max-z"),
        (("-d", "t2", "--objective", "heldout"), "forecasts"),
        (("-d", "t2[smoothing=3]"), "t2"),
        (("-d", "t2", "--trials", "0"), "--trials"),
        (("-d", "t2", "--timeout", "-1"), "--timeout"),
        (("-d", "t2", "--timeout", "0"), "--timeout"),
        (("-d", "t2", "--storage", "nonsense"), "--storage"),
        (("-d", "t2", "--out", "/proc/no"), "/proc/no"),
    ],
)
def test_a_wrong_option_is_one_line(tsadbench, card, arguments, name):
    done = tsadbench("tune", "--dataset", card, *arguments)
    assert (done.code, "Traceback" in done.err) == (2, False)
    assert name in done.err


@pytest.mark.long  # a process that imports PyOD
def test_detectors_of_other_libraries_are_tuned_over_ranges(tmp_path, card):
    ranges = ("pyod:KNN.n_neighbors=2:20:log", "pyod:KNN.method=mean|median")
    options = [part for text in ranges for part in ("--range", text)]
    out = tmp_path / "tuning"
    command = [sys.executable, "-m", "tsadbench", "tune", "-d", "pyod:KNN", *options, "--dataset", card, "--out", out]
    done = subprocess.run([*map(str, command), "--trials", "3"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (file,) = out.glob("*.toml")
    tuned = tomllib.loads(file.read_text())["tuned"]
    assert tuned["ranges"] == list(ranges)
    assert 2 <= tuned["parameters"]["n_neighbors"] <= 20
    assert tuned["parameters"]["method"] in ("mean", "median")


@pytest.mark.slow
def test_a_range_wins_begins_its_own_study_and_the_tuned_file_runs(tsadbench, tmp_path, card):
    arguments = ("tune", "-d", "t2", "--dataset", card, "--trials", 2, "--out", tmp_path / "tuning", "--range")
    for _ in range(2):
        done = tsadbench(*arguments, "t2.smoothing=2:4")
        assert done.code == 0, done.err
    assert "[" not in done.err.split("points:")[0]  # no point was measured: the study was complete
    (file,) = (tmp_path / "tuning").glob("*.toml")
    tuned = tomllib.loads(file.read_text())["tuned"]
    assert 2 <= tuned["parameters"]["smoothing"] <= 4  # t2 itself declares a space
    refused = tsadbench(*arguments, "t2.smoothing=5:9")
    assert (refused.code, "range" in refused.err) == (2, True)
    done = tsadbench(
        "run", "--config", file, "--no-floors", "--seeds", 1, "--out", tmp_path / "runs", "--format", "json"
    )
    assert done.code == 0, done.err
    assert f"smoothing={tuned['parameters']['smoothing']}" in done.out


SVM = "sklearn:OneClassSVM"


@pytest.mark.parametrize(
    ("detector", "ranges"),
    [
        (SVM, ("nonsense",)),
        (SVM, (f"{SVM}.neighbours=1:5",)),
        (SVM, (f"{SVM}.nu=0.5:0.1",)),
        (SVM, (f"{SVM}.nu=0:0.5:log",)),
        (SVM, (f"{SVM}.kernel=rbf",)),
        (SVM, ("t2.smoothing=1:9",)),
        (SVM, (f"{SVM}.nu=0.1:0.3", f"{SVM}.nu=0.2:0.3")),
        (f"{SVM}[nu=0.1]", (f"{SVM}.nu=0.1:0.3",)),
    ],
)
def test_a_wrong_range_is_one_line_that_names_it(tsadbench, card, tmp_path, detector, ranges):
    options = [part for text in ranges for part in ("--range", text)]
    done = tsadbench("tune", "-d", detector, "--dataset", card, "--out", tmp_path / "out", *options)
    assert (done.code, len(done.err.strip().splitlines())) == (2, 1)
    assert f"--range: {ranges[-1]}" in done.err
    assert not (tmp_path / "out").exists()
