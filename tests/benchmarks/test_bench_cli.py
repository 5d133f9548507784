"""How long the command line takes to answer, as whole processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


def test_completion(benchmark):
    asked = {"_TSADBENCH_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": "tsadbench run --detector d"}
    benchmark.pedantic(
        subprocess.run,
        args=([Path(sys.executable).parent / "tsadbench"],),
        kwargs={"check": True, "capture_output": True, "env": {**os.environ, **asked}},
        rounds=10,
        warmup_rounds=1,
    )


@pytest.mark.parametrize("arguments", [["--help"], ["list"], ["--version"]], ids=" ".join)
def test_start_up(benchmark, arguments):
    benchmark.pedantic(
        subprocess.run,
        args=([sys.executable, "-m", "tsadbench", *arguments],),
        kwargs={"check": True, "capture_output": True},
        rounds=10,
        warmup_rounds=1,
    )
