"""Runs as users start them: whole processes over a small data set."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tsadbench.leaderboard.board import COST_COLUMNS

DETECTORS = '''
import time
import numpy as np
from tsadbench import Detector, Traits

class Steady(Detector):
    """Distance to the mean in a random metric; takes as long as it is told to."""
    traits = Traits(stochastic=True)
    def __init__(self, *, seconds: float = 0.0, power: float = 1.0, seed: int = 0):
        self.seconds = seconds
        self.power = power
        self.seed = seed
    def _fit(self, recordings):
        time.sleep(self.seconds)
        rows = np.concatenate([one.values for one in recordings])
        self.mean_ = rows.mean(axis=0)
        self.weights_ = np.random.default_rng(self.seed).random(rows.shape[1])
    def _score(self, recording):
        return (np.abs(recording.values - self.mean_) ** self.power) @ self.weights_
'''


@dataclass
class Plant:
    """A folder with a data set card and detectors, and the commands that run them."""

    folder: Path

    @property
    def runs(self) -> Path:
        return self.folder / "runs"

    def arguments(self, *detectors: str, seeds: int, more: tuple[str, ...] = ()) -> list[str]:
        named = [word for one in detectors for word in ("-d", f"{self.folder}/detectors.py:{one}")]
        card = str(self.folder / "plant/card.toml")
        run = ["run", *named, "--dataset", card, "--no-floors", "--seeds", str(seeds), "--out", str(self.runs)]
        return [*run, "--format", "csv", *more]

    def command(self, *detectors: str, seeds: int, more: tuple[str, ...] = ()) -> list[str]:
        return [sys.executable, "-m", "tsadbench", *self.arguments(*detectors, seeds=seeds, more=more)]

    def start(self, *detectors: str, seeds: int, more: tuple[str, ...] = ()) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(*detectors, seeds=seeds, more=more), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def run(self, *detectors: str, seeds: int, more: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        started = self.start(*detectors, seeds=seeds, more=more)
        out, told = started.communicate(timeout=300)
        return subprocess.CompletedProcess(started.args, started.returncode, out, told)


def table(text: str) -> list[dict[str, str]]:
    """Return the rows of a leaderboard in CSV, without the cost columns, which differ from run to run."""
    rows = list(csv.DictReader(io.StringIO(text)))
    assert rows
    return [{name: cell for name, cell in row.items() if name not in COST_COLUMNS} for row in rows]


def wait_until(condition: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def trials(runs: Path) -> set[str]:
    """Return the names of the trials that a store holds."""
    return {path.stem for path in runs.glob("records/*.json")}
