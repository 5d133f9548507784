"""Names, columns, choice and order of rows: the same in every format, and no mark lost by them."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from tests.helpers.page_tables import tables
from tests.helpers.records import record
from tests.leaderboard.test_latex import check
from tsadbench import Leaderboard, UsageError
from tsadbench.leaderboard.presentation import Presentation, places_of_columns
from tsadbench.leaderboard.terminal import terminal

NASTY = r"A & b_c 50% $x$ <i>|~\{#^"


@pytest.fixture
def board() -> Leaderboard:
    return Leaderboard.from_records(
        [
            record("best", 0, auroc=0.91, auprc=0.8, mcc=0.1),
            record("best", 1, auroc=0.93, auprc=0.8, mcc=0.1),
            record("second[window=9]", auroc=0.8, auprc=0.7, mcc=0.2),
            record("third", auroc=0.3, auprc=0.1, mcc=0.0),
            record("floor", floor=True, auroc=0.6, auprc=0.5, mcc=0.05),
            record("worse-floor", floor=True, auroc=0.5, auprc=0.4, mcc=0.0),
            replace(record("cheat", auroc=0.99, auprc=0.99, mcc=0.9), leaky="its own test rows"),
            record("broken", status="timeout"),
        ]
    )


def presented(board, **options):
    return board.presented(Presentation.from_options(**options))


def names_in(text):
    return [row["detector"] for row in tables(text)[0]]


def test_chosen_rows_come_as_they_are_named_with_the_floors_that_mark_them(board):
    shown = presented(board, detectors=["third", "second[ window = 9 ]", "broken"])
    assert [row.label for row in shown.rows] == ["third", "second[window=9]", "floor", "broken"]
    assert shown.rows[0].below_floor == ("auroc", "auprc", "mcc")
    text = shown.to_markdown()
    assert "⇊ third" in text
    first = tables(text)[0][1]
    assert first["AUPRC"] == "**.7000**"  # the best of those shown, as a paper's readers expect; and it says so
    assert "4 of 7 rows are shown" in text
    assert "Bold and underlined are the best of the shown rows." in text


def test_a_row_below_a_floor_that_was_not_asked_for_is_not_bold(board):
    text = presented(board, detectors=["third", "worse-floor"]).to_markdown()
    assert names_in(text) == ["⇊ third", "worse-floor", "floor"]
    assert "**" not in text


@pytest.mark.parametrize(
    ("order", "labels"),
    [
        ("auprc", ["cheat", "best", "second[window=9]", "third", "floor", "worse-floor", "broken"]),
        ("label", ["third", "best", "cheat", "second[window=9]", "floor", "worse-floor", "broken"]),
    ],
)
def test_orders_keep_floors_behind_and_failures_last(board, order, labels):
    shown = presented(board, order=order, aliases=["third=A method"])
    assert [row.label for row in shown.rows] == labels


def test_a_name_takes_the_place_of_the_label_and_no_mark(board):
    shown = presented(board, aliases=["cheat=Ours", "third=Theirs", "broken=Late"])
    text = shown.to_markdown()
    assert "⚠ Ours" in text
    assert "⇊ Theirs" in text
    assert "Late: timeout in 1 of 1 trials" in text
    assert "Names: Ours is cheat; Theirs is third; Late is broken." in text
    for row, same in zip(board.rows, shown.rows, strict=True):
        assert (row.label, row.metrics, row.below_floor, row.leaky) == (
            same.label, same.metrics, same.below_floor, same.leaky,
        )  # fmt: skip


def test_every_format_escapes_names(board):
    shown = presented(board, aliases=[f"best={NASTY}"])
    check(shown.to_latex())
    assert r"{A \& b\_c 50\% \$x\$ \textless{}i\textgreater{}\textbar{}" in shown.to_latex()
    assert r"A & b_c 50% \$x\$ &lt;i>\|" in shown.to_markdown()
    assert len(tables(shown.to_markdown())[0]) == 7  # each with as many cells as the header

    class Texts(HTMLParser):
        found: list[str]

        def handle_data(self, data):
            self.found.append(data)

    parser = Texts()
    parser.found = []
    parser.feed(shown.to_html())
    assert NASTY in parser.found
    (table,) = terminal(shown.rows, 240)
    assert NASTY in [str(cell) for cell in table.columns[0]._cells]


def test_names_that_latex_would_take_for_options_of_a_rows_end(board):
    check(presented(board, aliases=["second[window=9]=[ours]", "best=*new"]).to_latex())


def test_csv_and_json_keep_the_label_beside_the_name(board):
    shown = presented(board, aliases=["best=Ours"])
    rows = {row["detector"]: row for row in csv.DictReader(io.StringIO(shown.to_csv()))}
    assert rows["best"]["alias"] == "Ours"
    assert rows["third"]["alias"] == ""
    of_json = {row["label"]: row for row in json.loads(shown.to_json())["rows"]}
    assert of_json["best"]["alias"] == "Ours"
    assert "alias" not in of_json["third"]
    assert "alias" not in board.to_csv()


def test_columns_are_chosen_in_their_order_in_every_format(board):
    shown = presented(board, columns=["MCC,auroc", "Look-ahead"])
    header = ["detector", "MCC", "AUROC", "look-ahead"]
    lines = shown.to_markdown().splitlines()
    assert [cell.strip() for cell in lines[2].strip("|").split("|")] == header
    assert " & ".join(header) in shown.to_latex()
    check(shown.to_latex())
    (table,) = terminal(shown.rows, 240, columns=shown.columns)
    assert [str(column.header) for column in table.columns][:3] == header[:3]
    assert next(csv.reader(io.StringIO(shown.to_csv()))) == [
        "detector", "status", "mcc_mean", "mcc_std", "auroc_mean", "auroc_std", "look_ahead",
    ]  # fmt: skip
    assert tables(shown.to_markdown())[0][-1] == {
        "detector": "broken", "MCC": "timeout in 1 of 1", "AUROC": "-", "look-ahead": "9",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"aliases": ["bets=Ours"]}, "there is no row 'bets'; did you mean 'best'"),
        ({"detectors": ["thrid"]}, "there is no row 'thrid'; did you mean 'third'"),
        ({"aliases": ["best"]}, "expected NAME=TEXT"),
        ({"aliases": ["best= "]}, "expected a name, found none"),
        ({"aliases": ["best=third"]}, "another row has this label"),
        ({"aliases": ["best=A", "third=A"]}, "best and third would both be called 'A'"),
        ({"order": "given"}, "name the detectors"),
        ({"aliases": ["absent.toml"]}, "there is no such file"),
    ],
)
def test_what_is_wrong_is_said_in_one_line_with_the_nearest_names(board, options, message):
    with pytest.raises(UsageError, match=message.replace("?", r"\?")):
        presented(board, **options)


def test_a_wrong_column_is_named_in_every_format(board):
    shown = presented(board, columns=["aurok"])
    for form in (shown.to_markdown, shown.to_latex, shown.to_html, shown.to_csv):
        with pytest.raises(UsageError, match="there is no column 'aurok'; did you mean 'auroc'"):
            form()


def test_a_file_of_names_serves_tables_that_lack_some_of_them(board, tmp_path):
    file = tmp_path / "names.toml"
    file.write_text('best = "Ours"\n"second[window=9]" = "Ours, wide"\nabsent = "Of another table"\n')
    shown = presented(board, aliases=[str(file), "best=Ours at last"])
    assert {row.label: row.name for row in shown.rows} | {"best": "Ours at last", "second[window=9]": "Ours, wide"} == {
        row.label: row.name for row in shown.rows
    }
    file.write_text("best = 3\n")
    with pytest.raises(UsageError, match=r"names.toml, line 1: best: expected a string, found 3"):
        presented(board, aliases=[str(file)])


def test_a_table_without_the_columns_is_shown_whole():
    assert places_of_columns(["b"], [["", "a"], ["a", "", "b"]]) == [[0, 1], [1, 2]]
    with pytest.raises(UsageError):
        places_of_columns(["c"], [["", "a"]])
