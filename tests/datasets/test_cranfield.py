"""Cranfield: what its card makes of the authors' MATLAB files, and its couplings."""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path

import numpy as np
import pytest
import scipy.io

from tests.helpers.published import made_up, real
from tsadbench.errors import DataError

CARDS = Path(__file__).parents[2] / "tsadbench/datasets/cards"
# Rows of each recording, and those of its faults, counted from 1, as the authors document them.
RECORDINGS = {
    "Set1_1": (5811, [(1565, 5180)]),
    "Set1_2": (4467, [(656, 3776)]),
    "Set1_3": (4321, [(690, 3690)]),
    "Set2_1": (9192, [(2243, 6615)]),
    "Set2_2": (3496, [(475, 2655)]),
    "Set2_3": (3421, [(330, 2466)]),
    "Set3_1": (9090, [(1135, 8351)]),
    "Set3_2": (6272, [(332, 5870)]),
    "Set3_3": (10764, [(595, 9565)]),
    "Set4_1": (7208, [(952, 6293)]),
    "Set4_2": (4451, [(850, 3850)]),
    "Set4_3": (3661, [(240, 3240)]),
    "Set5_1": (2541, [(685, 1171), (1171, 2252)]),
    "Set5_2": (10608, [(1632, 2954), (7030, 7552), (8056, 10607)]),
    "Set6_1": (2800, [(1722, 2799)]),
    "Set6_2": (4830, [(1036, 4829)]),
}
TRAINED = [name for name in RECORDINGS if name.endswith("_1")]
TESTED = [name for name in RECORDINGS if not name.endswith("_1")]


def faulty(name: str) -> np.ndarray:
    """Which rows of a recording are documented as faulty."""
    n_rows, faults = RECORDINGS[name]
    numbers = np.arange(1, n_rows + 1)
    return np.any([(first <= numbers) & (numbers <= last) for first, last in faults], axis=0)


def matlab(case: int, *, columns: int = 24) -> bytes:
    """A file of made-up rows: each value says which recording, row and column it is of."""
    variables = {}
    for place, (name, (n_rows, _)) in enumerate(RECORDINGS.items()):
        if name[3] == str(case):
            row, column = np.indices((n_rows, columns))
            variables[name] = place * 1e6 + row * 25 + column
            variables[f"EvoFault{name[3:]}"] = np.zeros((n_rows, 1))
    file = io.BytesIO()
    scipy.io.savemat(file, variables)
    return file.getvalue()


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    return {f"FaultyCase{case}.mat": matlab(case) for case in range(1, 7)}


@pytest.fixture(scope="module")
def small(files, tmp_path_factory):
    return made_up("cranfield", tmp_path_factory.mktemp("data"), files)


class TestMadeUp:
    def test_trains_on_the_rows_before_the_fault_of_each_first_recording(self, small):
        data, _ = small
        assert [one.id for one in data.train] == TRAINED
        for one in data.train:
            place, before = list(RECORDINGS).index(one.id), RECORDINGS[one.id][1][0][0] - 1
            row, column = np.indices((before, 23))
            assert np.array_equal(one.values, place * 1e6 + row * 25 + column)
            assert np.array_equal(one.time, np.arange(before))

    def test_tests_on_the_other_recordings_whole(self, small):
        data, labels = small
        assert [one.id for one in data.test] == TESTED
        assert [one.n_rows for one in data.test] == [RECORDINGS[name][0] for name in TESTED]
        for name in TESTED:
            assert np.array_equal(labels.rows[name], faulty(name))

    def test_has_a_split_a_case(self, small):
        data, _ = small
        for case in range(1, 7):
            assert data.splits[f"case{case}"] == tuple(name for name in TESTED if name[3] == str(case))

    def test_takes_every_recording_for_a_session_but_the_two_that_share_rows(self, small):
        data, _ = small
        assert set(data.sessions) == set(RECORDINGS)
        assert data.sessions["Set1_3"] == data.sessions["Set6_1"]
        assert len(set(data.sessions.values())) == 15

    def test_says_that_the_files_are_not_the_published_ones(self, small):
        assert any("differ from the published ones" in note for note in small.dataset.notes)

    def test_with_fewer_columns(self, files, tmp_path):
        with pytest.raises(DataError, match=r"FaultyCase2\.mat, variable Set2_1: expected 23 columns, .* found 22"):
            made_up("cranfield", tmp_path, files | {"FaultyCase2.mat": matlab(2, columns=22)})

    def test_with_a_file_that_is_cut_off(self, files, tmp_path):
        with pytest.raises(DataError, match=r": 1 problem\n  FaultyCase3\.mat: it is cut off: .* copy it again"):
            made_up("cranfield", tmp_path, files | {"FaultyCase3.mat": files["FaultyCase3.mat"][:-1000]})


class TestPrior:
    def test_names_every_sensor_and_says_why_of_every_coupling(self, small):
        data, _ = small
        prior = data.prior
        assert prior is not None
        prior.check(data.sensors)
        assert {edge.source for edge in prior.edges} | {edge.target for edge in prior.edges} == set(data.sensors)
        assert all(len(edge.mechanism.split()) >= 5 and edge.mechanism.endswith(".") for edge in prior.edges)
        assert len({(edge.source, edge.target) for edge in prior.edges}) == len(prior.edges)

    def test_description_and_prior_use_the_same_words_and_name_no_fault(self, small):
        data, _ = small
        rows = [line for line in data.description.splitlines() if line.startswith("| ")][1:]
        told = {name: quantity for name, quantity, *_ in (map(str.strip, row.strip("|").split("|")) for row in rows)}
        assert {edge.source: edge.source_quantity for edge in data.prior.edges}.items() <= told.items()
        assert set(told) == set(data.sensors)
        told_of = data.description.lower() + " ".join(edge.mechanism.lower() for edge in data.prior.edges)
        assert not [word for word in ("block", "slug", "bypass", "leak", "pressuri") if word in told_of]


def test_the_committed_events_are_the_documented_ones():
    with (CARDS / "cranfield.events.csv").open() as file:
        rows = list(csv.DictReader(file))
    for name, (n_rows, _) in RECORDINGS.items():
        declared = np.zeros(n_rows, dtype=bool)
        for row in rows:
            if row["recording"] == name:
                declared[int(row["start"]) : int(row["end"]) + 1] = True
        assert np.array_equal(declared, faulty(name))


@pytest.fixture(scope="module")
def data():
    return real("cranfield")


class TestReal:
    def test_has_the_rows_of_the_files(self, data):
        assert sum(one.n_rows for one in data.dataset.train) == 8_296
        assert sum(one.n_rows for one in data.dataset.test) == 56_291
        assert sum(n_rows for n_rows, _ in RECORDINGS.values()) == 92_933
        folder = Path(os.environ["TSADBENCH_DATA"], "cranfield")
        for one in (*data.dataset.train, *data.dataset.test):
            variables = scipy.io.loadmat(folder / f"FaultyCase{one.id[3]}.mat")
            assert np.array_equal(one.values, variables[one.id][: one.n_rows, :23])

    def test_names_are_in_the_files_order(self, data):
        """Drops of pressure are columns of their own, so they tell the order of the columns that they are made of."""
        values = np.concatenate([one.values for one in data.dataset.test])
        by_name = dict(zip(data.dataset.sensors, values.T, strict=True))
        assert np.abs(by_name["PT401"] - by_name["PT408"] - by_name["PT401-PT408"]).mean() < 0.005
        for medium in ("FT104", "FT406"):  # of water, in kg per cubic metre, above 0 and below 50 degrees
            assert np.median(by_name[f"{medium} density"]) > 700
            assert 0 < np.median(by_name[f"{medium} temperature"]) < 50
        for valve in ("VC501", "VC302", "VC101", "LI504"):
            assert by_name[valve].min() >= -1
            assert by_name[valve].max() <= 101

    def test_labels_agree_with_the_sizes_of_the_faults(self, data):
        """Where the authors' EvoFault first changes; in Set2_1 that is 157 rows after the documented beginning."""
        folder = Path(os.environ["TSADBENCH_DATA"], "cranfield")
        late = {}
        for name, (_, faults) in RECORDINGS.items():
            size = scipy.io.loadmat(folder / f"FaultyCase{name[3]}.mat")[f"EvoFault{name[3:]}"].ravel()
            late[name] = int(np.flatnonzero(size != size[0])[0]) + 1 - faults[0][0]
        assert late.pop("Set2_1") == 157
        assert set(late.values()) <= {0, 1, 2}

    def test_one_recording_goes_on_where_another_ends(self, data):
        first = next(one for one in data.dataset.test if one.id == "Set1_3")
        second = next(one for one in data.dataset.train if one.id == "Set6_1")
        assert np.array_equal(first.values[-100:], second.values[:100])
