"""What a page holds of a store with very many trials."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.helpers.records import record
from tsadbench import Leaderboard
from tsadbench.reporting.html import tables
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


@pytest.mark.parametrize(("asked", "n"), [(None, 2), (1, 1), (5, 5)])
def test_of_a_large_one_the_best_detectors_and_floors_of_each_metric_have_figures(asked, n):
    large = board(400)
    extent = Extent.of(large, (), asked)
    assert extent.labels(("d", "strict 2")) == best(large, n)
    (note,) = extent.notes(large)
    assert f" {n} " in note
    assert f"{len(best(large, n))} of 404 " in note


def test_a_table_of_very_many_rows_keeps_the_first_those_with_figures_the_floors_and_the_whole_tables_places():
    large = board(4200)
    extent = Extent.of(large, (), None)
    shown = extent.shown(large.rows)
    assert [row.label for row in shown[:4000]] == [row.label for row in large.rows[:4000]]
    assert best(large, 2) | {"floor1", "bad"} <= {row.label for row in shown}
    assert "leave out" in extent.notes(large)[0]
    (table,) = tables.tables(large, extent=extent)
    assert table["n_left_out"] == 4204 - len(shown)
    (whole,) = tables.tables(large, Extent.of(large, (), 0))
    places = {row["label"]: row["places"] for row in whole["rows"]}
    assert all(row["places"] == places[row["label"]] for row in table["rows"])


def test_a_row_without_all_scores_is_marked_and_has_no_place():
    silent = record("silent", auroc=0.99, auprc=0.99)
    splits = {name: replace(one, coverage=0.9996) for name, one in silent.splits.items()}
    rows = [record("whole", auroc=0.8, auprc=0.8), record("other", auroc=0.7), replace(silent, splits=splits)]
    ranked = Leaderboard.from_records(rows)
    (table,) = tables.tables(ranked, Extent.of(ranked, (), 0))
    shown = {row["label"]: (row["complete"], row["places"].get("auroc")) for row in table["rows"]}
    assert shown == {"silent": (False, None), "whole": (True, 1), "other": (True, 2)}
