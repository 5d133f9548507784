"""Shell completion through bash's own protocol."""

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
        pytest.skip(f"the command is not installed next to {sys.executable}")
    site = tmp_path_factory.mktemp("site")
    write_package(site, "distances", ENTRY_POINTS, "")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")]))


def offered(line: str) -> list[str]:
    """Return the completions that bash gets for an unfinished line."""
    words = [*shlex.split(line), *([""] if line.endswith(" ") else [])]
    variables = {"_TSADBENCH_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    done = subprocess.run([PROGRAM], env={**os.environ, **variables}, capture_output=True, text=True, check=False)
    return done.stdout.split()


def test_names_and_suites():
    expected = {
        "tsadbench run -d distance-n": ["distance-noisy"],
        "tsadbench run -d distance --protocol ": ["published", "skab", "strict"],
        "tsadbench run --dataset plant/": [],  # the shell itself completes paths
        "tsadbench info str": ["strict"],
        "tsadbench data fetch s": ["skab", "smd", "swat"],
    }
    assert {line: offered(line) for line in expected} == expected
