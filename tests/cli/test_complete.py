"""Shell completion through each shell's own protocol."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.packages import write_package

PROGRAM = Path(sys.executable).parent / "tsadbench"

# Completion only reads names: neither class is imported.
ENTRY_POINTS = """[tsadbench.detectors]
distance = tests.helpers.tiny:Distance
distance-noisy = tests.helpers.tiny:Noisy
"""


@pytest.fixture(autouse=True)
def _program(tmp_path_factory, monkeypatch):
    if not PROGRAM.exists():
        pytest.skip(f"the command is not installed beside {sys.executable}")
    site = tmp_path_factory.mktemp("site")
    write_package(site, "distances", ENTRY_POINTS, "")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")]))


def offered(line: str, shell: str = "bash") -> list[str]:
    """What a shell is told for a line whose last word is begun, by the program alone."""
    words = [*shlex.split(line), *([""] if line.endswith(" ") else [])]
    variables = {
        "bash": {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)},
        "zsh": {"_TYPER_COMPLETE_ARGS": line},
        "fish": {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
    }[shell]
    environment = {**os.environ, "_TSADBENCH_COMPLETE": f"complete_{shell}", **variables}
    told = subprocess.run([PROGRAM], env=environment, capture_output=True, text=True, check=False).stdout
    if shell == "zsh":
        return [one.split('"')[1] for one in told.splitlines() if '"' in one]
    return [one.split("\t")[0] for one in told.splitlines()] if shell == "fish" else told.split()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_is_offered_names(shell):
    assert offered("tsadbench run -d distance-n", shell) == ["distance-noisy"]


def test_names_and_suites():
    expected = {
        "tsadbench run -d distance --protocol ": ["published", "skab", "strict"],
        "tsadbench run --dataset plant/": [],  # a path is the shell's own matter
        "tsadbench info str": ["strict"],
        "tsadbench data fetch s": ["skab", "smd", "swat"],
    }
    assert {line: offered(line) for line in expected} == expected
