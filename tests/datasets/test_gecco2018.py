"""GECCO 2018: what its card makes of R's files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.helpers.published import events, made_up, real
from tsadbench.errors import DataError

SENSORS = ("Tp", "Cl", "pH", "Redox", "Leit", "Trueb", "Cl_2", "Fm", "Fm_2")


def saved(path: Path, frame: pd.DataFrame) -> None:
    rdata = pytest.importorskip("rdata")
    path.parent.mkdir(parents=True, exist_ok=True)
    rdata.write_rda(path, {path.stem: frame})


def frame(seed: int, n_rows: int, *, missing: list[slice], labelled: list[slice], start: float) -> pd.DataFrame:
    values = pd.DataFrame(np.random.default_rng(seed).normal(size=(n_rows, 9)), columns=list(SENSORS))
    for rows in missing:
        values.iloc[rows] = np.nan
    label = np.zeros(n_rows, dtype=bool)
    for rows in labelled:
        label[rows] = True
    values.insert(0, "Time", start + 60.0 * np.arange(n_rows))
    return values.assign(EVENT=label)


@pytest.fixture
def above(tmp_path):
    """A file with an event in row 50, one row that lacks one value, and a second file with two gaps."""
    first = frame(0, 200, missing=[slice(90, 100)], labelled=[slice(50, 55), slice(150, 151)], start=1_470_217_740.0)
    first.loc[120, "Cl"] = np.nan
    second = frame(1, 150, missing=[slice(40, 50), slice(100, 110)], labelled=[slice(60, 70)], start=1_478_591_700.0)
    saved(tmp_path / "gecco2018/geccoIC2018Train.rda", first)
    saved(tmp_path / "gecco2018/geccoIC2018Test.rda", second)
    return tmp_path


class TestMadeUp:
    def test_trains_before_the_first_event_and_tests_on_the_rest(self, above):
        data, labels = made_up("gecco2018", above)
        assert [(one.id, one.n_rows) for one in data.train] == [("geccoIC2018Train/train", 50)]
        assert {one.id: one.n_rows for one in data.test} == {
            "geccoIC2018Train/test/1": 40,
            "geccoIC2018Train/test/2": 20,
            "geccoIC2018Train/test/3": 79,
            "geccoIC2018Test/1": 40,
            "geccoIC2018Test/2": 50,
            "geccoIC2018Test/3": 40,
        }
        assert np.flatnonzero(labels.rows["geccoIC2018Train/test/1"]).tolist() == [0, 1, 2, 3, 4]
        assert np.flatnonzero(labels.rows["geccoIC2018Train/test/3"]).tolist() == [29]
        assert np.flatnonzero(labels.rows["geccoIC2018Test/2"]).tolist() == list(range(10, 20))

    def test_keeps_values_and_times(self, above):
        data, _ = made_up("gecco2018", above)
        assert data.sensors == SENSORS
        expected = np.random.default_rng(1).normal(size=(150, 9))
        one = next(one for one in data.test if one.id == "geccoIC2018Test/2")
        assert np.array_equal(one.values, expected[50:100])
        assert np.array_equal(one.time, 1_478_591_700.0 + 60.0 * np.arange(50, 100))

    def test_splits_and_sessions(self, above):
        data, _ = made_up("gecco2018", above)
        assert {name: len(ids) for name, ids in data.splits.items()} == {"overall": 6, "rest": 3, "test": 3}
        in_one = {id_ for id_, session in data.sessions.items() if session == "2016-08-03"}
        assert in_one == {one.id for one in (*data.train, *data.test)} - {"geccoIC2018Test/2", "geccoIC2018Test/3"}
        assert data.sessions["geccoIC2018Test/2"] != data.sessions["geccoIC2018Test/3"]

    def test_says_how_many_rows_are_left_out(self, above):
        data, _ = made_up("gecco2018", above)
        assert any(note.startswith("31 rows with missing values") for note in data.notes)

    @pytest.mark.parametrize("share", [0.2, 0.9])
    def test_with_a_file_that_is_cut_off(self, above, share):
        path = above / "gecco2018/geccoIC2018Test.rda"
        content = path.read_bytes()
        with pytest.raises(DataError, match=r": 1 problem\n  geccoIC2018Test\.rda: it is cut off; copy it again"):
            made_up("gecco2018", above, {path.name: content[: int(len(content) * share)]})


@pytest.fixture(scope="module")
def data():
    return real("gecco2018")


class TestReal:
    def test_has_the_rows_of_the_files(self, data):
        assert [one.n_rows for one in data.dataset.train] == [16_265]
        rows = {one.id: one.n_rows for one in data.dataset.test}
        rest = sum(rows[id_] for id_ in data.dataset.splits["rest"])
        test = sum(rows[id_] for id_ in data.dataset.splits["test"])
        assert (rest, test) == (139_566 - 16_265 - 1_044 - 1, 139_566 - 24_480)

    def test_has_the_events_of_the_files(self, data):
        labels = data.labels
        assert sum(int(labels.rows[id_].sum()) for id_ in data.dataset.splits["rest"]) == 1_726
        assert sum(int(labels.rows[id_].sum()) for id_ in data.dataset.splits["test"]) == 2_329
        assert events(labels) == 51 + 46
        assert labels.rows["geccoIC2018Train/test/1"][0]

    def test_rows_are_a_minute_apart_within_a_recording(self, data):
        for one in (*data.dataset.train, *data.dataset.test):
            assert set(np.diff(one.time)) == {60.0}

    def test_the_second_file_goes_on_where_the_first_ends(self, data):
        by_id = {one.id: one for one in data.dataset.test}
        assert by_id["geccoIC2018Test/1"].time[0] - by_id["geccoIC2018Train/test/4"].time[-1] == 60.0
        gaps = [by_id[f"geccoIC2018Test/{i + 1}"].time[0] - by_id[f"geccoIC2018Test/{i}"].time[-1] for i in (1, 2)]
        assert [round(gap / 86_400) for gap in gaps] == [8, 9]
