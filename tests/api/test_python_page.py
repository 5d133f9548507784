"""docs/python.md: what it shows is what happens."""

from __future__ import annotations

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs/python.md"


def test_the_page_is_what_a_console_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    done = doctest.testfile(str(PAGE), module_relative=False, optionflags=options, encoding="utf-8")
    assert done.attempted > 15
    assert done.failed == 0
