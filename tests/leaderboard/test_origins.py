"""Who has made a row's numbers, and what its detector was trained on before: in every form of a table."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import pytest

from tests.helpers.records import record
from tsadbench import Leaderboard
from tsadbench.analysis.significance.suite_rows import mark_of
from tsadbench.base.protocol import Metric
from tsadbench.errors import BrokenTrialError
from tsadbench.execution.record import Record
from tsadbench.leaderboard.cells import grids, ranks_of
from tsadbench.leaderboard.origins import chosen_by_origin
from tsadbench.reporting.html import tables
from tsadbench.reporting.html.extent import Extent

BEST = {"auroc": 0.9, "auprc": 0.9}
SECOND = {"auroc": 0.8, "auprc": 0.8}
THIRD = {"auroc": 0.7, "auprc": 0.7}
RECORDS = (
    replace(record("claimed", **BEST), trust="reported"),
    replace(record("submitted", **SECOND), trust="recomputed", pretrained_on=("UCR archive", "TSB")),
    record("ours", **THIRD),
    record("floor", floor=True, auroc=0.2, auprc=0.2),
)


def json_rows(board):
    return {row["label"]: row for row in json.loads(board.to_json())["rows"]}


def test_a_reported_row_stands_behind_the_ranked_ones_and_has_no_rank():
    board = Leaderboard.from_records(RECORDS)
    assert [row.label for row in board.rows] == ["submitted", "ours", "claimed", "floor"]
    (grid,) = grids(board.rows)
    ranks = {cells[0].text.split(" ")[-1]: max(cell.rank for cell in cells) for cells in grid.detectors}
    assert ranks["claimed"] == 0
    assert ranks["submitted"] > 0
    assert ranks["ours"] > 0
    assert [bool(mark_of(row)) for row in board.rows] == [False, False, True, False]


def test_a_row_has_the_least_trust_of_its_trials():
    trials = [record("x", 0), replace(record("x", 1), trust="recomputed"), record("x", 2)]
    (row,) = Leaderboard.from_records(trials).rows
    assert row.trust == "recomputed"


def test_csv_and_json_have_both_and_the_columns_stand_before_the_costs():
    board = Leaderboard.from_records(RECORDS)
    lines = {line["detector"]: line for line in csv.DictReader(io.StringIO(board.to_csv()))}
    assert {name: (line["trust"], line["pretrained_on"]) for name, line in lines.items()} == {
        "claimed": ("reported", ""),
        "submitted": ("recomputed", "UCR archive; TSB"),
        "ours": ("rerun", ""),
        "floor": ("rerun", ""),
    }
    columns = list(lines["ours"])
    assert columns[-6:] == [
        *("trust", "pretrained_on", "rows_per_second", "fit_seconds", "score_seconds", "peak_memory_mib")
    ]
    rows = json_rows(board)
    assert (rows["submitted"]["trust"], rows["submitted"]["pretrained_on"]) == ("recomputed", ["UCR archive", "TSB"])


def test_every_other_table_marks_them_and_says_what_the_marks_mean():
    board = Leaderboard.from_records(RECORDS)
    for text in (board.to_markdown(), board.to_latex(), board.to_html(), str(board)):
        for said in ("trust: reported", "trust: recomputed", "Trust of all other rows: rerun", "submitted on UCR"):
            assert said in " ".join(text.split())
    marked = board.to_markdown()
    for row in ("| ▽ claimed |", "| ≈ ◈ submitted |", "| ours |"):
        assert row in marked
    only_ours = Leaderboard.from_records([RECORDS[2]]).to_markdown()
    assert "Trust of all rows: rerun" in only_ours
    assert "▽" not in only_ours


def test_the_report_has_both():
    board = Leaderboard.from_records(RECORDS)
    (table,) = tables.tables(board, Extent.of(board, (), 0))
    found = {row["label"]: row for row in table["rows"]}
    assert found["submitted"]["pretrained_on"] == ["UCR archive", "TSB"]
    assert {name: row["trust"] for name, row in found.items()}["claimed"] == "reported"
    assert set(found["submitted"]["marks"]) == {"≈", "◈"}


@pytest.mark.parametrize(
    ("least", "pretrained", "left"),
    [
        ("reported", True, {"claimed", "submitted", "ours", "floor"}),
        ("recomputed", True, {"submitted", "ours", "floor"}),
        ("rerun", True, {"ours", "floor"}),
        ("reported", False, {"claimed", "ours", "floor"}),
    ],
)
def test_a_reader_can_leave_rows_out_and_the_ranks_are_those_of_the_rest(least, pretrained, left):
    kept, out = chosen_by_origin(RECORDS, least, pretrained=pretrained)
    assert {one.label for one in kept} == left
    assert set(out) == {one.label for one in RECORDS} - left
    board = Leaderboard.from_records(kept)
    ranks = ranks_of(board.rows, Metric("auprc", "AUPRC"))
    assert min(ranks.values(), default=1) == 1


def test_records_keep_both_and_those_from_before_are_as_they_were():
    plain = record("x")
    text = plain.to_json()
    assert "trust" not in text
    assert "pretrained_on" not in text
    read = Record.from_json(
        text.replace('"look_ahead"', '"pretrained_on": ["a"], "trust": "reported", "look_ahead"'), "-"
    )
    assert (read.trust, read.pretrained_on) == ("reported", ("a",))
    assert Record.from_json(read.to_json(), "-") == read
    # Who verified it is not what the run wrote; what it was trained on is.
    assert replace(plain, trust="recomputed").checksum == plain.checksum
    assert replace(plain, pretrained_on=("a",)).checksum != plain.checksum


@pytest.mark.parametrize("names", [["x" * 101], ["a\\u001b[2J"], [str(i) for i in range(21)]])
def test_impossible_corpora_make_no_record(names):
    text = record("x").to_json().replace('"look_ahead"', f'"pretrained_on": {json.dumps(names)}, "look_ahead"')
    with pytest.raises(BrokenTrialError, match="pretrained_on"):
        Record.from_json(text.replace("\\\\u", "\\u"), "-")
