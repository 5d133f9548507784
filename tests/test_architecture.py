"""Imports run one way: the core knows no plugin package and no torch; plugins know the contracts only."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HEAVY = ("torch", "torch_geometric", "pandas", "scipy", "sklearn")


def imports(file: Path) -> set[str]:
    """Return every module that a file imports, anywhere in it; ``from a import b`` gives ``a`` and ``a.b``."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def files(folder: str) -> list[Path]:
    found = sorted((ROOT / folder).rglob("*.py"))
    assert found
    return found


def roots(file: Path) -> set[str]:
    return {module.partition(".")[0] for module in imports(file)}


@pytest.mark.parametrize("file", files("tsadbench"), ids=lambda file: str(file.relative_to(ROOT)))
def test_the_core_imports_no_plugin_package_and_no_torch(file):
    assert not roots(file) & {"tsadbench_detectors", "tsadbench_protocols", "torch", "torch_geometric", "pyod"}


@pytest.mark.parametrize(
    ("folder", "foreign"),
    [
        ("detectors/tsadbench_detectors", "tsadbench_protocols"),
        ("protocols/tsadbench_protocols", "tsadbench_detectors"),
    ],
)
def test_plugins_know_the_contracts_only(folder, foreign):
    for file in files(folder):
        assert foreign not in roots(file), file
        assert modules_of_the_core(file) <= {"tsadbench", "tsadbench.base"}, file


def modules_of_the_core(file: Path) -> set[str]:
    nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
    return {name for name in names if name.partition(".")[0] == "tsadbench"}


def test_only_the_command_line_prints():
    for file in files("tsadbench"):
        if "cli" not in file.relative_to(ROOT).parts:
            assert "rich.console" not in imports(file) or file.parent.name == "leaderboard", file


@pytest.mark.parametrize("arguments", [["--help"], ["list"], ["run", "--help"]], ids=" ".join)
def test_help_and_list_import_nothing_heavy(arguments):
    code = f"""
import sys
from tsadbench.cli import main
sys.argv = ["tsadbench", *{arguments!r}]
try:
    main()
except SystemExit:
    pass
print(sorted(set({HEAVY}) & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("line", ["run -d d", "run --dataset skab --split v", "run --protocol ", "info "])
def test_completion_imports_nothing_heavy(line):
    code = f"""
import os, sys
sys.argv = ["tsadbench"]
os.environ |= {{"_TSADBENCH_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": "tsadbench {line}"}}
from tsadbench.cli import main
try:
    main()
except SystemExit:
    pass
print(sorted(set({(*HEAVY, "numpy")}) & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "_arguments" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"
