"""docs/wrapping-a-library.md: its files are written as it says, its commands are run, its claims are looked up."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "wrapping-a-library.md"
FILES = dict(
    re.findall(r"Save this as `(\w+\.py)`:\n\n```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
)
COMMANDS = [
    line
    for block in re.findall(r"^```console\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    for line in block.splitlines()
]


def import_of(file: str) -> str:
    """Return the library that a file of the page wraps."""
    imports = [node for node in ast.parse(FILES[file]).body if isinstance(node, ast.Import | ast.ImportFrom)]
    names = [node.module or "" if isinstance(node, ast.ImportFrom) else node.names[0].name for node in imports]
    (library,) = {name.partition(".")[0] for name in names} - {"dataclasses", "tsadbench"}
    return library


def file_of(command: str) -> str:
    return re.findall(r"(\w+\.py):", command)[0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A folder with the files of the page."""
    folder = tmp_path_factory.mktemp("researcher")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    return folder


def call(command: str, folder: Path) -> str:
    program, *arguments = shlex.split(command)
    assert program == "tsadbench"
    done = subprocess.run(
        [sys.executable, "-m", "tsadbench", *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "COLUMNS": "200"},
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def installed(library: str) -> None:
    """Skip loudly where a library is not installed; CI has those that `make` installs."""
    missing = [name for name in (library, *({"aeon": ["deprecated"]}.get(library, []))) if not is_there(name)]
    if not missing:
        return
    message = f"{', '.join(missing)} is not installed, so that the page's section about it is not run"
    if os.environ.get("CI") and library == "aeon":
        pytest.fail(message)
    pytest.skip(message)


def is_there(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def test_the_page_has_the_sections_that_it_promises():
    assert [import_of(file) for file in FILES] == ["aeon", "torch", "sklearn", "TSB_AD", "darts"]
    assert len(COMMANDS) == 5
    assert len(re.findall("```python", PAGE.read_text())) == len(FILES)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_page_does_what_the_page_says(command, folder):
    installed(import_of(file_of(command)))
    shown = call(command, folder)
    detectors = re.findall(r"\w+\.py:\w+", command)
    if " check " in command:
        assert not re.search(r"^(fail|warn)", shown, re.MULTILINE)
        assert re.search(rf"^{detectors[0]}: \d\d pass, 2 skip$", shown, re.MULTILINE)
        return
    for detector in detectors:
        assert re.search(rf"^ .*{detector} +\d?\.\d{{4}}", shown, re.MULTILINE), shown
    if "kmeans.py:KMeans" in detectors:
        assert re.search(r"kmeans.py:KMeans .* 19 ", shown), shown
        assert "kmeans.py:KMeans: saw 16 % of the training windows" in shown


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("file", [file for file in FILES if file not in map(file_of, COMMANDS)])
def test_a_file_of_the_page_without_a_command_passes_the_checks(file, folder):
    installed(import_of(file))
    cls = re.findall(r"^class (\w+)", FILES[file], re.MULTILINE)[0]
    assert not re.search(r"^(fail|warn)", call(f"tsadbench check {file}:{cls}", folder), re.MULTILINE)
