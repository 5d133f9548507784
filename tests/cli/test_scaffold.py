from __future__ import annotations

import ast
import subprocess
import sys
import tomllib

import pytest

from tsadbench import UsageError
from tsadbench.cli.scaffold import new_detector


def test_a_package_is_written_whole(tmp_path):
    files = new_detector("my-own", tmp_path)
    assert all(file.is_file() for file in files)
    metadata = tomllib.loads((tmp_path / "my-own" / "pyproject.toml").read_text())
    assert metadata["project"]["entry-points"]["tsadbench.detectors"] == {"my-own": "my_own.detector:MyOwn"}
    for file in files:
        assert "$" not in file.read_text().replace("$GITHUB_STEP_SUMMARY", "")
        if file.suffix == ".py":
            ast.parse(file.read_text())
    assert [one.name for one in tmp_path.iterdir()] == ["my-own"]


@pytest.mark.parametrize(
    "name", ["", "My", "my_own", "my--own", "-my", "my-", "9lives", "my own", "../my", "my\n", "m" * 31]
)
def test_malformed_names_are_refused(tmp_path, name):
    with pytest.raises(UsageError, match="consists of small letters"):
        new_detector(name, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("dprgm", "among the detectors already, from the package tsadbench"),
        ("strict", "among the protocols already, from the package tsadbench"),
        ("tep", "among the datasets already, from the package tsadbench"),
        ("numpy", "keyword or a package"),
        ("class", "keyword"),
    ],
)
def test_names_that_are_taken_are_refused(tmp_path, name, message):
    with pytest.raises(UsageError, match=message):
        new_detector(name, tmp_path)


@pytest.mark.parametrize("name", ["detector", "none", "true", "recording", "traits", "detector-contract", "my-own"])
def test_no_name_hides_what_the_modules_import(tmp_path, name):
    files = {file.name: file for file in new_detector(name, tmp_path)}
    tree = ast.parse(files["detector.py"].read_text())
    (cls,) = (node for node in tree.body if isinstance(node, ast.ClassDef))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert cls.name not in imported
    points = tomllib.loads(files["pyproject.toml"].read_text())["project"]["entry-points"]["tsadbench.detectors"]
    assert points[name].endswith(f".detector:{cls.name}")
    tests = ast.parse(files[f"test_{name.replace('-', '_')}.py"].read_text())
    names = [alias.name for node in tests.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert sorted(names) == sorted({"DetectorContract", cls.name})


@pytest.mark.parametrize("name", ["a", "my-own", "zeta", "m" * 30])
def test_what_is_written_is_clean(tmp_path, name):
    new_detector(name, tmp_path)
    for command in (["check"], ["format", "--check"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--no-cache", "."],
            cwd=tmp_path / name,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_nothing_is_overwritten(tmp_path):
    (tmp_path / "mine").mkdir()
    with pytest.raises(UsageError, match="exists already"):
        new_detector("mine", tmp_path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match="cannot be written"):
        new_detector("yours", tmp_path / "file")


def test_the_command_names_the_files_and_the_next_step(tsadbench, tmp_path):
    done = tsadbench("new", "detector", "my-own", "--out", tmp_path)
    assert done.code == 0
    assert str(tmp_path / "my-own" / "src" / "my_own" / "detector.py") in done.out
    assert "tsadbench check my-own" in done.out
    assert tsadbench("new", "detector", "my-own", "--out", tmp_path).code == 2
