"""How tables show the seal of their trials, and what the replay audit found."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.helpers.records import record
from tsadbench import Leaderboard
from tsadbench.base.replay import Replay
from tsadbench.leaderboard.cells import grids, legend
from tsadbench.reporting.html import tables
from tsadbench.reporting.html.extent import Extent

FORGETFUL = Replay(copy="same process", rows=240, correlation=0.42)
SOUND = Replay(copy="forked", rows=200, correlation=0.97, median_ratio=2.0, tail_ratio=0.5)


def sealed(label, seed=0, replay=None, **metrics):
    return replace(record(label, seed, **metrics), seal="sealed", replay=replay)


def guarded(label, seed=0, reason="no user namespaces here", **metrics):
    return replace(record(label, seed, **metrics), seal="guarded", seal_reason=reason)


def board_of(*records):
    return Leaderboard.from_records(records)


def texts_of(board):
    return {"markdown": board.to_markdown(), "latex": board.to_latex(), "html": board.to_html()}


def json_rows(board):
    return {row["label"]: row for row in json.loads(board.to_json())["rows"]}


def test_json_has_the_seal_of_the_weakest_trial_and_the_replay():
    rows = json_rows(
        board_of(
            sealed("whole", 0, SOUND),
            sealed("whole", 1, FORGETFUL),
            sealed("mixed", 0),
            guarded("mixed", 1),
            record("old"),
        )
    )
    assert (rows["whole"]["seal"], rows["whole"]["seal_reasons"]) == ("sealed", [])
    assert rows["whole"]["replay"] == {
        "copy": "same process", "rows": 200, "correlation": 0.42, "median_ratio": 2.0, "tail_ratio": 0.5,
        "unbounded": False, "marks": ["unforgetting"],
    }  # fmt: skip
    assert (rows["mixed"]["seal"], rows["mixed"]["seal_reasons"]) == ("guarded", ["no user namespaces here"])
    assert (rows["old"]["seal"], rows["old"]["seal_reasons"], rows["old"]["replay"]) == ("guarded", [], None)


@pytest.mark.parametrize("form", ["markdown", "latex", "html"])
def test_only_a_mixture_marks_guarded_rows(form):
    mark = r"$\diamond$" if form == "latex" else "◇"
    all_sealed = texts_of(board_of(sealed("a"), sealed("b")))[form]
    assert mark not in all_sealed
    all_guarded = texts_of(board_of(guarded("a"), guarded("b")))[form]
    assert mark not in all_guarded
    assert "guarded" in all_guarded
    assert all_guarded.count("no user namespaces here") == 1
    mixed = texts_of(board_of(sealed("a"), guarded("b")))[form]
    assert f"{mark} b" in mixed
    assert f"{mark} a" not in mixed
    assert f"{mark} guarded" in mixed
    assert mixed.count("no user namespaces here") == 1


def test_a_row_that_failed_is_neither_sealed_nor_guarded():
    failed = replace(guarded("b", reason="no box was opened", status="error"), reason="it broke")
    board = board_of(sealed("a"), failed)
    assert "◇" not in board.to_markdown()
    assert "sealed" not in legend(board_of(failed).rows)


def test_a_row_that_does_not_forget_is_marked_and_never_bold():
    found = board_of(
        sealed("counts", replay=FORGETFUL, auroc=0.99, auprc=0.99, prac_f1=0.99),
        sealed("whole", replay=SOUND, auroc=0.8, auprc=0.8, prac_f1=0.8),
        sealed("other", auroc=0.7, auprc=0.7, prac_f1=0.7),
    )
    (grid,) = grids(found.rows)
    ranks = {row[0].text: {cell.rank for cell in row[1:4]} for row in grid.detectors}
    assert ranks == {"∞ counts": {0}, "whole": {1}, "other": {2}}
    for bold, text in {"**": found.to_markdown(), "<b>": found.to_html(), r"\textbf{": found.to_latex()}.items():
        assert f"{bold}.8000" in text
        assert f"{bold}.9900" not in text
        assert "does not forget" in text
    assert r"\texttt{$\infty$ counts}" in found.to_latex()
    (table,) = tables.tables(found, Extent.of(found, (), 0))
    assert {row["label"]: row["places"].get("auroc") for row in table["rows"]} == {
        "counts": None,
        "whole": 1,
        "other": 2,
    }


def test_an_unforgetting_row_does_not_keep_a_floor_from_leading():
    found = board_of(
        sealed("counts", replay=FORGETFUL, auroc=0.99),
        sealed("whole", auroc=0.6),
        record("floor", floor=True, auroc=0.7),
    )
    (grid,) = grids(found.rows)
    assert grid.floors[0][grid.header.index("AUROC")].leads


def test_no_committed_record_is_guarded():
    """Records that are older than the seal do not say."""
    files = [*(Path(__file__).parents[2] / "leaderboards").rglob("records.jsonl")]
    seals = {json.loads(line).get("seal") for file in files for line in file.read_text(encoding="utf-8").splitlines()}
    assert seals <= {"sealed", None}
    assert "sealed" in seals
