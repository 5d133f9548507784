from __future__ import annotations

from tsadbench.utils.issues import Issue, listed


def test_of_very_many_issues_the_last_are_counted():
    lines = listed("card x", [Issue("a.csv", f"column {i}", count=2) for i in range(3000)]).splitlines()
    assert len(lines) == 1002
    assert ("card x: 6,000" in lines[0], "4,000" in lines[-1]) == (True, True)
