from __future__ import annotations

import ast
import tomllib

import pytest

from tsadbench import UsageError
from tsadbench.new import new_detector


def test_a_package_is_written_whole(tmp_path):
    files = new_detector("my-own", tmp_path)
    assert all(file.is_file() for file in files)
    metadata = tomllib.loads((tmp_path / "my-own" / "pyproject.toml").read_text())
    assert metadata["project"]["entry-points"]["tsadbench.detectors"] == {"my-own": "my_own.detector:MyOwn"}
    for file in files:
        assert "$" not in file.read_text()
        if file.suffix == ".py":
            ast.parse(file.read_text())
    assert [one.name for one in tmp_path.iterdir()] == ["my-own"]


@pytest.mark.parametrize("name", ["", "My", "my_own", "my--own", "-my", "my-", "9lives", "my own", "../my", "my\n"])
def test_malformed_names_are_refused(tmp_path, name):
    with pytest.raises(UsageError, match="made of small letters"):
        new_detector(name, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "message"),
    [("dprgm", "already, from the package tsadbench"), ("numpy", "keyword or a package"), ("class", "keyword")],
)
def test_names_that_are_taken_are_refused(tmp_path, name, message):
    with pytest.raises(UsageError, match=message):
        new_detector(name, tmp_path)


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
