"""How long the command line takes to answer, as whole processes."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("arguments", [["--help"], ["list"], ["--version"]], ids=" ".join)
def test_start_up(benchmark, arguments):
    benchmark.pedantic(
        subprocess.run,
        args=([sys.executable, "-m", "tsadbench", *arguments],),
        kwargs={"check": True, "capture_output": True},
        rounds=10,
        warmup_rounds=1,
    )
