from __future__ import annotations

import pytest

from tsadbench.errors import DataError
from tsadbench.utils.issues import Issue, condensed, listed, raise_if_any

MANY = [Issue("a.csv", f"cell {line}", line, kind="cell") for line in range(2, 9)]


def test_three_of_a_kind_are_listed_and_the_others_counted():
    other = Issue("a.csv", "no header")
    assert listed("card x", [*MANY[:4], other, *MANY[4:]]).splitlines() == [
        "card x: 8 problems",
        "  a.csv, line 2: cell 2",
        "  a.csv, line 3: cell 3",
        "  a.csv, line 4: cell 4 (and 4 more such)",
        "  a.csv: no header",
    ]


def test_of_very_many_issues_the_last_are_counted():
    lines = listed("card x", [Issue("a.csv", f"column {i}", count=2) for i in range(3000)]).splitlines()
    assert (len(lines), lines[0], lines[-1]) == (1002, "card x: 6000 problems", "  and 4000 more")


def test_condensing_in_steps_counts_the_same():
    assert condensed([*condensed(MANY[:5]), *MANY[5:]]) == condensed(MANY)


def test_none_raises_nothing():
    raise_if_any("card x", [])
    with pytest.raises(DataError, match=r"^card x: 1 problem\n  a\.csv: no header$"):
        raise_if_any("card x", [Issue("a.csv", "no header")])
