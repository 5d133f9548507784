from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.helpers.records import record
from tsadbench import Leaderboard
from tsadbench.base.protocol import SplitJudgement
from tsadbench.leaderboard.cells import grids
from tsadbench.leaderboard.terminal import terminal


@pytest.fixture
def board() -> Leaderboard:
    return Leaderboard.from_records(
        [
            record("best", 0, auroc=0.91, auprc=0.8, mcc=0.3, flagged=0.3),
            record("best", 1, auroc=0.93, auprc=0.8, mcc=0.3, flagged=0.3),
            record("second", auroc=0.5, auprc=0.7, mcc=0.4, flagged=0.2),
            record("third", auroc=0.2, auprc=0.1, mcc=0.1, prac_f1=0.1, flagged=1.0),
            record("floor", floor=True, auroc=0.6, auprc=0.2, mcc=0.1, flagged=0.1),
            record("<script>|", status="invalid"),
        ]
    )


def test_cells_hold_mean_and_spread_places_and_marks(board):
    (grid,) = grids(board.rows)
    assert re.fullmatch(r"d, .*overall, .*strict.*\b100 .* 35\.0%.*", grid.title)
    cells = {row[0].text: dict(zip(grid.header, row, strict=True)) for row in grid.detectors}
    assert cells["best"]["AUROC"].text == ".9200(.0141)"
    assert cells["best"]["AUROC"].rank == 1
    assert cells["second"]["AUPRC"].rank == 2
    # The second of the detectors, but the floor is better.
    assert cells["second"]["AUROC"].rank == 0
    assert cells["second"]["AUROC"].below
    assert cells["⇊ third"]["AUROC"].marked == ".2000↓"
    assert cells["best"]["seeds"].text == "2"
    assert grid.floors[0][0].text == "floor"
    assert dict(zip(grid.header, grid.failures[0], strict=True))["seeds"].text == "invalid in 1 of 1"


def test_a_row_without_all_scores_is_marked_and_never_bold():
    silent = record("silent", auroc=0.99, auprc=0.99, prac_f1=0.99)
    splits = {name: replace(one, coverage=0.9996) for name, one in silent.splits.items()}
    board = Leaderboard.from_records(
        [
            record("whole", auroc=0.8, auprc=0.8, prac_f1=0.8),
            record("other", auroc=0.7, auprc=0.7, prac_f1=0.7),
            replace(silent, splits=splits),
        ]
    )
    (grid,) = grids(board.rows)
    ranks = {row[0].text: {cell.rank for cell in row[1:4]} for row in grid.detectors}
    assert ranks == {"△ silent": {0}, "whole": {1}, "other": {2}}
    texts = {
        "**": board.to_markdown(),
        "<b>": board.to_html(),
        r"\textbf{": board.to_latex(),
    }
    for bold, text in texts.items():
        assert f"{bold}.8000" in text
        assert f"{bold}.9900" not in text
        assert ("$\\triangle$ silent" if bold.startswith("\\") else "△ silent") in text
    (table,) = terminal(board.rows, 300)
    headings = [str(column.header) for column in table.columns]
    names, auroc = (list(table.columns[i].cells) for i in (0, headings.index("AUROC")))
    styles = dict(zip(map(str, names), (str(cell.style) for cell in auroc), strict=True))
    assert styles == {"△ silent": "", "whole": "bold", "other": "underline"}
    nothing = SplitJudgement(dict.fromkeys(("auroc", "auprc", "prac_f1")), 0, 0, 0.0)
    for whole in (record("whole"), replace(record("whole"), splits={"overall": nothing})):
        assert "△" not in Leaderboard.from_records([whole]).to_markdown()


def many(n_detectors: int) -> Leaderboard:
    ranked = [record(f"d{i:03d}", auprc=1 - i / 1000, auroc=i / 1000) for i in range(n_detectors)]
    failed = [record(f"f{i:03d}", status="error") for i in range(n_detectors)]
    return Leaderboard.from_records([*ranked, record("floor", floor=True, auprc=0.1, auroc=0.1), *failed])


def test_a_long_table_can_be_cut_and_keeps_its_floors_and_the_whole_tables_marks():
    board = many(300)
    (whole,), (cut,) = grids(board.rows), grids(board.rows, most=20)
    assert cut.detectors == whole.detectors[:20]
    assert cut.floors == whole.floors
    assert cut.failures == whole.failures[:20]
    assert (whole.n_left_out, cut.n_left_out) == (0, 2 * 280)
    place = cut.header.index("AUROC")
    assert {row[place].rank for row in cut.detectors} == {0}, "the best AUROC belongs to the last detector"


def test_no_detector_has_a_place_in_a_metric_in_which_a_floor_is_as_good(board):
    (grid,) = grids(
        Leaderboard.from_records(
            [
                record("a", auroc=0.7, auprc=0.9, prac_f1=0.8, mcc=0.4),
                record("b", auroc=0.6, auprc=0.8, prac_f1=0.7, mcc=0.3),
                record("f", floor=True, auroc=0.7, auprc=0.85, prac_f1=0.95, mcc=0.0),
                record("g", floor=True, auroc=0.1, auprc=0.1, prac_f1=0.1, mcc=0.2),
            ]
        ).rows
    )
    places = {
        row[0].text: {name: cell.rank for name, cell in zip(grid.header, row, strict=True) if cell.rank}
        for row in grid.detectors
    }
    assert places == {"a": {"AUPRC": 1, "MCC": 1}, "b": {"MCC": 2}}


FLOORS = [
    record("f1", floor=True, auroc=0.6, auprc=0.5, mcc=0.0),
    record("f2", floor=True, auroc=0.7, auprc=0.4, mcc=0.1),
    record("f3", floor=True, auroc=0.7, auprc=0.3, mcc=0.1),
    record("f4", floor=True, auroc=0.1, auprc=0.1, mcc=0.1),
]


def test_floors_fold_to_the_best_in_each_metric_and_those_asked_for():
    rows = Leaderboard.from_records([record("x", auroc=0.5, auprc=0.5, mcc=0.5), *FLOORS]).rows

    def shown(**options):
        (grid,) = grids(rows, **options)
        assert (grid.n_folded + len(grid.floors), grid.n_left_out) == (4, 0)
        return [row[0].text for row in grid.floors]

    assert shown() == ["f1", "f2", "f3", "f4"]
    # f1 is the best in AUPRC and, of equal ones, the first in Prac-F1; f2 in AUROC and MCC.
    assert shown(floors=()) == ["f1", "f2"]
    assert shown(floors={"f4"}) == ["f1", "f2", "f4"]
    # Only the metrics that the table shows decide.
    assert shown(floors=(), without=["auroc", "mcc"]) == ["f1"]
    alone = Leaderboard.from_records(FLOORS).rows
    assert [row[0].text for row in grids(alone, floors=())[0].floors] == ["f1", "f2", "f3", "f4"]
