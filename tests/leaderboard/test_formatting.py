from __future__ import annotations

import pytest

from tsadbench.leaderboard.render import number, table_lines


@pytest.mark.parametrize(
    ("value", "decimals", "signed", "text"),
    [
        (0.74138, 4, False, ".7414"),
        (-0.74138, 2, False, "-.74"),
        (0.25, 2, True, "+.25"),
        (0.99996, 4, False, "1.0000"),
        (10.05, 1, False, "10.1"),
    ],
)
def test_a_number_has_no_zero_before_its_point(value, decimals, signed, text):
    assert number(value, decimals, signed=signed) == text


def test_a_table_has_a_rule_below_its_header_and_no_cell_ends_early():
    lines = table_lines(["label", "n"], [["a|b", "1"], ["two\nlines", "2"]])
    assert lines == ["| label | n |", "| --- | --- |", r"| a\|b | 1 |", "| two lines | 2 |"]
