"""Each room stays within its line budget, ``[tool.tsadbench.budget]`` in pyproject.toml."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[1]
_BUDGET = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["tsadbench"]["budget"]


def _files(room: str) -> set[Path]:
    """Return the Python files of a room: space-separated folders and files."""
    paths = [_ROOT / path for path in room.split()]
    return {file for path in paths for file in ([path] if path.is_file() else path.rglob("*.py"))}


@pytest.mark.parametrize("room", _BUDGET)
def test_a_room_keeps_its_budget(room):
    lines = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in _files(room))
    assert 0 < lines <= _BUDGET[room], f"{room} has {lines} lines: take something out, or raise it and say why"


def test_every_file_of_the_core_is_in_one_room():
    rooms = [_files(room) for room in _BUDGET if room.startswith("tsadbench/")]
    assert sum(map(len, rooms)) == len(set().union(*rooms))
    assert set().union(*rooms) == _files("tsadbench")
