"""Cards for arrays in files: MATLAB, R and pickles, with names from the card and labels from files of their own."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.io

from tests.datasets.cards.test_load import problems
from tsadbench.datasets.cards.reader import load_card
from tsadbench.errors import DataError

RIG = """\
schema = 1
name = "rig"

[train]
files = ["case*.mat"]
variables = ["Set?_1"]

[test]
files = ["case*.mat"]
variables = ["Set?_2"]

[columns]
names = ["flow", "head"]
extra_columns = "ignore"

[labels]
intervals = "events.csv"
"""

SERVERS = """\
schema = 1
name = "servers"

[train]
files = ["*_train.pkl"]

[test]
files = ["*_test.pkl"]

[columns]
names = "x{number}"

[labels]
file = "{id}_label.pkl"
"""


def values(seed: int, columns: int = 3, rows: int = 60) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(rows, columns))


@pytest.fixture
def rig(tmp_path: Path) -> Path:
    """Two files of MATLAB with two recordings of three columns each, and something else."""
    for case in (1, 2):
        sets = {f"Set{case}_{number}": values(10 * case + number) for number in (1, 2)}
        scipy.io.savemat(tmp_path / f"case{case}.mat", {**sets, f"Size{case}": np.zeros((60, 1))})
    (tmp_path / "events.csv").write_text("recording,start,end\nSet1_2,10,19\nSet2_2,0,0\n")
    (tmp_path / "card.toml").write_text(RIG)
    return tmp_path / "card.toml"


@pytest.fixture
def servers(tmp_path: Path) -> Path:
    """Two servers as pickles, with labels in pickles of their own."""
    for seed, name in enumerate(("a", "b")):
        (tmp_path / f"{name}_train.pkl").write_bytes(pickle.dumps(values(seed)))
        (tmp_path / f"{name}_test.pkl").write_bytes(pickle.dumps(values(seed + 5).astype(np.float32)))
        (tmp_path / f"{name}_test_label.pkl").write_bytes(pickle.dumps((np.arange(60) % 7 == seed).astype(float)))
    (tmp_path / "card.toml").write_text(SERVERS)
    return tmp_path / "card.toml"


class TestVariables:
    def test_each_is_a_recording(self, rig):
        data, labels = load_card(rig)
        assert data.sensors == ("flow", "head")
        assert [one.id for one in data.train] == ["Set1_1", "Set2_1"]
        assert [one.id for one in data.test] == ["Set1_2", "Set2_2"]
        for recording, seed in zip((*data.train, *data.test), (11, 21, 12, 22), strict=True):
            assert np.array_equal(recording.values, values(seed)[:, :2])
        assert np.flatnonzero(labels.rows["Set1_2"]).tolist() == list(range(10, 20))

    def test_the_rows_before_the_event_of_a_variable(self, rig):
        text = RIG.replace('["Set?_1"]', '["Set?_2"]\nrows = "before first event"')
        rig.write_text(text.replace("[labels]", "[splits]\nfirst = ['Set1_2']\n[labels]"))
        data, labels = load_card(rig)
        assert [(one.id, one.n_rows) for one in data.train] == [("Set1_2/train", 10)]
        assert [(one.id, one.n_rows) for one in data.test] == [("Set1_2/test", 50), ("Set2_2/test", 60)]
        assert data.splits["first"] == ("Set1_2/test",)
        assert np.flatnonzero(labels.rows["Set1_2/test"]).tolist() == list(range(10))

    def test_an_array_without_a_name_is_called_by_its_file(self, servers):
        expected = [one.id for one in load_card(servers).dataset.train]
        servers.write_text(SERVERS.replace('["*_train.pkl"]', '["*_train.pkl"]\nvariables = ["*"]'))
        assert [one.id for one in load_card(servers).dataset.train] == expected == ["a_train", "b_train"]

    @pytest.mark.parametrize(
        ("old", "new", "expected"),
        [
            ('variables = ["Set?_1"]\n', "", "case1.mat: it holds several arrays, ['Set1_1', 'Set1_2', 'Size1']; pick"),
            (
                '"Set?_1"',
                '"Set?_1", "Run*"',
                "card.toml: train.variables: no array is called 'Run*'; there are",
            ),
            (
                '"Set?_1"',
                '"Set1_1"',
                "case2.mat: none of its arrays is called ['Set1_1'], as train.variables says",
            ),
            ('"Set?_1"', '"Set?_2"', "card.toml: case1.mat, variable Set1_2 is a training file and a test file"),
            (
                'extra_columns = "ignore"',
                "",
                "case1.mat, variable Set1_1: expected 2 columns, as many as",
            ),
            (
                '"head"]',
                '"head", "a", "b"]',
                "case1.mat, variable Set1_1: expected 4 columns, as many as",
            ),
            (
                'names = ["flow", "head"]',
                "",
                "case1.mat, variable Set1_1: its 3 columns have no names; give",
            ),
            (
                'names = ["flow", "head"]',
                'names = "x"',
                "columns.names: expected a list of names, or a text with",
            ),
            (
                '"head"]',
                '"flow"]',
                "columns.names: a name may stand for one column only, these stand for several",
            ),
            ('"Set?_1"]', '"Set?_1"]\njoin = "(a)"', "train: give variables or join, not both"),
        ],
    )
    def test_faults(self, rig, old, new, expected):
        assert old in RIG
        rig.write_text(RIG.replace(old, new, 1))
        found = problems(rig)
        assert any(expected in problem for problem in found), found

    def test_faults_in_a_cell_are_told_with_variable_and_row(self, rig):
        sets = {f"Set1_{number}": values(10 + number) for number in (1, 2)}
        sets["Set1_1"][7, 1] = np.inf
        sets["Set1_2"][9, 0] = np.nan
        scipy.io.savemat(rig.with_name("case1.mat"), sets)
        assert problems(rig) == [
            "case1.mat, variable Set1_1: column 'head': expected a finite number, found inf; correct the cell (row 7, "
            "counted from 0)",
            "case1.mat, variable Set1_2: column 'flow': a value is missing; fill it in, put the column under ignore, "
            'or set missing.policy = "forward-fill" (row 9, counted from 0)',
        ]

    def test_variables_of_a_file_that_has_none(self, plant, edit):
        assert problems(edit('["train/*.csv"]', '["train/*.csv"]\nvariables = ["a"]'))[0] == (
            "train/a.csv: none of its arrays is called ['a'], as train.variables says; it is no file of arrays"
        )


class TestLabelFiles:
    def test_one_label_a_row(self, servers):
        data, labels = load_card(servers)
        assert data.sensors == ("x1", "x2", "x3")
        assert [one.id for one in data.test] == ["a_test", "b_test"]
        assert np.array_equal(data.test[1].values, values(6).astype(np.float32))
        for seed, name in enumerate(("a_test", "b_test")):
            assert np.array_equal(labels.rows[name], np.arange(60) % 7 == seed)

    def test_csv_files_with_and_without_a_header(self, plant, edit):
        expected = load_card(plant / "card.toml").labels
        (plant / "labels").mkdir()
        for name, header in (("c", ["fault"]), ("d", False)):
            table = pd.read_csv(plant / f"test/{name}.csv")
            table.pop("fault").to_csv(plant / f"labels/{name}.csv", index=False, header=header)
            table.to_csv(plant / f"test/{name}.csv", index=False)
        card = edit('label = "fault"\n', 'ignore = ["fault"]\n[labels]\nfile = "labels/{name}.csv"\n')
        loaded = load_card(card)
        assert loaded.labels.content_hash == expected.content_hash
        assert loaded.dataset.folder == plant.resolve()  # a detector may not open the files with the labels

    def test_a_column_of_several(self, plant, edit):
        expected = load_card(plant / "card.toml").labels
        for name in "cd":
            table = pd.read_csv(plant / f"test/{name}.csv")
            table[["fault", "time"]].to_csv(plant / f"{name}.label.csv", index=False)
        keys = 'ignore = ["fault"]\n[labels]\nfile = "{name}.label.csv"\n'
        card = edit('label = "fault"\n', keys)
        assert problems(card)[0] == "c.label.csv: expected one column, found 2; name the labels' by labels.column"
        edit(keys, keys + 'column = "fault"\n')
        assert load_card(card).labels.content_hash == expected.content_hash
        assert "c.label.csv: the label column 'faults' is missing; did you mean 'fault'?" in problems(
            edit('column = "fault"', 'column = "faults"')
        )

    def test_training_files_may_have_labels_too(self, servers):
        (servers.parent / "a_train_label.pkl").write_bytes(pickle.dumps(np.zeros(60)))
        load_card(servers)
        (servers.parent / "a_train_label.pkl").write_bytes(pickle.dumps((np.arange(60) == 7).astype(int)))
        (problem,) = problems(servers)
        assert problem.startswith("a_train.pkl: recording 'a_train' is for training, which takes normal rows only")
        assert problem.endswith("(row 7, counted from 0)")

    def test_the_rows_before_the_first_event_need_them(self, servers):
        servers.write_text(SERVERS.replace('["*_train.pkl"]', '["*_train.pkl"]\nrows = "before first event"'))
        assert "a_train_label.pkl: labels.file 'a_train_label.pkl': there is no such file in" in problems(servers)[0]

    def test_faults_all_in_one_go(self, servers):
        folder = servers.parent
        (folder / "a_test_label.pkl").write_bytes(pickle.dumps(np.zeros(59)))
        (folder / "b_test_label.pkl").write_bytes(pickle.dumps(np.full(60, 2)))
        found = problems(servers)
        assert found[0] == "a_test_label.pkl: expected 60 labels, one for each row of recording 'a_test', found 59"
        assert found[1] == (
            "b_test_label.pkl: column 'label': expected one of the declared values, [1] or [0], found '2'; declare it "
            "or correct it (row 0, counted from 0)"
        )
        (folder / "a_test_label.pkl").unlink()
        (folder / "b_test_label.pkl").write_bytes(pickle.dumps({"labels": [1]}))
        found = problems(servers)
        assert found[0].startswith("a_test_label.pkl: labels.file 'a_test_label.pkl': there is no such file in")
        assert found[1].startswith("b_test_label.pkl: ")

    @pytest.mark.parametrize(
        ("keys", "expected"),
        [
            ('file = "labels.pkl"', "labels: file: expected {id} or {name} in it, so that each recording has its own"),
            ('file = "{id}.pkl"\nunit = "time"\norigin = "recording"', "labels: origin is for intervals; leave it out"),
            ('file = "../{id}.pkl"', "labels.file '../a_test.pkl': expected a path below the card's folder"),
        ],
    )
    def test_faults_in_the_card(self, servers, keys, expected):
        servers.write_text(SERVERS.replace('file = "{id}_label.pkl"', keys))
        assert any(expected in problem for problem in problems(servers))

    def test_a_hostile_pickle_is_refused_by_name(self, servers):
        class Hostile:
            def __reduce__(self):
                return (eval, ("1",))

        (servers.parent / "b_train.pkl").write_bytes(pickle.dumps(Hostile()))
        (problem,) = problems(servers)
        assert problem.startswith("b_train.pkl: ")
        assert "eval" in problem


def test_a_file_without_any_array(servers):
    scipy.io.savemat(servers.with_name("c_train.mat"), {})
    servers.write_text(SERVERS.replace('["*_train.pkl"]', '["*_train.*"]'))
    with pytest.raises(DataError, match=r"c_train\.mat: "):
        load_card(servers)
