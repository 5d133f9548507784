"""Committed rankings over suites, held against the records beside them and against rows that were run again."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.helpers.committed import commit, made
from tsadbench import UsageError
from tsadbench.analysis.significance.suite_regression import suite_cells
from tsadbench.datasets.suites import SUITES, Suite

ONE = {"good": 0.9, "fair": 0.7, "poor": 0.2, "max-z": 0.5, "random": 0.1}
TWO = {"good": 0.6, "fair": 0.55, "poor": 0.4, "max-z": 0.5, "random": 0.1}


@pytest.fixture
def boards(tmp_path, monkeypatch, tsadbench):
    """Two data sets and the ranking over both, as a repository has them."""
    monkeypatch.setitem(SUITES, "pair", Suite("pair", 1, ("one", "two", "late")))
    commit(tmp_path, [*made("one", ONE), *made("two", TWO)])
    rank(tmp_path, tsadbench)
    return tmp_path


def rank(boards, tsadbench):
    done = tsadbench("rank", boards, "--suite", "pair", "--write", boards / "suites", "--format", "json")
    assert done.code == 0, done.err


def left(cells):
    return {(cell.label, cell.metric): (cell.baseline, cell.found) for cell in cells if not cell.holds}


def test_nothing_is_compared_where_nothing_is_committed(tmp_path):
    assert suite_cells(commit(tmp_path, made("one", ONE))) == []


def test_records_say_what_is_committed(boards):
    cells = suite_cells(boards)
    assert {(cell.dataset, cell.protocol, cell.split) for cell in cells} == {("suite pair", "strict", "over all")}
    assert len(cells) == 1 + 3 * len(ONE)
    assert left(cells) == {}
    good = {cell.metric: cell.found for cell in cells if cell.label == "good"}
    assert good == {"mean rank": 1.0, "floors beaten": 1.0, "wins": 8.0}


def test_a_deterministic_row_that_moved_past_another_breaks_the_cells_of_both(boards):
    fresh = made("one", {"fair": 0.95})
    assert left(suite_cells(boards, fresh)) == {
        ("good", "mean rank"): (1.0, 1.5),
        ("good", "wins"): (8.0, 7.0),
        ("fair", "mean rank"): (2.0, 1.5),
        ("fair", "wins"): (6.0, 7.0),
    }
    below = left(suite_cells(boards, made("two", {"fair": 0.45})))
    assert below["fair", "floors beaten"] == (1.0, 0.5)
    assert below["max-z", "mean rank"] == (3.0, 2.5)
    # One that moves and passes nobody breaks no cell of the ranking: its own cells in the table do.
    assert left(suite_cells(boards, made("one", {"fair": 0.8}))) == {}


def test_a_row_that_fails_now_is_last(boards):
    found = left(suite_cells(boards, made("one", {"good": "error"})))
    assert found["good", "mean rank"] == (1.0, 3.0)


def test_a_stochastic_row_may_move_as_far_as_its_spread_lets_it(boards, tsadbench):
    seeds = [
        replace(one, seed=seed, trial=f"{dataset}-fair-{seed}")
        for dataset, values in (("one", (0.65, 0.75)), ("two", (0.45, 0.65)))
        for seed, value in enumerate(values)
        for one in made(dataset, {"fair": value})
    ]
    for dataset in ("one", "two"):
        (boards / dataset / "strict" / "records.jsonl").unlink()
    rest = [*made("one", ONE), *made("two", TWO)]
    commit(boards, [one for one in rest if one.label != "fair"] + seeds)
    rank(boards, tsadbench)
    # Its mean of .55 on two spreads by .14: one seed alone may give .62, above good, and .47, below max-z.
    for value in (0.62, 0.47):
        assert left(suite_cells(boards, made("two", {"fair": value}))) == {}
    # On one it spreads by .07, and does not reach random's .1.
    assert ("fair", "mean rank") in left(suite_cells(boards, made("one", {"fair": 0.05})))


def test_fresh_rows_stand_for_what_the_committed_ones_stood_for(boards, tsadbench):
    commit(boards, made("one", {"graphs": 0.3}))
    commit(boards, made("two", {"graphs[graph=correlation]": 0.3}, stands_for="graphs"))
    rank(boards, tsadbench)
    fresh = made("two", {"graphs[graph=correlation]": 0.3})  # run again by its own label
    cells = suite_cells(boards, fresh)
    assert left(cells) == {}
    assert "graphs" in {cell.label for cell in cells}


def test_a_number_that_the_tables_beside_it_contradict_is_told(boards):
    file = boards / "suites" / "pair" / "rank.json"
    content = json.loads(file.read_text())
    rate = next(one for one in content["pairings"] if (one["first"], one["second"]) == ("good", "fair"))["rate"]
    rate["value"], rate["low"] = 0.5, 0.25  # draws need scores: intervals are not compared
    content["standings"][0]["on"]["one"]["rank"] = 3
    content["parts"][0]["best_floor"][1] = 0.4
    content["parts"][1]["dataset_version"] = 2
    content["standings"][1]["n_failed"] = 1
    file.write_text(json.dumps(content))
    assert left(suite_cells(boards)) == {
        ("pairings good fair rate value", "as committed"): (0.5, 1.0),
        ("standings good on one rank", "as committed"): (3, 1.0),
        ("parts one best_floor 1", "as committed"): (0.4, 0.5),
        ("parts two dataset_version", "as committed"): (2, 1),
        ("standings fair n_failed", "as committed"): (1, 0),
    }


def test_a_ranking_that_is_older_than_the_tables_is_told(boards):
    commit(boards, made("late", ONE))
    assert left(suite_cells(boards))["(all)", "data sets"] == (2, 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: content | {"suite": "pair 2"}, "it is of suite pair 2 by strict 2.*give suite pair 1"),
        (lambda content: content | {"protocol_version": 1}, "it is of suite pair 1 by strict 1.*by strict 2"),
        (lambda content: content | {"suite": "pear 1"}, "there is no suite 'pear'; did you mean 'pair'"),
        (lambda content: {"schema": 1}, "expected a ranking as `tsadbench rank --write` writes it"),
    ],
)
def test_other_versions_and_other_files_are_refused_in_one_line(boards, change, message):
    file = boards / "suites" / "pair" / "rank.json"
    file.write_text(json.dumps(change(json.loads(file.read_text()))))
    with pytest.raises(UsageError, match=message):
        suite_cells(boards)
