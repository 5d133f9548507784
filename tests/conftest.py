"""What all tests share: a small data set with a known answer, and where SKAB lies."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tsadbench import Dataset, Labels, Recording
from tsadbench.base.dataset import LabelledDataset
from tsadbench.cli import main

SENSORS = ("a", "b", "c")


def pytest_configure() -> None:
    """Let processes that tests start be interrupted, even where these tests run in a shell's background."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def make_data(seed: int = 0, n_rows: int = 200) -> LabelledDataset:
    """Two training and three test recordings of noise; rows 100-139 of each test recording are shifted by 8."""
    rng = np.random.default_rng(seed)

    def recording(name: str, fault: bool) -> Recording:
        values = rng.normal(size=(n_rows, len(SENSORS)))
        if fault:
            values[100:140] += 8.0
        return Recording(name, values, SENSORS, time=np.arange(n_rows, dtype=float))

    labels = np.zeros(n_rows, dtype=bool)
    labels[100:140] = True
    splits = {"overall": ("f1", "f2", "g1"), "f": ("f1", "f2"), "g": ("g1",)}
    dataset = Dataset(
        name="small",
        train=(recording("n1", fault=False), recording("n2", fault=False)),
        test=tuple(recording(name, fault=True) for name in splits["overall"]),
        splits=splits,
    )
    return LabelledDataset(dataset, Labels({name: labels.copy() for name in splits["overall"]}, splits))


@pytest.fixture
def small_data() -> LabelledDataset:
    return make_data()


@pytest.fixture(scope="session")
def skab_directory() -> Path:
    """The folder that holds skab/; tests that need it skip loudly where there is none, but never in CI."""
    found = os.environ.get("TSADBENCH_DATA")
    if found and (Path(found) / "skab").is_dir():
        return Path(found)
    message = "SKAB is not here: set TSADBENCH_DATA to the folder that holds skab/"
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str


@pytest.fixture
def tsadbench(monkeypatch, capsys):
    """Runs the command line as a user does, but in this process: what it printed, and its exit code."""

    def call(*arguments: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["tsadbench", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        printed = capsys.readouterr()
        return Done(code, printed.out, printed.err)

    return call
