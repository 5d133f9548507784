"""Another version of a library that a detector uses makes another trial, however the library is imported."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tsadbench.execution.record import Record
from tsadbench.execution.store import Store
from tsadbench.utils.distributions import _by_package, distributions_of, requirements, versions_of

DETECTOR = """
import importlib

import direct
import shared.one
import numpy as np
from tsadbench import Detector, Traits


class Mine(Detector):
    traits = Traits(family="statistics", memory=0)
    libraries = ("hidden",)

    def __init__(self, *, power: float = 1.0):
        self.power = power

    def _fit(self, recordings):
        import inside

        hidden = importlib.import_module("".join(("hid", "den")))
        self.scale_ = direct.SCALE * inside.SCALE * hidden.SCALE * shared.one.SCALE
        self.mean_ = np.concatenate([one.values for one in recordings]).mean(axis=0)

    def _score(self, recording):
        return self.scale_ * np.abs(recording.values - self.mean_).sum(axis=1)
"""


def install(site: Path, name: str, version: str, module: str = "") -> None:
    """Put a distribution of one module where pip would put it; an earlier version of it is replaced."""
    folder = name.replace("-", "_")
    for old in site.glob(f"{folder}-*.dist-info"):
        shutil.rmtree(old)
    path = f"{(module or name).replace('.', '/')}.py"
    (site / path).parent.mkdir(parents=True, exist_ok=True)
    (site / path).write_text("SCALE = 1.0\n")
    info = site / f"{folder}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "RECORD").write_text(f"{path},,\n")


def installed(site: Path, version: str) -> None:
    for name in ("direct", "inside", "hidden"):
        install(site, name, version)
    for name in ("one", "two"):
        install(site, f"shared-{name}", version, f"shared.{name}")


def run(folder: Path) -> tuple[Record, ...]:
    command = "-m tsadbench run -d mine.py:Mine --dataset pumploop --no-floors --out runs"
    done = subprocess.run(
        [sys.executable, *command.split()],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder / "site-packages")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return Store.open(folder / "runs").records()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(DETECTOR)
    (tmp_path / "site-packages").mkdir()
    installed(tmp_path / "site-packages", "1.0")
    return tmp_path


@pytest.mark.long
def test_a_record_keeps_the_versions_of_its_libraries_and_another_version_is_another_trial(folder):
    (first,) = run(folder)
    manifest = first.manifest
    libraries = ("direct", "inside", "shared-one", "shared-two", "hidden")  # two share a namespace
    numbers = {name: manifest["versions"][name] for name in ("python", "tsadbench", "numpy")}
    assert manifest["versions"] == {**numbers, **dict.fromkeys(libraries, "1.0")}
    assert run(folder) == (first,)

    installed(folder / "site-packages", "1.1")
    first_again, second = run(folder)
    assert first_again == first
    assert second.scoring != first.scoring
    assert {second.manifest["versions"][name] for name in libraries} == {"1.1"}


@pytest.mark.parametrize("library", ["inside", "shared-one"])
def test_each_library_alone_is_part_of_the_identity(folder, library, monkeypatch):
    monkeypatch.syspath_prepend(folder / "site-packages")
    _by_package.cache_clear()
    names = ("direct", "inside", "shared")
    before = versions_of(names)
    install(folder / "site-packages", library, "2.0", "shared.one" if library == "shared-one" else "")
    os.utime(folder / "site-packages", ns=(1, 1))
    assert versions_of(names) == {**before, library: "2.0"}
    _by_package.cache_clear()


def test_a_module_without_a_distribution_counts_by_its_code(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "loose_helpers").mkdir()
    (tmp_path / "loose_helpers/__init__.py").write_text("SCALE = 1.0\n")
    before = versions_of(["loose_helpers"])
    assert before["loose_helpers"].startswith("source ")
    (tmp_path / "loose_helpers/__init__.py").write_text("SCALE = 2.0\n")
    assert versions_of(["loose_helpers"]) != before
    assert versions_of(["not_here_at_all"]) == {}


def test_requirements_are_followed_but_not_to_the_benchmark_s_extras():
    assert {"tsadbench", "scikit-learn", "joblib", "pydantic"} <= requirements(["joblib"])
    assert "torch" not in requirements(["tsadbench"])
    assert distributions_of("sklearn") == ("scikit-learn",)
