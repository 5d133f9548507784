"""Tables of a data set with entities: means over them, the spread beside them, and what old tables keep."""

from __future__ import annotations

import csv
import io
import json
import statistics
from dataclasses import replace

import pytest
from rich.console import Console

from tests.helpers.machines import DISTANCE, MACHINES, NOISY, Made, made_machines
from tests.helpers.records import record
from tsadbench.leaderboard.board import Leaderboard
from tsadbench.leaderboard.cells import grids
from tsadbench.leaderboard.terminal import terminal

TITLE = "1,260 rows, 8.3% anomalous, mean over 3 entities, one model each"


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Made:
    return made_machines(tmp_path_factory.mktemp("made"), DISTANCE, NOISY, "t2", seeds=3)


@pytest.fixture
def board(made) -> Leaderboard:
    return Leaderboard.from_records(made.records, ["overall"])


def spread(made: Made, label: str, metric: str) -> float:
    """Return the deviation over entities of their means over seeds, by hand."""
    trials = [one.splits["overall"].entities for one in made.records if one.label == label]
    by_entity = [[trial[machine][metric] for trial in trials] for machine in MACHINES]
    return statistics.stdev(statistics.mean(values) for values in by_entity if None not in values)


def test_json_has_the_metrics_of_each_entity_and_their_spread(made, board):
    rows = {row["label"]: row for row in json.loads(board.to_json())["rows"]}
    noisy = rows[NOISY]
    of_beta = [one.splits["overall"].entities["beta"]["auroc"] for one in made.records if one.label == NOISY]
    assert list(noisy["entities"]) == list(MACHINES)
    assert noisy["entities"]["beta"]["auroc"] == {
        "mean": pytest.approx(statistics.mean(of_beta)),
        "std": pytest.approx(statistics.stdev(of_beta)),
    }
    assert noisy["entities"]["gamma"]["auroc"] == {"mean": None, "std": None}
    for label in (DISTANCE, NOISY):
        for metric in ("auroc", "mcc", "flagged"):
            assert rows[label]["metrics_spread"][metric] == pytest.approx(spread(made, label, metric))
        means = [one["auprc"]["mean"] for one in rows[label]["entities"].values() if one["auprc"]["mean"] is not None]
        assert rows[label]["metrics"]["auprc"]["mean"] == pytest.approx(statistics.mean(means))


def test_csv_has_the_spread_before_the_costs_in_one_table_and_in_several(made, board):
    (header, *lines) = csv.reader(io.StringIO(board.to_csv()))
    names = [f"{metric}_entity_std" for metric in ("precision", "recall", "prac_f1", "mcc", "auroc", "auprc", "bf_f1")]
    assert header[header.index("replay") + 1 :][:7] == names
    assert header[-4:] == ["rows_per_second", "fit_seconds", "score_seconds", "peak_memory_mib"]
    row = dict(zip(header, next(line for line in lines if line[0] == NOISY), strict=True))
    assert float(row["auroc_entity_std"]) == pytest.approx(spread(made, NOISY, "auroc"))
    joined = Leaderboard.joined([Leaderboard.from_records([record("pca")]), board])
    first, *_ = csv.DictReader(io.StringIO(joined.to_csv()))
    assert (first["detector"], first["auroc_entity_std"]) == ("pca", "")


def test_tables_without_entities_have_no_such_column_key_or_mark():
    board = Leaderboard.from_records([record("pca"), record("t2", auprc=0.6)])
    assert "entity" not in board.to_csv()
    assert not {"entities", "metrics_spread"} & json.loads(board.to_json())["rows"][0].keys()
    for text in (board.to_markdown(), board.to_latex(), board.to_html()):
        assert "±" not in text
        assert "pm$" not in text
        assert "entit" not in text


def test_titles_say_that_numbers_are_means_and_cells_show_the_spread(made, board):
    auroc = statistics.mean(one.splits["overall"].metrics["auroc"] for one in made.records if one.label == DISTANCE)
    cell = f"{auroc:.4f}±{spread(made, DISTANCE, 'auroc'):.2f}".replace("0.", ".")
    for text, shown in (
        (board.to_markdown(), cell),
        (board.to_html(), cell),
        (board.to_latex().replace(r"\%", "%"), cell.replace("±", r"$\pm$")),
    ):
        assert TITLE in text
        assert shown in text
        assert "Each entity has a model and a threshold of its own" in text
        assert "rows of gamma are not of both classes" in text


@pytest.mark.parametrize(("width", "shown"), [(300, True), (60, False)])
def test_a_narrow_terminal_leaves_the_spread_out_and_says_so(board, width, shown):
    console = Console(width=width, record=True, file=io.StringIO())
    for table in terminal(board.rows, width):
        console.print(table)
    text = " ".join(console.export_text().split())
    assert "one model each" in text
    assert ("±" in text) is shown
    assert ("spread over entities" in text) is not shown


def test_a_split_of_one_entity_says_whose_model_it_is(made):
    trial = made.records[0]
    overall = trial.splits["overall"]
    alone = replace(overall, metrics=overall.entities["beta"], entities={"beta": overall.entities["beta"]})
    (grid,) = grids(Leaderboard.from_records([replace(trial, splits={"beta": alone})]).rows)
    assert grid.title.endswith(", the model of entity beta alone")
    assert not any("±" in cell.text for cell in grid.detectors[0])


def test_a_row_is_compared_with_floors_by_its_means(made):
    rows = {row.label: row for row in Leaderboard.from_records(made.records, ["overall"]).rows}
    weaker, better = sorted((DISTANCE, "t2"), key=lambda label: rows[label].metrics["auroc"].mean)
    records = [replace(one, floor=one.label == better) for one in made.records if one.label in (weaker, better)]
    judged = {row.label: row.below_floor for row in Leaderboard.from_records(records, ["overall"]).rows}
    assert "auroc" in judged[weaker]


def test_a_failed_row_has_no_entities(made):
    failed = [replace(one, status="error", reason="it broke", splits={}, thresholds=()) for one in made.records[:1]]
    (row,) = Leaderboard.from_records(failed).rows
    assert (row.entities, row.entity_spread) == ({}, {})


def test_a_seed_that_lacks_an_entity_leaves_its_metrics_undefined(made):
    one, two, *_ = [one for one in made.records if one.label == NOISY]
    overall = two.splits["overall"]
    without = {name: metrics for name, metrics in overall.entities.items() if name != "beta"}
    cut = replace(two, splits={"overall": replace(overall, entities=without)})
    (row,) = Leaderboard.from_records([one, cut], ["overall"]).rows
    assert row.entities["beta"]["auroc"].mean is None
    assert row.entities["alpha"]["auroc"].mean is not None
