"""What a page holds of a store with very many trials."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from tests.helpers.records import record
from tests.helpers.reported import held_content
from tests.helpers.synthetic_store import synthetic_store
from tsadbench import Leaderboard
from tsadbench.base.dataset import DataOptions
from tsadbench.datasets.loading import load_dataset
from tsadbench.reporting.html import tables
from tsadbench.reporting.html.build import write_report
from tsadbench.reporting.html.extent import Extent

METRICS = ("auroc", "auprc", "prac_f1")


def board(n_detectors: int, n_seeds: int = 1, dataset: str = "d") -> Leaderboard:
    rng = np.random.default_rng(n_detectors)
    made = [
        record(f"d{i:04d}", seed, dataset=dataset, **dict(zip(METRICS, rng.random(3).tolist(), strict=True)))
        for i in range(n_detectors)
        for seed in range(n_seeds)
    ]
    # The first and the last of them are the best in a metric each, and the first of equal ones in the third.
    floors = [record(f"floor{i}", floor=True, dataset=dataset, auroc=0.1 * i, auprc=-0.1 * i) for i in range(3)]
    return Leaderboard.from_records([*made, *floors, record("bad", dataset=dataset, status="error")])


def best(of: Leaderboard, n: int) -> set[str]:
    found = {"floor0", "floor2"}
    for metric in METRICS:
        ranked = sorted((row for row in of.rows if row.ok and not row.floor), key=lambda row: -row.metrics[metric].mean)
        found |= {row.label for row in ranked[:n]}
    return found


def test_a_small_store_is_shown_whole():
    small = board(50, n_seeds=4)
    extent = Extent.of(small, (), None)
    assert extent.labels(("d", "strict 2")) == {row.label for row in small.rows}
    assert extent.shown(small.rows) == list(small.rows)
    assert extent.notes(small) == []


@pytest.mark.parametrize(("asked", "n"), [(None, 2), (1, 1), (5, 5)])
def test_of_a_large_one_the_best_detectors_and_floors_of_each_metric_have_figures(asked, n):
    large = board(400)
    extent = Extent.of(large, (), asked)
    assert extent.labels(("d", "strict 2")) == best(large, n)
    (note,) = extent.notes(large)
    assert f"the best {n} detectors and the best floor in each metric on the first split" in note
    assert f"{len(best(large, n))} of 404 detectors" in note


def test_detectors_that_are_named_and_all_of_them_can_be_asked_for():
    large = board(400)
    assert Extent.of(large, ["d0007"], None).labels(("d", "strict 2")) == {"d0007"}
    assert len(Extent.of(large, (), 0).labels(("d", "strict 2"))) == 404


def test_a_table_of_very_many_rows_keeps_the_first_those_with_figures_the_floors_and_the_whole_tables_places():
    large = board(6000)
    extent = Extent.of(large, (), None)
    shown = extent.shown(large.rows)
    assert [row.label for row in shown[:4000]] == [row.label for row in large.rows[:4000]]
    assert best(large, 2) | {"floor1", "bad"} <= {row.label for row in shown}
    assert "leave out" in extent.notes(large)[0]
    (table,) = tables.tables(large, extent=extent)
    assert table["n_left_out"] == 6004 - len(shown)
    (whole,) = tables.tables(large, Extent.of(large, (), 0))
    places = {row["label"]: row["places"] for row in whole["rows"]}
    assert all(row["places"] == places[row["label"]] for row in table["rows"])


def test_many_data_sets_share_the_page():
    many = Leaderboard.joined([board(60, dataset=f"d{i}") for i in range(100)])
    extent = Extent.of(many, (), None)
    assert len(extent.figures) == 8
    assert sum(len(extent.shown(rows)) for rows in many.tables().values()) <= 4000 + 100 * 30
    last = Leaderboard([row for row in many.rows if row.dataset == "d99"])
    assert any("the first 8 of 100 data sets and protocols" in note for note in extent.notes(last))


def test_very_many_seeds_are_shown_in_part():
    many = board(4, n_seeds=20_000)
    extent = Extent.of(many, (), None)
    (table,) = tables.tables(many, extent=extent)
    values = sum(len(of_metric) for row in table["rows"] for of_metric in row["by_seed"].values())
    assert 0 < values <= 250_000
    assert any("seeds" in note for note in extent.notes(many))


def test_the_reasons_of_very_many_failures_do_not_fill_the_page():
    failed = [record("x", seed, status="error") for seed in range(100_000)]
    many = Leaderboard.from_records([replace(one, reason="r" * 100) for one in failed])
    assert len(json.dumps(tables.tables(many, extent=Extent.of(many, (), None)))) < 2e6


def test_a_page_of_a_synthetic_store(tmp_path):
    store = synthetic_store(tmp_path / "runs", 605, [("pumploop", "strict")])
    data = load_dataset("pumploop")(DataOptions())
    told: list[str] = []
    file = write_report(store, lambda _: data, tmp_path, tell=told.append)
    held = held_content(file)
    assert [one["missing"][:44] for one in held["ranks"]] == ["121 detectors are too many for a page to rank"[:44]]
    (content,) = held["boards"]
    assert "605 trials in 1 tables" in told[0]
    labels = [one["label"] for one in content["detectors"]]
    assert {"max-z", "l2-z", "sensor-range", "nearest-neighbour"} & {*labels}
    assert len(labels) <= 2 * 7 + 4
    assert {one["label"] for one in content["trials"]} == set(labels)
    assert all(len(one["detectors"]) == len(labels) for one in content["recordings"])
    assert len(content["tables"][0]["rows"]) == 121
    diagnosed = {row["label"] for row in content["tables"][0]["rows"] if row["diagnostics"]}
    assert diagnosed == set(labels)
    assert file.stat().st_size < 30e6


def test_a_row_without_all_scores_is_marked_and_has_no_place():
    silent = record("silent", auroc=0.99, auprc=0.99)
    splits = {name: replace(one, coverage=0.9996) for name, one in silent.splits.items()}
    rows = [record("whole", auroc=0.8, auprc=0.8), record("other", auroc=0.7), replace(silent, splits=splits)]
    ranked = Leaderboard.from_records(rows)
    (table,) = tables.tables(ranked, Extent.of(ranked, (), 0))
    shown = {row["label"]: (row["complete"], row["places"].get("auroc")) for row in table["rows"]}
    assert shown == {"silent": (False, None), "whole": (True, 1), "other": (True, 2)}


def test_versions_of_a_protocol_are_tables_of_their_own_with_figures_of_their_own():
    two = Leaderboard.from_records([record("now"), replace(record("then"), protocol_version=1)])
    extent = Extent.of(two, (), None)
    assert (extent.labels(("d", "strict 2")), extent.labels(("d", "strict 1"))) == ({"now"}, {"then"})
    assert extent.n_tables == 2
