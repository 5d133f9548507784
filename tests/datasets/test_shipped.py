"""What the shipped data sets contain: their hashes, and comparisons with the authors' files, read in another way."""

from __future__ import annotations

import csv
import functools
import hashlib
import json
import pickle
import warnings
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
import scipy.io

from tests.helpers.published import published_folder, real
from tsadbench.base import mask_runs
from tsadbench.base.dataset import LabelledDataset
from tsadbench.datasets.loading import check_labels


class Expected(NamedTuple):
    """Counts, and SHA-256 digests of what is loaded; all but the first two have 16 digits."""

    rows: tuple[int, int, int, int]  # of training, of test, anomalous ones, events
    content: str  # ids, sensors, times and values
    labels: str  # labels and splits
    splits: str
    sessions: str
    entities: str
    causes: str
    prior: str


EXPECTED = {
    "skab": Expected(
        (9_405, 37_401, 13_067, 34),
        "e98b8cc166145ae8668ec00941daeaab1b841a960304254304c08a6ffcc21922",
        "410911bc188a80fd35c8122c7f8c7d75b17f254d55129635823385d69f3b08de",
        "9384ba6bad652621", "57969081f20ea43d", "", "", "a6f857c840742907",
    ),
    "tep": Expected(
        (500, 21_120, 16_800, 21),
        "f969aebcdab1ce7d8c015e660fa0648b8e5c5a4ad39ea4c267cca06d7ce1ecc3",
        "e62487a0d5ece5b4fc694577c6dd49d78e394e6ce0145e16d9a73b14f08b2420",
        "88d47d43dbed51d4", "665ae8a698a58f50", "", "a5ab3be697c22066", "b221b810727cd6c9",
    ),
    "pumploop": Expected(
        (9_000, 52_394, 19_981, 81),
        "2514ead01f4fdddede21e3fe1ff0c76d0aff1b376ec9b0591129b8af51c973bc",
        "43e00e775b393ad5085fa7ec297c80577ecbfbcc77bd71b6a51b55cfb15e54fc",
        "fd67e701933680f6", "08bf1a2c33687bc1", "", "a524d864b01ea451", "8cac1fa804c5d727",
    ),
    "cranfield": Expected(
        (8_296, 56_291, 39_144, 12),
        "e2610ef71e14830539d7aa53ad0257ea3bc529365ceff33fcf6298cdd776121c",
        "1f3b037185f8876702bd69c2b331a6f12e2bddc0be1ab76ddb3df96464c88af4",
        "4371443477e50d5f", "e01f8f83b07f5717", "", "", "4e73f299f3db5355",
    ),
    "gecco2018": Expected(
        (16_265, 237_342, 4_055, 97),
        "9ccb16da27f1b223ef985c592acb1910bde9c1e85af3e442c5cd55f96f3d7f61",
        "927410f05ca6ebc85194f6adb7a9fdeaf3278d1b70717a6f8a8813f2fc89902a",
        "4e58da28dbc1f1cb", "672d24b74ad4b832", "", "", "",
    ),
    "asd": Expected(
        (102_331, 51_840, 2_392, 76),
        "73d32d1a3d22436627ddf8ae6409cd4b9104b327e341c7bde7678ce0c19be18b",
        "1e1ad81fff8ea2e9ef0b1ab0a89b3c8baa5cae7dc350ee85a4e0d743d86c744f",
        "b50122f56f7bc5e9", "f9a4694ccacb58b5", "f9a4694ccacb58b5", "155549ff51a14cf8", "",
    ),
    "smd": Expected(
        (189_565, 189_569, 12_296, 122),
        "9c527fa93a44dcbce673c4689768ff01ccf0fdd6a4a6b9d74f7d1acc732f52ba",
        "d44925d68817e03910a65540f84af02039a7b1a38b1d813783cf5f0a9ec47ed7",
        "183e5d806187a447", "2ad3dceb7e42be21", "2ad3dceb7e42be21", "c8c95a674a5991a7", "",
    ),
    "causrca": Expected(
        (99_003, 22_279, 7_829, 100),
        "f7f607c6182e534f0fd71e257dd0b0d03b1f6c7f87c86fa46599112a17d569af",
        "6cacecc62e343fdb036f592de3fbf63e0855c1a881249c58698852d1863926be",
        "f2997bf67a41c0df", "481e5c29e707adb3", "", "31ca9b74039125f4", "bb63c22ef03e3c18",
    ),
}  # fmt: skip


def of(value: object) -> str:
    """Return a digest of a JSON value, "" if it is empty."""
    if not value:
        return ""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def content_of(data: LabelledDataset) -> Expected:
    dataset, labels = data
    causes = {
        id_: sorted([cause.start, cause.stop, sorted(cause.sensors)] for cause in of_one)
        for id_, of_one in labels.causes.items()
    }
    edges = sorted((edge.source, edge.target) for edge in dataset.prior.edges) if dataset.prior else []
    train, test = (sum(one.n_rows for one in part) for part in (dataset.train, dataset.test))
    n_events = sum(len(mask_runs(rows)) for rows in labels.rows.values())
    return Expected(
        rows=(train, test, sum(int(rows.sum()) for rows in labels.rows.values()), n_events),
        content=dataset.content_hash,
        labels=labels.content_hash,
        splits=of({name: list(ids) for name, ids in dataset.splits.items()}),
        sessions=of(dict(dataset.sessions)),
        entities=of(dict(dataset.entities)),
        causes=of(causes),
        prior=of(edges),
    )


LONG = {"causrca": pytest.mark.long}  # 40 s to read


@functools.cache
def loaded(name: str) -> LabelledDataset:
    return real(name)


@pytest.mark.parametrize("name", [pytest.param(one, marks=LONG.get(one, ())) for one in EXPECTED])
def test_what_is_loaded(name):
    """Changes of the loaders must keep these digests; if one has to change, the data set needs a new version."""
    data = loaded(name)
    check_labels(data)
    assert content_of(data) == EXPECTED[name]
    assert (data.dataset.name, data.dataset.version) == (name, 1)
    assert data.dataset.citation
    assert data.dataset.licence
    if data.dataset.prior is not None:
        data.dataset.prior.check(data.dataset.sensors)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("tep", ("fault", "disturbance", "sticking")),
        ("cranfield", ("block", "slug", "bypass", "leak", "pressuri")),
        ("pumploop", ("fault", "leak", "unbalance", "wear", "foul", "winding")),
    ],
)
def test_a_description_from_which_a_prior_is_read_does_not_name_the_faults(name, words):
    data = loaded(name).dataset
    text = data.description.lower()
    if name == "tep":  # whole words: "default" may occur
        text = set(text.split())
    assert not [word for word in words if word in text]
    assert all(sensor in data.description for sensor in data.sensors)


def folder(name: str) -> Path:
    return published_folder(name) / name


class TestSkab:
    @pytest.mark.parametrize("file", ["anomaly-free/anomaly-free.csv", "valve1/0.csv", "other/9.csv"])
    def test_every_cell_equals_the_files(self, file):
        """Files with CRLF and with LF line ends, read here by the csv module."""
        dataset, labels = loaded("skab")
        name = "anomaly-free" if file.startswith("anomaly-free") else file.removesuffix(".csv")
        (recording,) = (one for one in (*dataset.train, *dataset.test) if one.id == name)
        with (folder("skab") / file).open(newline="", encoding="utf-8") as text:
            rows = [*csv.DictReader(text, delimiter=";")]
        assert recording.values.tolist() == [[float(row[sensor]) for sensor in dataset.sensors] for row in rows]
        assert recording.time.tolist() == [
            datetime.fromisoformat(row["datetime"]).replace(tzinfo=UTC).timestamp() for row in rows
        ]
        if name in labels.rows:
            assert labels.rows[name].tolist() == [row["anomaly"] == "1.0" for row in rows]


class TestTep:
    def test_recordings_and_labels(self):
        data, labels = loaded("tep")
        assert [one.values.shape for one in data.train] == [(500, 52)]
        assert [one.id for one in data.test] == [f"d{fault:02}" for fault in range(22)]
        assert not labels.rows["d00"].any()
        for fault in range(1, 22):
            assert np.flatnonzero(labels.rows[f"d{fault:02}"]).tolist() == [*range(160, 960)]
        assert set(data.splits["overall"]) - set(data.splits["detectable"]) == {"d03", "d09", "d15"}

    def test_the_training_file_is_read_the_right_way_round(self):
        data, _ = loaded("tep")
        first_line = (folder("tep") / "d00.dat").read_text().splitlines()[0].split()
        assert data.train[0].values[:, 0].tolist() == [float(number) for number in first_line]
        train, normal = data.train[0].values, data.test[0].values
        assert (np.abs(np.median(normal, axis=0) - train.mean(axis=0)) < 2.0 * train.std(axis=0)).all()

    def test_recordings_that_share_rows_share_a_session(self):
        data, _ = loaded("tep")
        for first, second in combinations((*data.train, *data.test), 2):
            n_rows = min(first.n_rows, second.n_rows)
            shared = int((first.values[:n_rows] == second.values[:n_rows]).all(axis=1).sum())
            assert shared == (160 if (first.id, second.id) == ("d04", "d05") else 0)
            assert (data.sessions[first.id] == data.sessions[second.id]) is (shared > 0)


# For each recording: its number of rows, and the rows of its faults, counted from 1, as the authors document.
CRANFIELD = {
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


def test_cranfield_has_the_rows_of_the_files_and_the_documented_faults():
    data, labels = loaded("cranfield")
    assert [one.id for one in data.train] == [name for name in CRANFIELD if name.endswith("_1")]
    assert [one.id for one in data.test] == [name for name in CRANFIELD if not name.endswith("_1")]
    for one in (*data.train, *data.test):
        n_rows, faults = CRANFIELD[one.id]
        numbers = np.arange(1, n_rows + 1)
        faulty = np.any([(first <= numbers) & (numbers <= last) for first, last in faults], axis=0)
        values = scipy.io.loadmat(folder("cranfield") / f"FaultyCase{one.id[3]}.mat")[one.id]
        assert len(values) == n_rows
        if one.id in labels.rows:
            assert labels.rows[one.id].tolist() == faulty.tolist()
        else:  # trains on the rows before its fault
            values = values[: faulty.argmax()]
        assert np.array_equal(one.values, values[:, :23])
        assert np.array_equal(one.time, np.arange(one.n_rows))


def test_gecco_is_cut_where_a_value_is_missing():
    rdata = pytest.importorskip("rdata")
    data, labels = loaded("gecco2018")
    for part, name in (("rest", "geccoIC2018Train"), ("test", "geccoIC2018Test")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # rdata does not know R's class of times
            (frame,) = rdata.read_rda(folder("gecco2018") / f"{name}.rda").values()
        frame = frame.iloc[16_265:] if part == "rest" else frame
        frame = frame[frame[[*data.sensors]].notna().all(axis=1)]
        mine = [one for one in data.test if one.id in data.splits[part]]
        assert np.array_equal(np.concatenate([one.values for one in mine]), frame[[*data.sensors]])
        assert np.concatenate([labels.rows[one.id] for one in mine]).tolist() == frame["EVENT"].astype(bool).tolist()
        for one in mine:
            assert set(np.diff(one.time)) == {60.0}


@pytest.mark.parametrize("name", ["asd", "smd"])
def test_servers_have_the_rows_of_the_files_and_sensors_for_each_labelled_row(name):
    """So causes count rows from 0, and the last row of an event is read as its authors meant it."""
    data, labels = loaded(name)
    for one in (*data.train, *data.test):
        assert np.array_equal(one.values, pickle.loads((folder(name) / f"{one.id}.pkl").read_bytes()))
        assert data.entities[one.id] == data.sessions[one.id] == one.id.rpartition("_")[0]
    for id_, rows in labels.rows.items():
        assert rows.tolist() == (pickle.loads((folder(name) / f"{id_}_label.pkl").read_bytes()) == 1).tolist()
        known = np.zeros(len(rows), dtype=bool)
        for cause in labels.causes[id_]:
            known[cause.start : cause.stop] = True
        assert np.array_equal(known, rows)


@functools.cache
def causrca_files() -> dict[str, pd.DataFrame]:
    """The files of every ninth recording, by id."""
    data = loaded("causrca").dataset
    paths = {one.id: folder("causrca") / f"real_op/dataset_{one.id}.csv" for one in data.train}
    for one in data.test:
        (paths[one.id],) = (folder("causrca") / f"dig_twin/exp_{one.id}").glob("*.csv")
    return {
        id_: pd.read_csv(path, dtype={"value": "str"}, keep_default_na=False) for id_, path in [*paths.items()][::9]
    }


@LONG["causrca"]
class TestCausrca:
    """Every choice in its card is derived from the files again."""

    def test_each_row_holds_the_last_value_before_the_next_row(self):
        data = loaded("causrca").dataset
        recordings = {one.id: one for one in (*data.train, *data.test)}
        for id_, frame in causrca_files().items():
            mine = frame[frame["node"].isin(data.sensors)]
            numbers = mine["value"].replace({"True": "1", "False": "0"}).astype(np.float64)
            last = numbers.groupby([np.floor(mine["time_s"]).astype(int), mine["node"]]).last().unstack()
            n_rows = int(frame["time_s"].iloc[-1]) + 1
            expected = last.reindex(range(n_rows)).ffill()[[*data.sensors]]
            assert np.array_equal(recordings[id_].values, expected)
            assert np.array_equal(recordings[id_].time, np.arange(float(n_rows)))

    def test_no_sensor_is_an_alarm_or_a_counter(self):
        kinds = pd.concat(causrca_files().values()).drop_duplicates("node").set_index("node")["type"]
        assert {kinds[sensor] for sensor in loaded("causrca").dataset.sensors} == {"Binary", "Continuous"}

    def test_labels_and_causes_are_the_authors(self):
        data, labels = loaded("causrca")
        for one in data.test:
            run = folder("causrca") / "dig_twin" / f"exp_{one.id}"
            times = json.loads((run / "causes.json").read_text())
            start, end = times["cause_start_at"], times["cause_end_at"]
            expected = (one.time + 1 > start) & (one.time <= end)  # a row stands for its second
            assert labels.rows[one.id].tolist() == expected.tolist(), one.id
            (about,) = run.parent.glob("*_description.json")
            blamed = set(json.loads(about.read_text())["manipulatedVars"]) & set(data.sensors)
            assert {sensor for cause in labels.causes.get(one.id, ()) for sensor in cause.sensors} == blamed

    def test_the_prior_is_the_experts_graph_between_the_sensors(self):
        graph = pd.read_csv(folder("causrca") / "expert_graph/all_edges.csv")
        pairs = set(zip(graph["source_label"], graph["target_label"], strict=True))
        data = loaded("causrca").dataset
        found = {(edge.source, edge.target) for edge in data.prior.edges}
        assert found == {pair for pair in pairs if set(pair) <= set(data.sensors)}
