"""Rows from hand-made records: every number here can be checked by hand."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import pandas as pd
import pytest

from tests.helpers.records import record
from tsadbench import Leaderboard, StoreError, UsageError
from tsadbench.execution.record import EpisodeTraining, Record
from tsadbench.leaderboard.board import known_sessions


def rows(*records, **options):
    return json.loads(Leaderboard.from_records(records, **options).to_json())["rows"]


def test_mean_and_standard_deviation_over_seeds():
    (row,) = rows(record("x", 0, auroc=0.6), record("x", 1, auroc=0.8))
    assert row["metrics"]["auroc"]["mean"] == pytest.approx(0.7)
    assert row["metrics"]["auroc"]["std"] == pytest.approx(0.2 / 2**0.5)
    assert row["seeds"] == [0, 1]
    assert row["seconds"] == {"fit": 2.5, "score": 1.0}
    assert row["peak_memory_mib"] == 101.0
    (alone,) = rows(record("x", 0, auroc=0.6))
    assert alone["metrics"]["auroc"] == {"mean": 0.6, "std": None}


def test_order_is_by_auprc_with_floors_in_their_places_and_failures_last():
    ranked = rows(
        record("low", auprc=0.4),
        record("floor-high", floor=True, auprc=0.99),
        record("bad", status="error"),
        record("undefined", auprc=None),
        record("high", auprc=0.9),
        record("floor-low", floor=True, auprc=0.1),
    )
    assert [row["label"] for row in ranked] == ["floor-high", "high", "low", "floor-low", "undefined", "bad"]


def test_a_failed_seed_removes_the_numbers_and_is_named():
    (row,) = rows(record("x", 0, auroc=0.6), record("x", 1, status="timeout"))
    assert row["status"] == "timeout"
    assert row["failed"] == [{"seed": 1, "status": "timeout", "reason": "it broke"}]
    assert row["metrics"] == {}
    assert row["n_rows"] is row["coverage"] is None


def test_an_undefined_metric_stays_undefined():
    (row,) = rows(record("x", 0, auroc=None), record("x", 1, auroc=0.6))
    assert row["metrics"]["auroc"] == {"mean": None, "std": None}


def test_below_floor_lists_what_is_not_above_the_best_floor():
    ranked = rows(
        record("all", auroc=0.9, auprc=0.9, mcc=0.9, prac_f1=0.1),
        record("tie", auroc=0.7, auprc=0.8, mcc=0.9),
        record("none", auroc=0.1, auprc=0.1, mcc=0.0),
        record("f1", floor=True, auroc=0.7, auprc=0.2, mcc=0.5, prac_f1=0.9),
        record("f2", floor=True, auroc=0.1, auprc=0.8, mcc=0.5),
    )
    below = {row["label"]: row["below_floor"] for row in ranked}
    assert below == {"all": [], "tie": ["auroc", "auprc"], "none": ["auroc", "auprc", "mcc"], "f1": [], "f2": []}


def test_the_newest_record_of_a_trial_counts():
    (row,) = rows(record("x", 0, auroc=0.1), record("x", 0, auroc=0.9))
    assert row["metrics"]["auroc"]["mean"] == 0.9


def test_splits_are_chosen_and_unknown_ones_refused():
    first, second = record("x", split="a"), record("y", split="b", dataset="e")
    assert [row["split"] for row in rows(first, second)] == ["a", "b"]
    assert [row["label"] for row in rows(first, second, splits=["b"])] == ["y"]
    with pytest.raises(UsageError, match="no split 'c'"):
        rows(first, second, splits=["c"])


def test_the_csv_has_the_columns_of_the_design_at_full_precision():
    board = Leaderboard.from_records(
        [
            record("x", 0, auroc=1 / 3),
            record("x", 1, auroc=0.1),
            record("f", floor=True),
            record("b", status="error"),
        ]
    )
    text = board.to_csv()
    table = list(csv.DictReader(io.StringIO(text)))
    assert text.splitlines()[0] == (
        "dataset,protocol,split,rank,detector,family,floor,remarks,n_rows,n_anomalous,seeds,status,coverage,look_ahead,"
        "below_floor,prac_f1_mean,prac_f1_std,auroc_mean,auroc_std,auprc_mean,auprc_std,protocol_version,seal,replay,checked,pretrained_on,"
        "rows_per_second,fit_seconds,score_seconds,peak_memory_mib"
    )
    assert float(next(row["auroc_mean"] for row in table if row["detector"] == "x")) == (1 / 3 + 0.1) / 2
    by_label = {row["detector"]: row for row in table}
    assert by_label["x"]["below_floor"] == "auroc auprc"
    assert by_label["f"]["auroc_std"] == ""
    assert (table[2]["status"], table[2]["auroc_mean"]) == ("error", "")


def test_records_are_written_one_per_line_by_label_and_seed(tmp_path):
    given = [record("y"), record("x", 1), record("x", 0), record("broken", status="error")]
    Leaderboard.from_records(given).write(tmp_path)
    lines = (tmp_path / "d/strict/records.jsonl").read_text().splitlines()
    assert [Record.from_json(line, "line") for line in lines] == [given[3], given[2], given[1], given[0]]


def test_only_tables_of_the_splits_that_are_shown_or_there_are_written(tmp_path):
    def both(auprc):
        one, other = (record("x", auprc=auprc, split=split) for split in ("overall", "valve1"))
        return [replace(one, splits={**one.splits, **other.splits})]

    Leaderboard.from_records(both(0.1), ["valve1"]).write(tmp_path)
    assert [file.name for file in tmp_path.rglob("*.csv")] == ["valve1.csv"]
    Leaderboard.from_records(both(0.9), ["overall"]).write(tmp_path)
    for split in ("overall", "valve1"):
        assert pd.read_csv(tmp_path / f"d/strict/{split}.csv")["auprc_mean"].tolist() == [0.9]


def test_trials_join_committed_ones_by_label_and_seed(tmp_path):
    committed = [record("x", 0, auprc=0.1), record("x", 1), record("y", auprc=0.2), record("z", dataset="e")]
    Leaderboard.from_records(committed).write(tmp_path)
    new = record("x", 0, auprc=0.9)
    Leaderboard.from_records([new]).write(tmp_path)
    lines = (tmp_path / "d/strict/records.jsonl").read_text().splitlines()
    assert [Record.from_json(line, "line") for line in lines] == [new, committed[1], committed[2]]
    with (tmp_path / "d/strict/overall.csv").open() as file:
        assert {row["detector"]: row["auprc_mean"] for row in csv.DictReader(file)} == {"x": "0.7", "y": "0.2"}


def trained(label, seed=0, protocol="strict", **facts):
    return replace(record(label, seed), protocol=protocol, training=(EpisodeTraining("all", facts),))


def test_a_row_has_the_training_facts_of_its_fits():
    (row,) = rows(trained("x", 0, steps=3, loss=0.5), trained("x", 1, steps=4, loss=None))
    assert row["training"] == [
        {"seed": 0, "episode": "all", "steps": 3, "loss": 0.5},
        {"seed": 1, "episode": "all", "steps": 4, "loss": None},
    ]
    assert rows(record("x"))[0]["training"] == []


def test_stored_rows_are_shown_unless_they_ran_again():
    stored = [record(label, auroc=0.9) for label in ("old", "mine")]
    found = rows(replace(record("mine", auroc=0.7), trial="new"), stored=stored)
    by_label = {row["label"]: row for row in found}
    assert (by_label["old"]["stored"], by_label["old"]["remarks"]) == (True, ["stored"])
    assert (by_label["mine"]["stored"], by_label["mine"]["metrics"]["auroc"]["mean"]) == (False, 0.7)


def test_joined_boards_keep_the_last_of_equal_rows_and_rank_all_rows():
    first = Leaderboard.from_records([record("x", auprc=0.3), record("y", auprc=0.5)])
    second = Leaderboard.from_records([record("x", auprc=0.9), record("z", auprc=0.1)])
    frame = Leaderboard.joined([first, second]).frame
    assert list(zip(frame["detector"], frame["rank"], frame["auprc_mean"], strict=True)) == [
        ("x", 1, 0.9), ("y", 2, 0.5), ("z", 3, 0.1),
    ]  # fmt: skip


def test_rows_and_columns_are_chosen_and_the_best_floor_stays():
    board = Leaderboard.from_records(
        [
            record("x", auroc=0.9),
            record("y[a=1,b=2]", auroc=0.8),
            record("f", floor=True, auroc=0.5, auprc=0.5, mcc=0.5),
            record("g", floor=True, auroc=0.4, auprc=0.4, mcc=0.4),
        ]
    )
    chosen = board.chosen(["y[b=2, a=1]"])
    assert list(chosen.frame["detector"]) == ["f", "y[a=1,b=2]"]
    (table,) = chosen.shown(columns=["AUROC,mcc"])
    assert table.header == ["detector", "AUROC", "MCC"]
    (best,) = board.chosen(["x", "y[a=1,b=2]"]).shown()  # without the last row
    assert (best.lead, best.cell_styles) == ("", {})
    assert board.shown()[0].lead
    with pytest.raises(UsageError, match="'z'"):
        board.chosen(["z"])
    with pytest.raises(UsageError, match="'aurocc'"):
        board.shown(columns=["aurocc"])


@pytest.mark.parametrize("text", ["", "[]", '{"skab": 3}', '{"skab": {"overall": "many"}}'])
def test_another_programs_file_of_sessions_is_named(tmp_path, text):
    (tmp_path / "sessions.json").write_text(text)
    with pytest.raises(StoreError, match=r"sessions\.json"):
        known_sessions(tmp_path)
