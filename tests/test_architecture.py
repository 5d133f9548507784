"""Few imports are late, and start-up imports nothing heavy; `make lint` holds the layers (lint-imports)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.helpers.function_imports import function_imports

ROOT = Path(__file__).parent.parent
# The command line aside, whose commands import late so that the command line answers at once.
MOST_FUNCTION_IMPORTS = 40
HEAVY = ("torch", "pandas", "scipy", "sklearn")


def test_the_first_floor_has_at_most_22_names():
    names = {path.name for path in (ROOT / "tsadbench").iterdir()} - {"__pycache__"}
    assert len(names) <= 22, sorted(names)


def test_imports_inside_functions_are_few():
    assert len(function_imports()) <= MOST_FUNCTION_IMPORTS, "python -m tests.helpers.function_imports lists them"


def heavy_imports(line: str, environment: str = "{}") -> str:
    """Return what a command line has imported of `HEAVY`, and what it printed."""
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


def test_help_and_list_import_nothing_heavy():
    out = heavy_imports("--help;list;run --help;data --help;doctor --help")
    assert "isolation-forest" in out
    assert out.splitlines()[-1] == "[]"


def test_completion_imports_nothing_heavy():
    line = {"_TSADBENCH_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": "tsadbench run --dataset skab --split v"}
    out = heavy_imports("", repr(line))
    assert "valve1" in out
    assert out.splitlines()[-1] == "[]"
