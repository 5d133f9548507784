"""Imports run one way (the contracts in pyproject.toml), few of them late, and start-up imports nothing heavy."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.function_imports import function_imports

ROOT = Path(__file__).parent.parent
PACKAGES = (
    "tsadbench", "detectors/tsadbench_detectors", "detectors/tsadbench_priors", "protocols/tsadbench_protocols",
)  # fmt: skip
# Command bodies aside, which import late so that the command line answers at once.
MOST_FUNCTION_IMPORTS = 40
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


LINT = "from importlinter.cli import lint_imports_command; lint_imports_command()"


@pytest.fixture(scope="module")
def house(tmp_path_factory) -> Path:
    """A copy of the three packages and of the contracts, so that imports can be planted."""
    copy = tmp_path_factory.mktemp("house")
    shutil.copy(ROOT / "pyproject.toml", copy)
    for folder in PACKAGES:
        for file in files(folder):
            target = copy / file.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, target)
    return copy


def lint(house: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", LINT, "--no-cache"],
        capture_output=True,
        text=True,
        cwd=house,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(str((house / folder).parent) for folder in PACKAGES)},
        check=False,
    )


def test_every_contract_of_the_layers_holds(house):
    done = lint(house)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("file", "line", "broken"),
    [
        ("tsadbench/utils/arrays.py", "from tsadbench.execution.plan import Plan", "tsadbench.utils is not allowed"),
        ("tsadbench/base/dataset.py", "def late():\n    import tsadbench.cli.run", "tsadbench.base is not allowed"),
        ("tsadbench/tuning/task.py", "from tsadbench.serving import load_model", "tsadbench.tuning is not allowed"),
        ("detectors/tsadbench_priors/prompt.py", "from tsadbench.utils.text import one_line", "tsadbench.utils"),
        ("tsadbench/datasets/skab.py", "def late():\n    from tsadbench import Detector", "Nobody below the facade"),
        ("tsadbench/api/running.py", "import torch", "tsadbench is not allowed to import torch"),
        ("tsadbench/testing/suite.py", "def late():\n    import tsadbench_detectors.t2", "import tsadbench_detectors"),
        ("tsadbench/attic/__init__.py", "", "tsadbench.attic"),
        ("detectors/tsadbench_detectors/t2.py", "from tsadbench.utils.arrays import FloatArray", "tsadbench.utils"),
        ("detectors/tsadbench_detectors/t2.py", "from tsadbench.base.prior import Prior", "tsadbench.base.prior"),
        ("detectors/tsadbench_detectors/t2.py", "import tsadbench_protocols.strict", "know nothing of each other"),
        ("tsadbench/execution/request.py", "from tsadbench.execution.plan import Plan", "No circles"),
    ],
)
def test_a_planted_import_breaks_a_contract(house, file, line, broken):
    planted = house / file
    before = planted.read_text(encoding="utf-8") if planted.exists() else None
    planted.parent.mkdir(exist_ok=True)
    planted.write_text(f"{before or ''}\n{line}\n", encoding="utf-8")
    try:
        done = lint(house)
    finally:
        if before is None:
            shutil.rmtree(planted.parent)
        else:
            planted.write_text(before, encoding="utf-8")
    assert done.returncode == 1
    assert broken in done.stdout


def test_the_first_floor_has_at_most_22_names():
    names = {path.name for path in (ROOT / "tsadbench").iterdir()} - {"__pycache__"}
    assert len(names) <= 22, sorted(names)


def test_imports_inside_functions_are_few():
    assert len(function_imports()) <= MOST_FUNCTION_IMPORTS, "python -m tests.helpers.function_imports lists them"


def test_only_the_command_line_prints():
    # And the progress of `tsadbench.run(progress=...)`, which the command line shows as well.
    allowed = ROOT / "tsadbench" / "api" / "live.py"
    for file in files("tsadbench"):
        if "cli" not in file.relative_to(ROOT).parts and file != allowed:
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
