"""docs/python.md: what it shows is what happens."""

from __future__ import annotations

import doctest
import inspect
import re
from pathlib import Path

import tsadbench

PAGE = Path(__file__).parents[2] / "docs/python.md"


def test_the_page_is_what_a_console_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    done = doctest.testfile(str(PAGE), module_relative=False, optionflags=options, encoding="utf-8")
    assert done.attempted > 15
    assert done.failed == 0


def test_every_argument_of_run_is_in_its_table():
    named = {name for cell in re.findall(r"^\| (`.*?) \|", PAGE.read_text("utf-8"), re.M) for name in cell.split("`")}
    assert set(inspect.signature(tsadbench.run).parameters) <= named
