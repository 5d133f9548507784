"""Hostile texts in every table format are shown literally, and have no other effect."""

from __future__ import annotations

import csv
import io
import json
from xml.etree import ElementTree

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.helpers.hostile import TEXTS
from tests.helpers.records import record
from tsadbench.errors import UsageError
from tsadbench.execution.record import Record
from tsadbench.leaderboard.board import Leaderboard
from tsadbench.leaderboard.regression import to_junit
from tsadbench.leaderboard.render import plain, table_lines
from tsadbench.utils.parameters import parse_label
from tsadbench.utils.text import printable

MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])
# Our own markup.
OURS = {"<u>", "</u>"}


def label(text: str) -> str:
    """Return a text as a valid label: brackets that are not parameters are replaced."""
    shown = printable(text)
    try:
        parse_label(shown)
    except UsageError:
        return shown.replace("[", "(")
    return shown


LABELS = [label(f"d{number} {text}") for number, text in enumerate(TEXTS)] + [label(text) for text in TEXTS]


def read(one: Record, **texts: object) -> Record:
    """Return a record as read from a file with these texts."""
    return Record.from_json(json.dumps(json.loads(one.to_json()) | texts), "a file")


@pytest.fixture(scope="module")
def board() -> Leaderboard:
    records = []
    for number, given_text in enumerate(TEXTS):
        text = given_text.replace("\ud800", "")  # not valid JSON: that record would be a broken trial
        good = read(record(f"good{number}"), label=LABELS[number], notes=[text], note=text, family=text)
        bad = read(record(f"bad{number}", status="error"), label=LABELS[-number - 1], reason=text)
        records += [good, bad]
    return Leaderboard.from_records(records, ["overall"])


def inline(text: str) -> list[Token]:
    tokens = []
    for token in MARKDOWN.parse(text):
        tokens += [token, *(token.children or [])]
    return tokens


def is_clean(text: str) -> bool:
    return all(line.replace("\t", "").isprintable() for line in text.split("\n"))


def test_records_from_files_hold_no_control_characters(board):
    for one in board.records:
        assert is_clean(one.to_json())
        assert "\n" not in (one.reason or "")
    text = next(one.reason for one in board.records if one.label == LABELS[-4] and one.status != "ok")
    assert text == r"\u202etxt.exe\u2066\u200b next"


def test_markdown_holds_no_html_no_link_and_no_code(board):
    text = board.to_markdown()
    assert is_clean(text)
    tokens = inline(text)
    assert {token.content for token in tokens if token.type in ("html_inline", "html_block")} <= OURS
    assert not {token.type for token in tokens} & {"link_open", "image", "code_inline", "code_block", "fence", "s_open"}
    cells = [token.content for token in tokens if token.type == "inline"]
    assert sum("d0 " in cell for cell in cells) >= 1
    # Every row has as many cells as the header: no label ends its cell.
    for table in text.split("### ")[1:]:
        opened = [token.type for token in MARKDOWN.parse(table)]
        n_rows, n_cells = opened.count("tr_open") - 1, opened.count("td_open")
        assert n_cells == n_rows * opened.count("th_open")


def literal(text: str) -> str:
    """Return what a reader sees of a text in Markdown."""
    return "".join(
        token.content or ("\n" if token.type == "softbreak" else "")
        for token in inline(f"x {plain(text)} x")
        if token.type in ("text", "softbreak", "text_special", "code_inline", "html_inline")
    )


@pytest.mark.parametrize("text", TEXTS)
def test_markdown_shows_a_text_as_it_is(text):
    assert literal(text) == f"x {printable(text.replace(chr(10), ' '))} x"


@given(st.text(st.sampled_from("<>[]()!*_`~\\&;#|:ab1 =-+.\"'/?$")))
def test_no_text_becomes_markup(text):
    tokens = {token.type for token in inline(f"x {plain(text)} x")}
    assert tokens <= {"paragraph_open", "paragraph_close", "inline", "text", "text_special"}
    lines = table_lines(["a", "b"], [[plain(text), plain(text)]])
    opened = [token.type for token in MARKDOWN.parse("\n".join(lines))]
    assert opened.count("td_open") == 2


def test_latex_holds_no_command_from_a_label(board):
    text = board.to_latex()
    assert is_clean(text)
    assert r"\input" not in text
    assert text.count(r"\end{table*}") == 1


def test_no_cell_of_a_csv_is_a_formula_and_numbers_stay_numbers(board):
    rows = list(csv.DictReader(io.StringIO(board.to_csv())))
    for row in rows:
        for name, cell in row.items():
            if cell.startswith(tuple("=+-@\t\r")):
                float(cell)
                assert name.endswith(("_mean", "_std")), name
    labels = {row["detector"] for row in rows}
    assert '\'=HYPERLINK("http://example.org","x")' in labels
    assert len(labels) == len(set(LABELS))


def test_junit_is_xml_whatever_the_labels_are():
    names = ["dataset", "protocol", "split", "detector", "metric", "baseline", "found", "tolerance", "holds"]
    cells = pd.DataFrame([("d", "p", "overall", one, "auroc", 0.5, 0.6, 0.0, False) for one in LABELS], columns=names)
    found = ElementTree.fromstring(to_junit(cells))
    assert {case.get("name") for case in found.iter("testcase")} == {f"overall: {one}" for one in LABELS}
