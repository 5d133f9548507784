"""Plugins as their authors and users meet them: foreign packages, files, a real virtual environment, real processes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.packages import write_package

ROOT = Path(__file__).parents[1]

DATA = """
import numpy as np
from tsadbench import Dataset, Labels, Recording
from tsadbench.base.dataset import LabelledDataset

def load(options):
    '''A tiny data set.'''
    values = np.random.default_rng(0).normal(size=(400, 2))
    values[300:320] += 9.0
    labels = np.zeros(200, dtype=bool)
    labels[100:120] = True
    splits = {"overall": ("fault",)}
    train, test = Recording("normal", values[:200], ("a", "b")), Recording("fault", values[200:], ("a", "b"))
    return LabelledDataset(Dataset("tiny", (train,), (test,), splits), Labels({"fault": labels}, splits))
"""

IDEA = """
import numpy as np
from tsadbench import Detector

class Idea(Detector):
    '''The largest value of a row.'''
    def _fit(self, recordings):
        self.mean_ = recordings[0].values.mean(axis=0)
    def _score(self, recording):
        return (recording.values - self.mean_).max(axis=1)
"""


def test_list_imports_no_plugin_and_names_both_packages_of_one_name(tsadbench, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    write_package(tmp_path, "broken", "[tsadbench.detectors]\nbroken = broken:Idea\n", "raise OSError('no licence')")
    write_package(tmp_path, "gone", "[tsadbench.detectors]\ngone = gone_for_good:Idea\n", "")
    write_package(tmp_path, "dotted", "[tsadbench.detectors]\ndotted = .dotted:Idea\n", "")
    for name in ("one", "two"):
        write_package(tmp_path, name, f"[tsadbench.detectors]\ntwin = {name}:Idea\n", IDEA)
    plain = {line.split()[0]: line for line in tsadbench("list").out.splitlines() if line}
    for name, reference in (("broken", "broken:Idea"), ("gone", "gone_for_good:Idea"), ("dotted", ".dotted:Idea")):
        assert reference in plain[name]
    assert re.search("one.* two", plain["twin"])
    assert "tsadbench_detectors.t2:T2" in plain["t2"]


@pytest.mark.long  # its own environment, all checks, and pytest
@pytest.mark.processes
def test_the_package_in_the_documentation_installs_is_listed_passes_the_checks_and_runs(tmp_path):
    page = (ROOT / "docs" / "adding-a-detector.md").read_text()
    package = tmp_path / "my-idea"
    package.mkdir()
    for file, start in {
        "idea.py": "from typing",
        "pyproject.toml": "[build-system]",
        "test_idea.py": "from idea",
    }.items():
        (text,) = (block for block in re.findall(r"```\w+\n(.*?)```", page, re.DOTALL) if block.startswith(start))
        (package / file).write_text(text)
    # It has no pip, and uses this environment's pip and setuptools.
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    site = next((tmp_path / "venv" / "lib").glob("python*/site-packages"))
    # What pip would install from the network is in this environment already.
    roots = [path for path in sys.path if path.endswith("site-packages")]
    own = [ROOT, ROOT / "detectors", ROOT / "protocols"]
    (site / "this_environment.pth").write_text("\n".join(map(str, [*roots, *own])) + "\n")
    write_package(site, "tiny_package", "[tsadbench.datasets]\ntiny = tiny_package:load\n", DATA)

    def run(*arguments: object) -> str:
        command = [str(python), "-m", *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=package, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", package)
    assert re.search(r"idea:Idea .*my-idea 0\.1\.0", run("tsadbench", "list"))
    assert "cap=100" in run("tsadbench", "info", "my-idea")
    assert " fail" not in run("tsadbench", "check", "my-idea")
    out = run("tsadbench", "run", "-d", "my-idea[cap=5]", "--dataset", "tiny", "--format", "json", "--seeds", 1)
    rows = json.loads(out)["rows"]
    assert {row["status"] for row in rows} == {"ok"}
    assert [row["label"] for row in rows if not row["floor"]] == ["my-idea[cap=5.0]"]
    assert " passed" in run("pytest", "-q", "-p", "no:cacheprovider")
