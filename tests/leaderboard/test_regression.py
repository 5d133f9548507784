"""`tsadbench regress` passes for an unchanged detector and fails for a changed one."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.helpers.cards import CARD, frame
from tsadbench.base.replay import Replay
from tsadbench.execution.record import Record
from tsadbench.leaderboard.board import Leaderboard
from tsadbench.leaderboard.regression import compared, quick, read_baselines, to_junit
from tsadbench_protocols.metrics import METRICS

pytestmark = pytest.mark.slow

DETECTOR = '''
import numpy as np
from tsadbench import Detector, Traits

class Mine(Detector):
    """Distance to the mean."""
    def __init__(self, *, power: float = 1.0):
        self.power = power
    def _fit(self, recordings):
        self.mean_ = np.concatenate([one.values for one in recordings]).mean(axis=0)
    def _score(self, recording):
        return (np.abs(recording.values - self.mean_) ** POWER).sum(axis=1)

class Noisy(Mine):
    """The same and noise."""
    traits = Traits(stochastic=True)
    def __init__(self, *, power: float = 1.0, seed: int = 0):
        super().__init__(power=power)
        self.seed = seed
    def _fit(self, recordings):
        super()._fit(recordings)
        self.mean_ = self.mean_ + np.random.default_rng(self.seed).normal(size=self.mean_.shape) * 0.1
'''

UNCHANGED = DETECTOR.replace("POWER", "1.0")


@pytest.fixture(scope="module")
def committed(tmp_path_factory) -> Path:
    """A user's repository: a detector, a data set card, and the committed leaderboard of both."""
    folder = tmp_path_factory.mktemp("repository")
    for part, name, seed, faults in (("train", "a", 0, None), ("test", "c", 2, (40, 50)), ("test", "d", 3, (60, 99))):
        (folder / "plant" / part).mkdir(parents=True, exist_ok=True)
        frame(200, seed=seed, faults=faults).to_csv(folder / "plant" / part / f"{name}.csv", index=False)
    (folder / "plant/card.toml").write_text(CARD)
    (folder / "mine.py").write_text(UNCHANGED)
    made = program(
        "run", "-d", f"{folder}/mine.py:Mine", "-d", f"{folder}/mine.py:Noisy", "-d", "max-z", "--no-floors",
        "--dataset", folder / "plant/card.toml", "--out", folder / "runs",
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    written = program("leaderboard", folder / "runs", "--write", folder / "leaderboards")
    assert written.returncode == 0, written.stderr
    return folder


@pytest.fixture
def repository(committed) -> Iterator[Path]:
    """The repository of `committed`, whose detector a test may change."""
    yield committed
    (committed / "mine.py").write_text(UNCHANGED)


def program(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command in a new process, so that it imports the changed detector."""
    command = [sys.executable, "-m", "tsadbench", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)


def regress(repository: Path, *more: object) -> subprocess.CompletedProcess[str]:
    card = repository / "plant/card.toml"
    # A record names a file without its folder, so run in that folder.
    return program("regress", "--baseline", repository / "leaderboards", "--dataset", card, *more, cwd=repository)


def test_an_unchanged_detector_holds(repository, tmp_path):
    junit = tmp_path / "out/junit.xml"
    done = regress(repository, "--junit", junit)
    assert done.returncode == 0, done.stderr + done.stdout
    n_rows = 3
    assert f"| plant | strict | {n_rows} | {len(METRICS) * n_rows} | 0 |" in done.stdout
    suite = ElementTree.parse(junit).getroot()[0]
    assert suite.attrib == {"name": "plant.strict", "tests": str(n_rows), "failures": "0"}
    assert len(suite) == n_rows


def test_a_changed_detector_fails(repository, tmp_path):
    (repository / "mine.py").write_text(DETECTOR.replace("POWER", "3.0"))
    junit = tmp_path / "junit.xml"
    done = regress(repository, "--junit", junit, "--detector", "mine.py:Mine")
    assert done.returncode == 1, done.stdout
    broken = [line for line in done.stdout.splitlines() if ":Mine |" in line]
    assert broken
    failures = ElementTree.parse(junit).getroot().findall(".//failure")
    assert failures
    assert all(re.search(r"^ *\w+( +-?\d+\.\d+){3}$", str(failure.text), re.M) for failure in failures)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["--baseline", "{repository}/plant"], "records.jsonl"),
        (["--baseline", "{repository}/leaderboards", "--protocol", "skab"], "leaderboards"),
    ],
)
def test_wrong_baselines(repository, tsadbench, arguments, name):
    found = tsadbench("regress", *[one.format(repository=repository) for one in arguments])
    assert (found.code, name in found.err) == (2, True)


def test_failed_trials_are_no_baseline(repository, tsadbench, tmp_path):
    (baseline,) = read_baselines(repository / "leaderboards")
    failed = [replace(one, status="error", reason="it crashed", splits={}, thresholds=()) for one in baseline]
    Leaderboard.from_records(failed).write(tmp_path)
    found = tsadbench("regress", "--baseline", tmp_path)
    assert (found.code, str(tmp_path) in found.err.replace("\n", "")) == (2, True)


class TestTolerance:
    """The tolerance of each kind of detector, computed by hand."""

    @pytest.fixture
    def baseline(self, repository) -> tuple[Record, ...]:
        (found,) = read_baselines(repository / "leaderboards")
        return found

    def moved(self, baseline: tuple[Record, ...], label: str, by: float, seeds: int = 5) -> bool:
        """Whether the AUROC cell of a row still holds after each of its trials has moved ``by`` this much."""
        records = []
        for record in baseline:
            if record.label.endswith(label) and record.seed < seeds:
                split = record.splits["overall"]
                auroc = split.metrics["auroc"]
                assert auroc is not None
                metrics = {**split.metrics, "auroc": auroc + by}
                record = replace(record, splits={**record.splits, "overall": replace(split, metrics=metrics)})
            elif record.label.endswith(label):
                continue
            records.append(record)
        cells = compared(baseline, records)
        of_row = cells["detector"].str.endswith(label) & (cells["metric"] == "auroc") & (cells["split"] == "overall")
        return bool(cells.loc[of_row, "holds"].item())

    def test_of_a_deterministic_detector(self, baseline):
        assert self.moved(baseline, ":Mine", 0.9e-4)
        assert not self.moved(baseline, ":Mine", 1.1e-4)

    def test_of_one_that_does_not_forget(self, baseline):
        forgetful = Replay(copy="restored", rows=600, unbounded=True, correlation=0.2)
        records = tuple(replace(record, replay=forgetful) for record in baseline)
        assert self.moved(records, ":Mine", 4.9e-3)
        assert not self.moved(records, ":Mine", 5.1e-3)

    def test_of_a_stochastic_one(self, baseline):
        frame = Leaderboard.from_records(baseline).frame
        std = frame.loc[frame["detector"].str.endswith(":Noisy") & (frame["split"] == "overall"), "auroc_std"].item()
        allowed = 3 * std * math.sqrt(1 / 5 + 1 / 5) + 0.001
        assert self.moved(baseline, ":Noisy", allowed - 1e-6)
        assert not self.moved(baseline, ":Noisy", allowed + 1e-6)
        assert not self.moved(baseline, ":Noisy", -allowed - 1e-6)

    def test_what_is_missing_does_not_hold(self, baseline):
        cells = compared(baseline, [])
        assert len(cells)
        assert not cells.loc[cells["baseline"].notna(), "holds"].any()
        assert 'failures="3"' in to_junit(cells)

    def test_the_quick_set_is_what_was_cheap(self, baseline):
        (mine,) = {one.label for one in baseline if one.label.endswith(":Mine")}
        dear = tuple(replace(one, fit_cpu_seconds=100.0) if one.label == mine else one for one in baseline)
        labels = {one.label for one in quick(dear)}
        assert labels == {one.label for one in baseline} - {mine}
