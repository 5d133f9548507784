"""Which rows train: those before the first event; and recordings that missing values cut."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings

from tests.datasets.cards.test_load import problems
from tests.helpers.cards import CARD, frame
from tsadbench.datasets.cards.reader import load_card

BEFORE = CARD.replace('["train/*.csv"]', '["train/*.csv"]\nrows = "before first event"')
BOTH = BEFORE.replace('["train/*.csv"]', '["test/*.csv"]')
SINGLE = CARD.replace('[train]\nfiles = ["train/*.csv"]\n\n', "").replace(
    "[test]", '[single]\ntrain_rows = "before first event"'
)
CUT = CARD.replace("[train]", '[missing]\npolicy = "cut"\n[train]')


def values(path):
    return pd.read_csv(path)[["flow", "head"]].to_numpy()


class TestBeforeTheFirstEvent:
    def test_a_training_file_gives_the_rows_before_its_first_event(self, plant):
        frame(60, seed=0, faults=(20, 23)).to_csv(plant / "train/a.csv", index=False)
        (plant / "card.toml").write_text(BEFORE)
        data, labels = load_card(plant / "card.toml")
        assert [(one.id, one.n_rows) for one in data.train] == [("train/a", 20), ("train/b", 60)]
        assert np.array_equal(data.train[0].values, values(plant / "train/a.csv")[:20])
        assert list(labels.rows) == ["test/c", "test/d"]

    @pytest.mark.parametrize("card", [BOTH, SINGLE])
    def test_a_file_in_both_parts_is_divided_at_its_first_event(self, plant, card):
        (plant / "card.toml").write_text(card)
        data, labels = load_card(plant / "card.toml")
        assert [(one.id, one.n_rows) for one in data.train] == [("test/c/train", 40), ("test/d/train", 30)]
        assert [(one.id, one.n_rows) for one in data.test] == [("test/c/test", 20), ("test/d/test", 30)]
        truth = pd.read_csv(plant / "test/c.csv")
        assert np.array_equal(data.train[0].values, truth[["flow", "head"]][:40])
        assert np.array_equal(data.test[0].values, truth[["flow", "head"]][40:])
        assert np.array_equal(labels.rows["test/c/test"], truth["fault"][40:] == 1)
        assert data.test[0].time is not None
        assert data.train[0].time is not None
        assert data.test[0].time[0] == data.train[0].time[-1] + 1

    def test_recordings_come_in_the_order_of_the_test_part(self, plant):
        card = BOTH.replace('["test/*.csv"]\nrows', '["test/d.csv"]\nrows')
        (plant / "card.toml").write_text(card)
        data, labels = load_card(plant / "card.toml")
        assert [one.id for one in data.train] == ["test/d/train"]
        assert [one.id for one in data.test] == ["test/c", "test/d/test"] == list(labels.rows)
        assert data.splits["overall"] == ("test/c", "test/d/test")

    def test_an_event_in_the_first_row_leaves_none_to_train(self, plant):
        frame(60, seed=2, faults=(0, 3)).to_csv(plant / "test/c.csv", index=False)
        (plant / "card.toml").write_text(BOTH)
        data, _ = load_card(plant / "card.toml")
        assert [one.id for one in data.train] == ["test/d/train"]
        assert [(one.id, one.n_rows) for one in data.test] == [("test/c/test", 60), ("test/d/test", 30)]
        frame(60, seed=3, faults=(0, 3)).to_csv(plant / "test/d.csv", index=False)
        assert problems(plant / "card.toml") == [
            "card.toml: no training row is left; correct the card's choice of files and rows"
        ]

    @pytest.mark.parametrize("card", [BOTH, SINGLE])
    def test_without_an_event_nothing_is_left_to_test_on(self, plant, card):
        frame(60, seed=2).to_csv(plant / "test/c.csv", index=False)
        (plant / "card.toml").write_text(card)
        (problem,) = problems(plant / "card.toml")
        assert problem.startswith("test/c.csv: recording 'test/c' has no event, so no row is left to test on")

    def test_a_file_in_both_parts_needs_the_rule(self, plant):
        (plant / "card.toml").write_text(BOTH.replace('rows = "before first event"\n', ""))
        assert problems(plant / "card.toml")[0] == (
            "card.toml: test/c.csv is a training file and a test file; take it out of one of them"
        )

    def test_a_file_in_both_parts_is_written_in_one_way(self, plant):
        (plant / "card.toml").write_text(BOTH.replace("[test]", '[test]\nencoding = "cp1252"'))
        assert "test/c.csv is in both parts, but they differ in how it is written" in problems(plant / "card.toml")[0]

    def test_training_files_need_labels(self, plant):
        pd.read_csv(plant / "train/a.csv").drop(columns="fault").to_csv(plant / "train/a.csv", index=False)
        (plant / "card.toml").write_text(BEFORE)
        assert problems(plant / "card.toml")[0].startswith("train/a.csv, line 1: the label column 'fault' is missing")

    def test_patterns_name_the_file_or_its_parts(self, plant):
        (plant / "card.toml").write_text(
            BOTH + '[splits]\nfirst = ["test/c"]\nsecond = ["test/d/test"]\n'
            '[sessions]\none = ["test/c"]\ntwo = ["test/d/*"]\n[entities]\npump = ["test/c", "test/d"]\n'
        )
        data, _ = load_card(plant / "card.toml")
        assert data.splits["first"] == ("test/c/test",)
        assert data.splits["second"] == ("test/d/test",)
        assert data.sessions == {
            "test/c/train": "one", "test/c/test": "one", "test/d/train": "two", "test/d/test": "two"
        }  # fmt: skip
        assert set(data.entities.values()) == {"pump"}


class TestEntities:
    def test_each_needs_training_rows(self, plant):
        text = CARD + '[entities]\nsmall = ["*/a", "*/b", "*/c"]\nlarge = ["*/d"]\n'
        (plant / "card.toml").write_text(text)
        fault = "entities.large: it has no training row; give it a training recording, or leave it out"
        assert problems(plant / "card.toml") == [f"card.toml, line {len(text.splitlines())}: {fault}"]

    def test_an_event_in_the_first_row_may_leave_one_without(self, plant):
        frame(60, seed=2, faults=(0, 3)).to_csv(plant / "test/c.csv", index=False)
        (plant / "card.toml").write_text(BOTH + '[entities]\none = ["test/c"]\ntwo = ["test/d"]\n')
        (problem,) = problems(plant / "card.toml")
        assert "entities.one: it has no training row" in problem


class TestCut:
    def test_pieces_and_what_is_left_out(self, plant):
        table = pd.read_csv(plant / "test/c.csv")
        table.loc[[0, 10, 11, 44], "flow"] = np.nan
        table.loc[[12, 14, 44], "head"] = np.nan
        table.to_csv(plant / "test/c.csv", index=False)
        (plant / "card.toml").write_text(CUT + '[splits]\nfirst = ["test/c"]\n[sessions]\none = ["*"]\n')
        data, labels = load_card(plant / "card.toml")
        assert [(one.id, one.n_rows) for one in data.test] == [
            ("test/c/1", 9), ("test/c/2", 29), ("test/c/3", 15), ("test/d", 60)
        ]  # fmt: skip
        for id_, start, stop in (("test/c/1", 1, 10), ("test/c/2", 15, 44), ("test/c/3", 45, 60)):
            recording = next(one for one in data.test if one.id == id_)
            assert np.array_equal(recording.values, table[["flow", "head"]][start:stop])
            assert np.array_equal(labels.rows[id_], table["fault"][start:stop] == 1)
            assert recording.time is not None
            assert recording.time[0] - data.train[0].time[0] == start
        assert data.splits["first"] == ("test/c/1", "test/c/2", "test/c/3")
        assert set(data.sessions.values()) == {"one"}
        (note,) = data.notes
        assert note == (
            "6 rows with missing values (2.50%) and 1 in pieces of fewer than 2 rows are left out, as its card says, "
            "which cuts 1 recording; 1 of these rows are anomalous"
        )

    def test_shorter_pieces_than_allowed(self, plant):
        table = pd.read_csv(plant / "test/c.csv")
        table.loc[20, "flow"] = np.nan
        table.to_csv(plant / "test/c.csv", index=False)
        (plant / "card.toml").write_text(CUT.replace('"cut"', '"cut"\nat_least = 30'))
        data, _ = load_card(plant / "card.toml")
        assert [(one.id, one.n_rows) for one in data.test] == [("test/c/1", 39), ("test/d", 60)]
        assert "and 20 in pieces of fewer than 30 rows are left out" in data.notes[0]

    def test_training_rows_and_test_rows_are_cut_apart(self, plant):
        table = pd.read_csv(plant / "test/c.csv")
        table.loc[[20, 45], "flow"] = np.nan
        table.to_csv(plant / "test/c.csv", index=False)
        card = BOTH.replace("[train]", '[missing]\npolicy = "cut"\n[train]')
        (plant / "card.toml").write_text(f'{card}[splits]\nafter = ["test/c/test"]\nlast = ["test/c/test/2"]\n')
        data, _ = load_card(plant / "card.toml")
        assert data.splits["after"] == ("test/c/test/1", "test/c/test/2")
        assert data.splits["last"] == ("test/c/test/2",)
        assert [(one.id, one.n_rows) for one in (*data.train, *data.test)] == [
            ("test/c/train/1", 20), ("test/c/train/2", 19), ("test/d/train", 30),
            ("test/c/test/1", 5), ("test/c/test/2", 14), ("test/d/test", 30),
        ]  # fmt: skip

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None)
    @given(st.sets(st.integers(0, 59)), st.integers(1, 8))
    def test_every_complete_row_is_in_one_piece_or_in_a_short_one(self, plant, missing, at_least):
        table = frame(60, seed=2, faults=(40, 50))
        table.loc[sorted(missing), "head"] = np.nan
        table.to_csv(plant / "test/c.csv", index=False)
        (plant / "card.toml").write_text(CUT.replace('"cut"', f'"cut"\nat_least = {at_least}'))
        runs = [
            list(rows)
            for _, rows in table.index[table["head"].notna()].to_series().groupby(table["head"].isna().cumsum())
            if len(rows) >= at_least
        ]
        if len(missing) == 60:
            assert "column 'head': it has no value at all" in problems(plant / "card.toml")[0]
            return
        data, labels = load_card(plant / "card.toml")
        pieces = [one for one in data.test if one.id.startswith("test/c")]
        assert [one.n_rows for one in pieces] == [len(rows) for rows in runs]
        for one, rows in zip(pieces, runs, strict=True):
            assert np.array_equal(one.values, table.loc[rows, ["flow", "head"]])
            assert np.array_equal(labels.rows[one.id], table.loc[rows, "fault"] == 1)

    def test_a_piece_called_like_another_file(self, plant):
        table = pd.read_csv(plant / "test/c.csv")
        table.loc[20, "flow"] = np.nan
        table.to_csv(plant / "test/c.csv", index=False)
        (plant / "test/c").mkdir()
        frame(60, seed=5).to_csv(plant / "test/c/1.csv", index=False)
        (plant / "card.toml").write_text(CUT.replace("test/*.csv", "test/**/*.csv"))
        assert problems(plant / "card.toml") == [
            "card.toml: recordings of 'test/c' and 'test/c/1' would both be called 'test/c/1'; rename a file"
        ]

    def test_nothing_is_cut_where_nothing_is_missing(self, plant):
        expected = load_card(plant / "card.toml")
        (plant / "card.toml").write_text(CUT)
        found = load_card(plant / "card.toml")
        assert found.dataset.content_hash == expected.dataset.content_hash
        assert found.dataset.notes == ()

    @pytest.mark.parametrize(
        ("keys", "expected"),
        [
            ('policy = "cut"\nat_most = 3', 'missing: at_most is for policy = "forward-fill"; leave it out'),
            ('policy = "forward-fill"\nat_least = 3', 'missing: at_least is for policy = "cut"; leave it out'),
        ],
    )
    def test_keys_of_other_policies(self, plant, keys, expected):
        (plant / "card.toml").write_text(CARD.replace("[train]", f"[missing]\n{keys}\n[train]"))
        assert expected in problems(plant / "card.toml")[0]


def test_version(plant):
    assert load_card(plant / "card.toml").dataset.version == 1
    (plant / "card.toml").write_text("version = 4\n" + CARD)
    assert load_card(plant / "card.toml").dataset.version == 4
    (plant / "card.toml").write_text("version = 0\n" + CARD)
    (problem,) = problems(plant / "card.toml")
    assert problem == "card.toml, line 1: version: expected a number greater than or equal to 1, found 0"
