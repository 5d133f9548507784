"""The page on one mean for all rows: what it says is what its records say, and these are what the command prints."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

from tests.helpers.plans import make_plan
from tests.helpers.scripts import load_script
from tsadbench import UsageError
from tsadbench.errors import BrokenTrialWarning
from tsadbench.execution.run_store import Store
from tsadbench.execution.runner import run_plan

ROOT = Path(__file__).parents[2]


@pytest.fixture
def script():
    return load_script(ROOT / "docs" / "studies" / "smoothing.py")


def line(label: str, rows: int, auprc: float, **changed: object) -> dict[str, object]:
    metrics = {"auprc": {"mean": auprc, "std": None}}
    plain = {"label": label, "rows": rows, "floor": False, "leaky": False, "own": 1, "seeds": 1, "status": "ok"}
    return {**plain, "metrics": metrics, **changed}


def test_the_committed_page_says_what_the_committed_records_say(script):
    assert script.PAGE.read_text(encoding="utf-8") == script.page()
    assert "No records yet" not in script.page()


def test_each_data_set_has_the_same_rows_by_every_mean(script):
    lines = script.read()
    assert {one["dataset"] for one in lines} == set(script.SPLITS)
    for dataset, split in script.SPLITS.items():
        labels = [
            {one["label"] for one in lines if (one["dataset"], one["split"], one["rows"]) == (dataset, split, rows)}
            for rows in script.ROWS
        ]
        assert labels[0]
        assert labels == [labels[0]] * len(script.ROWS)


def test_prose_has_no_number_of_its_own(script):
    prose = re.sub(r"<!-- generated.*?<!-- end -->", "", script.PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert not re.findall(r"\d", prose)


@pytest.mark.parametrize("dataset", ["skab", "tep", "pumploop"])
def test_as_scored_rows_are_those_of_the_leaderboard(script, dataset):
    split = script.SPLITS[dataset]
    with (ROOT / "leaderboards" / dataset / script.PROTOCOL / f"{split}.csv").open(encoding="utf-8") as file:
        table = {row["detector"]: row for row in csv.DictReader(file)}
    lines = {one["label"]: one for one in script.read() if (one["dataset"], one["rows"]) == (dataset, 1)}
    assert lines.keys() <= table.keys()
    for label, one in lines.items():
        for name, summary in one["metrics"].items():
            assert summary["mean"] == pytest.approx(float(table[label][f"{name}_mean"]), abs=1e-9), label


def test_ranks_gains_and_who_changes_places_by_hand(script):
    study = script.Study(
        [
            line("one", 1, 0.9), line("one", 10, 0.7),
            line("two", 1, 0.8), line("two", 10, 0.8),
            line("floor", 1, 0.6, floor=True), line("floor", 10, 0.75, floor=True, own=10),
            line("leaky", 1, 1.0, leaky=True), line("leaky", 10, 1.0, leaky=True),
            line("bad", 1, 0.0, status="timeout", metrics={}),
        ]
    )  # fmt: skip
    assert study.labels == ["one", "two", "floor"]
    assert script.table(study)[-1] == "Not in the table: bad (timeout)."
    assert [study.rank(label, 1) for label in study.labels] == [1, 2, 3]
    assert [study.rank(label, 10) for label in study.labels] == [3, 1, 2]
    assert [study.gain(label, 10) for label in study.labels] == [pytest.approx(gain) for gain in (-0.2, 0.0, 0.15)]
    assert study.pairs(10) == [("one", "two"), ("one", "floor")]
    assert (study.above_floors(1), study.above_floors(10)) == (["one", "two"], ["two"])


def test_records_are_what_the_command_prints(script, tsadbench, tmp_path, monkeypatch):
    monkeypatch.setattr(script, "RECORDS", tmp_path / "records.jsonl")
    monkeypatch.setattr(script, "PAGE", tmp_path / "page.md")
    script.PAGE.write_text("<!-- generated: table pumploop -->\n<!-- end -->\n")
    old = [line("old", 1, 0.1, dataset="pumploop"), line("kept", 1, 0.2, dataset="skab")]
    script.RECORDS.write_text("".join(f"{json.dumps(one)}\n" for one in old))
    store = Store.create(tmp_path / "runs")
    run_plan(make_plan(["max-z", "max-z[mean=10]", "all-positive"], dataset="pumploop", floors=False), store)
    script.main(["--store", str(store.path)])
    kept, *lines = script.read()
    assert kept["label"] == "kept"
    for rows in script.ROWS:
        shown = tsadbench("leaderboard", store.path, "--smoothing", rows, "--split", "overall", "--format", "json")
        for row in json.loads(shown.out)["rows"]:
            (one,) = [one for one in lines if (one["label"], one["rows"]) == (row["label"], rows)]
            assert one["metrics"] == {name: row["metrics"][name] for name in script.METRICS}
            assert one["own"] == (10 if row["label"] == "max-z[mean=10]" else 1)
    # A mean of ten rows that the detector takes by itself, and one that is taken of its scores, are the same.
    (inside,) = [one for one in lines if (one["label"], one["rows"]) == ("max-z[mean=10]", 1)]
    (after,) = [one for one in lines if (one["label"], one["rows"]) == ("max-z", 10)]
    for name, summary in inside["metrics"].items():
        assert summary["mean"] == pytest.approx(after["metrics"][name]["mean"], abs=1e-9)
    assert "| max-z[mean=10] (floor) |" in script.PAGE.read_text()
    assert "old" not in script.RECORDS.read_text()


def test_a_row_without_scores_is_named_and_not_in_the_table(script, tmp_path):
    store = Store.create(tmp_path / "runs")
    records = run_plan(make_plan(["max-z", "l2-z"], dataset="pumploop", floors=False), store)
    (gone,) = [one.trial for one in records if one.label == "l2-z"]
    (store.path / gone / "scores.npz").unlink()
    with pytest.warns(BrokenTrialWarning, match=gone):
        study = script.Study(list(script.judged(store)))
    assert (study.labels, study.absent) == (["max-z"], ["l2-z (without scores)"])


def test_a_store_without_trials_of_the_study_is_refused(script, tmp_path):
    with pytest.raises(UsageError, match="holds no trial under strict of skab, tep, pumploop"):
        list(script.judged(Store.create(tmp_path / "runs")))
