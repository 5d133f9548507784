"""Rows from hand-made records: every number here can be checked by hand."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import pytest

from tests.helpers.records import record
from tsadbench import Leaderboard, UsageError
from tsadbench.base import EpisodeTraining
from tsadbench.execution.record import Record


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


def test_a_row_has_just_the_keys_of_the_design():
    (row,) = rows(record("x[a=1]"))
    assert list(row) == [
        "detector", "label", "family", "parameters", "dataset", "dataset_version", "protocol", "protocol_version",
        "split", "seeds", "status", "failed", "n_rows", "n_anomalous", "coverage", "look_ahead", "below_floor",
        "metrics", "threshold", "training", "seconds", "peak_memory_mib", "seal", "seal_reasons", "replay",
        "checked", "failed_checks", "trust", "pretrained_on", "throughput",
    ]  # fmt: skip
    assert list(row["threshold"][0]) == [
        "seed", "episode", "value", "method", "t", "level", "q", "n", "excesses", "gamma", "sigma", "status",
    ]  # fmt: skip
    assert (row["detector"], row["label"]) == ("x", "x[a=1]")
    assert (row["n_rows"], row["n_anomalous"], row["coverage"], row["look_ahead"]) == (100, 35, 1.0, 9)


def test_order_is_by_auprc_then_floors_then_failures():
    ranked = rows(
        record("low", auprc=0.4),
        record("floor-high", floor=True, auprc=0.99),
        record("bad", status="error"),
        record("undefined", auprc=None),
        record("high", auprc=0.9),
        record("floor-low", floor=True, auprc=0.1),
    )
    assert [row["label"] for row in ranked] == ["high", "low", "undefined", "floor-high", "floor-low", "bad"]


def test_one_failed_seed_takes_the_numbers_away_and_is_named():
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


def test_without_floors_nothing_is_said_of_them():
    assert rows(record("x"))[0]["below_floor"] is None


def test_the_newest_record_of_a_trial_counts():
    (row,) = rows(record("x", 0, auroc=0.1), record("x", 0, auroc=0.9))
    assert row["metrics"]["auroc"]["mean"] == 0.9


def test_splits_are_chosen_and_unknown_ones_refused():
    first, second = record("x", split="a"), record("y", split="b", dataset="e")
    assert [row["split"] for row in rows(first, second)] == ["a", "b"]
    assert [row["label"] for row in rows(first, second, splits=["b"])] == ["y"]
    with pytest.raises(UsageError, match="no split 'c'"):
        rows(first, second, splits=["c"])


def test_where_all_trials_failed_there_is_still_a_table():
    (row,) = rows(record("x", status="killed"))
    assert (row["split"], row["status"]) == ("overall", "killed")


def test_the_csv_has_the_columns_of_the_design_at_full_precision():
    board = Leaderboard.from_records(
        [
            record("x", 0, auroc=0.1 + 0.2),
            record("x", 1, auroc=0.1),
            record("f", floor=True),
            record("b", status="error"),
        ]
    )
    text = board.to_csv()
    table = list(csv.DictReader(io.StringIO(text)))
    assert text.splitlines()[0] == (
        "detector,family,seeds,status,coverage,look_ahead,below_floor,prac_f1_mean,prac_f1_std,auroc_mean,auroc_std,"
        "auprc_mean,auprc_std,protocol_version,seal,replay,checked,trust,pretrained_on,"
        "rows_per_second,fit_seconds,score_seconds,peak_memory_mib"
    )
    assert float(table[0]["auroc_mean"]) == (0.1 + 0.2 + 0.1) / 2
    assert table[0]["below_floor"] == "auroc auprc"
    assert table[1]["auroc_std"] == ""
    assert (table[2]["status"], table[2]["auroc_mean"]) == ("error", "")


def test_written_tables_lie_by_data_set_protocol_and_split(tmp_path):
    board = Leaderboard.from_records([record("x"), record("x", dataset="e", split="s", notes=("one file differs",))])
    files = board.write(tmp_path)
    assert [str(file.relative_to(tmp_path)) for file in files] == [
        "d/strict/overall.csv", "d/strict/overall.md",
        "e/strict/s.csv", "e/strict/s.md",
        "d/strict/records.jsonl", "e/strict/records.jsonl",
    ]  # fmt: skip
    assert "one file differs" in (tmp_path / "e/strict/s.md").read_text()
    assert "one file differs" not in (tmp_path / "d/strict/overall.md").read_text()


def test_written_records_come_back_one_a_line_by_label_and_seed(tmp_path):
    given = [record("y"), record("x", 1), record("x", 0), record("broken", status="error")]
    Leaderboard.from_records(given).write(tmp_path)
    lines = (tmp_path / "d/strict/records.jsonl").read_text().splitlines()
    assert [Record.from_json(line, "line") for line in lines] == [given[3], given[2], given[1], given[0]]


def test_trials_join_committed_ones_by_label_and_seed(tmp_path):
    committed = [record("x", 0, auprc=0.1), record("x", 1), record("y", auprc=0.2), record("z", dataset="e")]
    Leaderboard.from_records(committed).write(tmp_path)
    new = record("x", 0, auprc=0.9)
    Leaderboard.from_records([new]).write(tmp_path)
    lines = (tmp_path / "d/strict/records.jsonl").read_text().splitlines()
    assert [Record.from_json(line, "line") for line in lines] == [new, committed[1], committed[2]]
    with (tmp_path / "d/strict/overall.csv").open() as file:
        assert {row["detector"]: row["auprc_mean"] for row in csv.DictReader(file)} == {"x": "0.7", "y": "0.2"}


def test_a_note_on_a_protocol_stands_in_its_tables_only(tmp_path):
    noted = replace(record("x"), protocol_notes=("one file is odd",))
    board = Leaderboard.from_records([noted, replace(record("x"), protocol="published")])
    assert [str(note) for note in board.notes] == ["d, protocol strict: one file is odd"]
    board.write(tmp_path)
    assert "one file is odd" in (tmp_path / "d/strict/overall.md").read_text()
    assert "one file is odd" not in (tmp_path / "d/published/overall.md").read_text()


def trained(label, seed=0, protocol="strict", **facts):
    return replace(record(label, seed), protocol=protocol, training=(EpisodeTraining("all", facts),))


def test_a_row_has_what_its_fits_stated():
    (row,) = rows(trained("x", 0, steps=3, loss=0.5), trained("x", 1, steps=4, loss=None))
    assert row["training"] == [
        {"seed": 0, "episode": "all", "steps": 3, "loss": 0.5},
        {"seed": 1, "episode": "all", "steps": 4, "loss": None},
    ]
    assert rows(record("x"))[0]["training"] == []


def test_rows_whose_fits_did_not_see_all_windows_are_noted():
    board = Leaderboard.from_records(
        [
            trained("whole", share_seen=1.0),
            record("silent"),
            trained("b", share_seen=0.25),
            trained("a", share_seen=0.254),
            trained("c", 0, share_seen=0.37),
            trained("c", 1, share_seen=0.5),
            trained("b", protocol="skab", share_seen=1.0),
        ]
    )
    notes = [
        "d, protocol strict: a, b: saw 25 % of the training windows",
        "d, protocol strict: c: saw 37 % to 50 % of the training windows",
    ]
    assert [str(note) for note in board.notes] == notes
    markdown = board.to_markdown()
    assert all(markdown.count(note) == 1 for note in notes)


def test_rows_with_fits_whose_loss_had_not_levelled_are_noted_in_every_format(tmp_path):
    board = Leaderboard.from_records(
        [
            trained("levelled", levelled=True),
            trained("silent", steps=3),
            record("statistics"),
            trained("b", 0, levelled=False),
            trained("b", 1, levelled=True),
            trained("b", 2, levelled=False),
            trained("a", levelled=False, share_seen=0.5),
        ]
    )
    notes = [
        "d, protocol strict: a, b (2 of 3 fits): training ended while the loss was still falling",
        "d, protocol strict: a: saw 50 % of the training windows",
    ]
    assert sorted(map(str, board.notes)) == notes
    for text in (board.to_markdown(), board.to_html(), board.to_latex()):
        assert text.count("a, b (2 of 3 fits): training ended while the loss was still falling") == 1
    assert Leaderboard.from_records([trained("x", levelled=True), record("y")]).notes == ()
    assert rows(trained("x", levelled=False))[0]["training"] == [{"seed": 0, "episode": "all", "levelled": False}]


def test_a_leaky_row_says_so_and_takes_no_place_among_the_best():
    leaky = replace(record("cheat", auroc=0.9), leaky="statistics of the scored rows")
    board = Leaderboard.from_records([leaky, record("x", auroc=0.8), record("y", auroc=0.7)])
    text = board.to_markdown()
    assert "| ⚠ cheat |" in text
    assert "**.8000**" in text
    assert "**.9000**" not in text
    assert "it uses the statistics of the scored rows." in text
    assert "⚠" not in Leaderboard.from_records([record("x")]).to_markdown()
    by_label = {row["label"]: row for row in json.loads(board.to_json())["rows"]}
    assert by_label["cheat"]["leaky"] == "statistics of the scored rows"
    assert "leaky" not in by_label["x"]


def test_stored_rows_stand_beside_marked_with_their_manifest_unless_made_anew():
    made = {"started": "2026-11-20T10:00:00+00:00", "versions": {"tsadbench": "0.1.0"}}
    stored = [replace(record(label, auroc=0.9), manifest=made) for label in ("old", "mine")]
    board = Leaderboard.from_records([replace(record("mine", auroc=0.7), trial="new", manifest=made)], stored=stored)
    by_label = {row["label"]: row for row in json.loads(board.to_json())["rows"]}
    assert by_label["old"]["stored"] is True
    assert by_label["old"]["manifest"] == made
    assert "stored" not in by_label["mine"]
    assert by_label["mine"]["metrics"]["auroc"]["mean"] == 0.7
    text = board.to_markdown()
    assert "| ° old |" in text
    assert "| mine |" in text
    assert "° stored: made earlier, with tsadbench 0.1.0 on 2026-11-20." in text


def test_a_frame_has_a_row_a_detector_and_split():
    frame = Leaderboard.from_records([record("x", auroc=0.6), record("y", auroc=0.7)]).to_frame()
    assert frame["detector"].tolist() == ["x", "y"]
    assert frame["auroc_mean"].tolist() == [0.6, 0.7]


def test_rows_made_with_other_data_or_threads_are_noted():
    board = Leaderboard.from_records([record("x"), replace(record("y"), threads=2)])
    assert [str(note) for note in board.notes] == ["d: these rows were not all made with the same number of threads"]
    board = Leaderboard.from_records([record("x"), replace(record("y"), manifest={"data_hash": "z"})])
    assert [str(note) for note in board.notes] == ["d: these rows were not all made with the same data"]


def test_seeds_of_one_row_made_with_other_code_are_noted():
    records = [replace(record("x", seed), manifest={"code_hash": code}) for seed, code in ((0, "a"), (1, "b"))]
    (note,) = Leaderboard.from_records(records).notes
    assert str(note) == "d: seeds of one row were made with different versions of its detector's code"
