"""What all tests share: a small data set with a known answer, and the folder of SKAB."""

from __future__ import annotations

import signal
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import settings
from packaging.version import Version

from tests.helpers import tiny
from tests.helpers.browser import browser  # noqa: F401 - one for a process: Playwright starts once
from tests.helpers.data import make_data
from tests.helpers.packages import write_package
from tests.helpers.published import published_folder, real
from tsadbench import registry
from tsadbench.base.dataset import LabelledDataset
from tsadbench.cli.app import main

# How long an example takes says more about what else the machine does than about the code.
settings.register_profile("tsadbench", deadline=None, max_examples=35)
settings.load_profile("tsadbench")


def pytest_sessionstart() -> None:
    """Make older releases of pandas read floats exactly, as newer ones do by default."""
    if Version(pd.__version__) < Version("3.1"):
        pd.read_csv.__kwdefaults__["float_precision"] = "round_trip"


# Approximate seconds of a test, by marker; ``slow(20)`` gives its own number.
_SECONDS = {"cluster": 8.0, "processes": 1.5, "slow": 1.0, "browser": 1.0, "training": 3.0, "skab": 0.5}


def _seconds(mark: pytest.Mark) -> float:
    return float(mark.args[0]) if mark.name == "slow" and mark.args else _SECONDS.get(mark.name, 0.0)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run long files first: a worker gets a whole file, and a long one at the end would keep a single worker busy."""
    seconds: Counter[Path] = Counter()
    for item in items:
        seconds[item.path] += max([0.05, *map(_seconds, item.iter_markers())])
    items.sort(key=lambda item: -seconds[item.path])


def pytest_configure() -> None:
    """Restore SIGINT, which shells ignore for background jobs, so that processes of tests can be interrupted."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _other_packages() -> Iterator[None]:
    """Forget the entry points of packages that a test has installed."""
    yield
    registry._group.cache_clear()


@pytest.fixture
def small_data() -> LabelledDataset:
    return make_data()


@pytest.fixture
def tiny_plugin(tmp_path_factory, monkeypatch) -> None:
    """Registers ``distance``, ``noisy``, ``everything`` and the floor ``largest`` of `tests.helpers.tiny`."""
    folder = tmp_path_factory.mktemp("tiny_plugin")
    write_package(folder, "tiny_plugin", tiny.ENTRY_POINTS, "")
    monkeypatch.syspath_prepend(folder)


@pytest.fixture(scope="session")
def skab_directory() -> Path:
    """The folder that holds skab/. Without one, the test is skipped with a message; in CI it fails."""
    return published_folder("skab")


@pytest.fixture(scope="session")
def skab() -> LabelledDataset:
    """SKAB from its published files; without them, the test is skipped or fails as with `skab_directory`."""
    return real("skab")


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str


@pytest.fixture
def tsadbench(monkeypatch, capsys):
    """Runs the command line in this process, and returns its exit code and what it printed."""

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
