from __future__ import annotations

import re

import pytest

from tsadbench.errors import DataError
from tsadbench.utils.issues import Issue, listed, raise_if_any

MANY = [Issue("a.csv", f"cell {line}", line, kind="cell") for line in range(2, 9)]


def test_three_of_a_kind_are_listed_and_the_others_counted():
    other = Issue("a.csv", "no header")
    title, *lines = listed("card x", [*MANY[:4], other, *MANY[4:]]).splitlines()
    assert re.match(r"card x: 8\b", title)
    assert [line.partition(" (")[0] for line in lines] == [
        "  a.csv, line 2: cell 2",
        "  a.csv, line 3: cell 3",
        "  a.csv, line 4: cell 4",
        "  a.csv: no header",
    ]
    assert "4 more" in lines[2]


def test_of_very_many_issues_the_last_are_counted():
    lines = listed("card x", [Issue("a.csv", f"column {i}", count=2) for i in range(3000)]).splitlines()
    assert len(lines) == 1002
    assert ("card x: 6,000" in lines[0], "4,000" in lines[-1]) == (True, True)


def test_none_raises_nothing():
    raise_if_any("card x", [])
    with pytest.raises(DataError, match=r"^card x: 1 .*\n  a\.csv: no header$"):
        raise_if_any("card x", [Issue("a.csv", "no header")])
