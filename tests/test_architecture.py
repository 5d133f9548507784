"""Start-up imports nothing heavy; `make lint` checks the layers (lint-imports)."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("torch", "pandas", "scipy", "sklearn")


def heavy_imports(line: str, environment: str) -> str:
    """Run command lines in one process; return their output, then the modules of `HEAVY` that they imported."""
    code = f"""
import os, sys
os.environ |= {environment}
from tsadbench.cli.app import main
for arguments in {[one.split() for one in line.split(";")]}:
    sys.argv = ["tsadbench", *arguments]
    try:
        main()
    except SystemExit:
        pass
print(sorted(set({HEAVY}) & set(sys.modules)))
"""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("line", "environment", "shown"),
    [
        ("--help;list;run --help;data --help;doctor --help", {}, "isolation-forest"),
        ("", {"_TSADBENCH_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": "tsadbench run --dataset pump"},
         "pumploop"),
    ],
    ids=["help and list", "completion"],
)  # fmt: skip
def test_start_up_imports_nothing_heavy(line, environment, shown):
    out = heavy_imports(line, repr(environment))
    assert shown in out
    assert out.splitlines()[-1] == "[]"
