"""Ranking over several data sets: from records made by hand, and from stored scores."""

from __future__ import annotations

import numpy as np
import pytest

import tsadbench as package
from tests.helpers.committed import commit, made
from tsadbench import UsageError
from tsadbench.base.protocol import SplitJudgement
from tsadbench.base.replay import Replay
from tsadbench.datasets.loading import SUITES, Suite

ONE = {"good": 0.9, "fair": 0.7, "poor": 0.2, "max-z": 0.5}
TWO = {"good": 0.6, "fair": 0.6, "poor": 0.4, "max-z": 0.5}
THREE = {"good": 0.3, "fair": "timeout", "poor": 0.1, "max-z": 0.35}


@pytest.fixture
def tables(tmp_path):
    records = [*made("one", ONE), *made("two", TWO), *made("three", THREE)]
    return commit(tmp_path / "tables", records)


def over_all(*folders, **options):
    (ranking,) = package.rank(folders, **options).over_all
    return ranking


def by_label(ranking):
    return {row["detector"]: row for row in ranking.to_frame().to_dict("records")}


def test_means_by_hand_with_a_failure_as_the_last_rank(tables):
    ranking = over_all(tables)
    rows = by_label(ranking)
    expected = {"good": (1 + 1.5 + 2) / 3, "max-z": (3 + 3 + 1) / 3, "fair": (2 + 1.5 + 4) / 3, "poor": (4 + 4 + 3) / 3}
    assert {label: row["rank"] for label, row in rows.items()} == pytest.approx(expected)
    alone = {"good": (1 + 1.5 + 1) / 3, "max-z": np.nan, "fair": (2 + 1.5 + 3) / 3, "poor": (3 + 3 + 2) / 3}
    assert {label: row["detector_rank"] for label, row in rows.items()} == pytest.approx(alone, nan_ok=True)
    assert list(rows) == ["good", "max-z", "fair", "poor"]
    assert [row["beats_floors"] for row in rows.values()] == pytest.approx([2 / 3, np.nan, 2 / 3, 0.0], nan_ok=True)
    assert (rows["good"]["wins"], rows["good"]["pairs"]) == (3 + 2.5 + 2, 9)
    assert (rows["fair"]["datasets"], rows["fair"]["failed"]) == (3, 1)
    assert (rows["fair"]["three_status"], rows["fair"]["three_rank"]) == ("failed", 4)
    (cells,) = (cells for cells in ranking.tables[0].cells() if "fair" in cells)
    assert cells[4].startswith("2 of 3 ")
    assert sorted(cells[5:]) == ["1.5", "2", "failed"]
    rates = ranking.frames[1].frame.set_index(["first", "second"])["rate"]
    assert rates["good", "fair"] == pytest.approx(2.5 / 3)
    assert rates["fair", "poor"] == pytest.approx(2 / 3)
    assert len(rates) == 6


def test_intervals_are_over_draws_of_the_data_sets(tables):
    ranking = over_all(tables, resamples=4000, seed=3)
    row = by_label(ranking)["good"]
    # The 27 equally likely draws of three data sets from three: means of the ranks 1, 1.5 and 2.
    ranks = [1.0, 1.5, 2.0]
    means = [(a + b + c) / 3 for a in ranks for b in ranks for c in ranks]
    low, high = np.quantile(means, (0.05, 0.95), method="inverted_cdf")
    assert (row["rank_low"], row["rank_high"]) == pytest.approx((low, high))
    # It beats the floors on two of three data sets: one of 27 draws has neither of them, eight have only them.
    assert (row["beats_floors_low"], row["beats_floors_high"]) == pytest.approx((1 / 3, 1.0))
    assert any("4,000 draws" in note for note in ranking.sentences)
    assert any(note.startswith("3 data sets are few") for note in ranking.sentences)
    assert over_all(tables, seed=3).to_json() == over_all(tables, seed=3).to_json()


def test_an_incomplete_row_has_no_mean_rank_is_named_below_and_changes_no_other_rank(tables):
    before = by_label(over_all(tables))
    commit(tables, made("two", {"partial": 0.99}))
    ranking = over_all(tables)
    after = by_label(ranking)
    for name in ("rank", "detector_rank"):
        assert [after[label][name] for label in before] == pytest.approx(
            [row[name] for row in before.values()], nan_ok=True
        )
    *_, row = after.values()
    assert (row["detector"], row["complete"], row["datasets"], row["lacks"]) == ("partial", False, 1, "one, three")
    assert np.isnan([row["rank"], row["rank_low"], row["detector_rank"]]).all()
    assert row["beats_floors"] == row["two_rank"] == 1.0
    text = ranking.to_markdown()
    assert all("partial" not in line or "one, three" in line for line in text.splitlines())
    assert "one, three: partial" in text
    pair = ranking.frames[1].frame.set_index(["first", "second"]).loc[("good", "partial")]
    assert (pair["datasets"], pair["rate"]) == (1, 0.0)
    assert any("one, three" in note and "partial" in note for note in ranking.sentences)


def test_rows_are_matched_ignoring_bounds_on_the_cost_of_a_fit(tmp_path):
    unbounded = made("one", {"net": 0.7, "net[max_steps=9]": 0.95, "max-z": 0.5})
    folder = commit(tmp_path, [*unbounded, *made("two", {"net[max_steps=9]": 0.4, "max-z": 0.3})])
    ranking = over_all(folder)
    rows = by_label(ranking)
    assert set(rows) == {"net", "max-z"}
    assert all(row["complete"] for row in rows.values())
    assert rows["net"]["one_label"] == "net"  # the unbounded row counts
    assert rows["net"]["two_label"] == "net[max_steps=9]"
    assert any("two" in note and "max_steps" in note for note in ranking.sentences)


def test_marked_rows_take_no_part(tables):
    half = {"overall": SplitJudgement({"prac_f1": 0.5, "auroc": 0.5, "auprc": 0.99}, 100, 35, 0.5)}
    forgetful = Replay(copy="restored", rows=600, unbounded=True, correlation=0.2)
    commit(
        tables,
        [
            *made("one", {"leak": 0.99}, leaky="test rows"),
            *made("two", {"leak": "error"}, leaky="test rows"),
            *made("one", {"half": 0.99}, splits=half),
            *made("one", {"counter": 0.99}, replay=forgetful),
            *(one for dataset in ("two", "three") for one in made(dataset, {"half": 0.01, "counter": 0.01})),
        ],
    )
    ranking = over_all(tables)
    rows = by_label(ranking)
    assert "leak" not in rows
    assert rows["good"]["one_rank"] == 1
    for label in ("half", "counter"):
        assert (rows[label]["complete"], rows[label]["one_status"], rows[label]["lacks"]) == (False, "marked", "one")
    assert "leak failed" not in "\n".join(ranking.sentences)


def test_a_row_in_two_folders_comes_from_the_first_where_it_did_not_fail(tables, tmp_path):
    again = commit(tmp_path / "again", made("three", {"fair": 0.9, "good": 0.01, "new": 0.5, "max-z": 0.0}))
    rows = by_label(over_all(tables, again))
    assert rows["fair"]["three_status"] == "ok"
    assert [rows[label]["three_value"] for label in ("good", "new", "max-z")] == [0.3, 0.5, 0.35]


@pytest.fixture
def trio(monkeypatch):
    monkeypatch.setitem(SUITES, "trio", Suite("trio", 7, ("three", "one", "gone")))


@pytest.mark.usefixtures("trio")
def test_a_suite_ranks_only_its_data_sets_and_names_missing_ones(tables):
    ranking = over_all(tables, suites=["trio"])
    assert "suite trio 7," in ranking.frames[0].title
    assert list(ranking.frames[2].frame["dataset"]) == ["three", "one"]
    assert any("gone" in note for note in ranking.sentences)
    found = package.rank(tables, suites=["trio"])
    assert {*found.to_frame()["dataset"]} == {"one", "three"}
    assert by_label(ranking)["good"]["rank"] == 1.5


@pytest.mark.usefixtures("trio")
@pytest.mark.parametrize(
    ("values", "options", "name"),
    [
        ({"one": ONE}, {"suites": ["trio"]}, "trio"),
        ({"one": {"a": 0.1, "b": 0.2}, "three": {"c": 0.1, "a": 0.2}}, {"suites": ["trio"]}, "trio"),
        ({"one": ONE}, {"suites": ["tiro"]}, "tiro"),
        ({"one": ONE}, {"suites": ["trio"], "dataset": "one"}, "^suites: "),
        ({"one": ONE}, {"stability": True}, "stability"),
    ],
)
def test_what_cannot_be_ranked_is_named(tmp_path, values, options, name):
    for dataset, of_dataset in values.items():
        commit(tmp_path, made(dataset, of_dataset))
    with pytest.raises(UsageError, match=name):
        package.rank(tmp_path, **options)
