from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsadbench.utils.text import one_line, printable, printable_values

# Any code point, surrogates too.
ANY = st.text(st.integers(0, 0x10FFFF).map(chr))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, größer, 温度, 😀, non\u00a0breaking", "plain, größer, 温度, 😀, non\u00a0breaking"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("a\rb\bc\x00\x7f", r"a\rb\x08c\x00\x7f"),
        ("\x9b2J\x85", r"\x9b2J\x85"),
        ("\u202eevil\u2066\u2069", r"\u202eevil\u2066\u2069"),
        ("zero\u200bwidth\ufeff", r"zero\u200bwidth\ufeff"),
        ("line\u2028paragraph\u2029", r"line\u2028paragraph\u2029"),
        ("\ud800", r"\ud800"),
    ],
)
def test_what_is_not_shown_as_itself_becomes_an_escape(text, shown):
    assert printable(text) == shown


@given(ANY)
def test_every_text_can_be_written_and_moves_no_cursor(text):
    shown = printable(text)
    shown.encode()
    assert not {unicodedata.category(character) for character in shown} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert printable(shown) == shown
    assert len(printable(text, lines=True).splitlines()) <= text.count("\n") + 1


@given(ANY, st.integers(1, 40))
def test_one_line_is_one_line_of_at_most_its_length(text, limit):
    line = one_line(text, limit)
    assert len(line) <= limit
    assert len(line.splitlines()) <= 1


def test_one_line_folds_white_space_and_says_that_it_left_something_out():
    assert one_line(" a\n\n  b\t") == "a b"
    assert one_line("abcdef", 4) == "abc…"
    assert len(one_line("\x00" * 10**7)) == 2000


def test_every_text_of_a_json_value_becomes_printable_and_nothing_else_changes():
    content = {"a\x1b": ["b\n\x07", 1, 2.5, None, True, {"c": []}], "d": "\t"}
    assert printable_values(content) == {r"a\x1b": ["b\n\\x07", 1, 2.5, None, True, {"c": []}], "d": "\t"}
