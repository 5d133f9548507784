"""ASD and SMD: servers, one entity each; their labels, and the sensors that each event shows in."""

from __future__ import annotations

import functools
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from tests.helpers.published import events, made_up, real
from tsadbench.base.dataset import Cause
from tsadbench.errors import DataError

MACHINES = {
    "asd": [f"omi-{number}" for number in range(1, 13)],
    "smd": [f"machine-{number}" for number in ("1-6", "1-7", "2-1", "2-2", "2-7", "2-8", "3-3", "3-4")],
}
N_SENSORS = {"asd": 19, "smd": 38}
PERIOD = {"asd": 300.0, "smd": 60.0}


def files(name: str) -> dict[str, bytes]:
    """Made-up files: machine number i has 40 + i training rows, 50 + i test rows and an event from row i on."""
    found = {}
    for i, machine in enumerate(MACHINES[name]):
        rng = np.random.default_rng(i)
        labels = np.zeros(50 + i)
        labels[i : i + 10] = 1.0
        for part, values in (
            ("train", rng.random((40 + i, N_SENSORS[name]))),
            ("test", rng.random((50 + i, N_SENSORS[name]))),
            ("test_label", labels),
        ):
            dtype = np.float64 if part == "test_label" else np.float32
            found[f"{machine}_{part}.pkl"] = pickle.dumps(values.astype(dtype), protocol=3)
        last = i + 9 if name == "asd" else i + 10
        found[f"interpretation_label/{machine}.txt"] = f"{i}-{last}:1,{i + 2}\n".encode()
    return found


@pytest.mark.parametrize("name", MACHINES)
class TestMadeUp:
    def test_has_one_entity_a_machine(self, tmp_path, name):
        data, labels = made_up(name, tmp_path, files(name))
        assert data.sensors == tuple(f"x{number}" for number in range(1, N_SENSORS[name] + 1))
        assert [one.id for one in data.train] == [f"{machine}_train" for machine in MACHINES[name]]
        assert [one.id for one in data.test] == [f"{machine}_test" for machine in MACHINES[name]]
        for i, (machine, train, test) in enumerate(zip(MACHINES[name], data.train, data.test, strict=True)):
            assert data.entities[train.id] == data.entities[test.id] == machine
            assert data.sessions[train.id] == data.sessions[test.id] == machine
            rng = np.random.default_rng(i)
            for one, n_rows in ((train, 40 + i), (test, 50 + i)):
                expected = rng.random((n_rows, N_SENSORS[name])).astype(np.float32)
                assert np.array_equal(one.values, expected.astype(np.float64))
                assert np.array_equal(one.time, PERIOD[name] * np.arange(n_rows))
            assert np.flatnonzero(labels.rows[test.id]).tolist() == list(range(i, i + 10))

    def test_knows_which_sensors_an_event_shows_in(self, tmp_path, name):
        _, labels = made_up(name, tmp_path, files(name))
        for i, machine in enumerate(MACHINES[name]):
            assert labels.causes[f"{machine}_test"] == (Cause(i, i + 10, ("x1", f"x{i + 2}")),)

    @pytest.mark.parametrize(
        "line", ["0-9", "a-9:1", "0-9:0", "0-9:1,99", "9-0:1", "0-5000:1", "0-9:1,", "0-9:²", "0-9:x1"]
    )
    def test_with_an_event_that_cannot_be(self, tmp_path, name, line):
        file = f"interpretation_label/{MACHINES[name][1]}.txt"
        content = files(name) | {file: f"0-1:1\n\n{line}\n".encode()}
        with pytest.raises(DataError, match=rf"{MACHINES[name][1]}\.txt, line 3: expected START-END:SENSOR"):
            made_up(name, tmp_path, content)

    def test_with_a_hostile_pickle(self, tmp_path, name):
        class Hostile:
            def __reduce__(self):
                return os.mkdir, (str(tmp_path / "ran"),)

        file = f"{MACHINES[name][2]}_test.pkl"
        with pytest.raises(DataError, match=rf": 1 problem\n  {file}: the pickle asks for '(posix|nt)\.mkdir'"):
            made_up(name, tmp_path, files(name) | {file: pickle.dumps(Hostile())})
        assert not (tmp_path / "ran").exists()

    def test_with_labels_of_another_length(self, tmp_path, name):
        file = f"{MACHINES[name][0]}_test_label.pkl"
        with pytest.raises(DataError, match=rf"{file}: expected 50 labels, .* found 49"):
            made_up(name, tmp_path, files(name) | {file: pickle.dumps(np.zeros(49))})

    def test_with_a_machine_of_fewer_sensors(self, tmp_path, name):
        file = f"{MACHINES[name][3]}_test.pkl"
        content = files(name) | {file: pickle.dumps(np.zeros((53, N_SENSORS[name] - 1)))}
        with pytest.raises(DataError, match=rf"{file}: the sensor 'x{N_SENSORS[name]}' is missing"):
            made_up(name, tmp_path, content)


# Of each data set: rows for training and for testing, anomalous rows, events, events with sensors.
COUNTS = {"asd": (102_331, 51_840, 2_392, 76, 77), "smd": (189_565, 189_569, 12_296, 122, 124)}
# Mean AUROC and AUPRC over machines, as counted from the files: point-wise, all rows.
FLOORS = {
    ("asd", "max-z"): (0.65, 0.15),
    ("asd", "range"): (0.58, 0.19),
    ("smd", "max-z"): (0.80, 0.54),
    ("smd", "l2-z"): (0.80, 0.57),
    ("smd", "range"): (0.73, 0.48),
}


@pytest.fixture(scope="module")
def of():
    """Return a function that loads a data set once."""
    return functools.cache(real)


class TestReal:
    @pytest.mark.parametrize("name", MACHINES)
    def test_has_the_rows_of_the_files(self, of, name):
        data, labels = of(name)
        found = (
            sum(one.n_rows for one in data.train),
            sum(one.n_rows for one in data.test),
            sum(int(rows.sum()) for rows in labels.rows.values()),
            events(labels),
            sum(map(len, labels.causes.values())),
        )
        assert found == COUNTS[name]
        folder = Path(os.environ["TSADBENCH_DATA"], name)
        for one in (*data.train, *data.test):
            assert np.array_equal(one.values, pickle.loads((folder / f"{one.id}.pkl").read_bytes()))

    @pytest.mark.parametrize("name", MACHINES)
    def test_events_with_known_sensors_are_the_labelled_rows(self, of, name):
        """So the rows count from 0, and the last row of an event is read as its authors meant it."""
        _, labels = of(name)
        for id_, rows in labels.rows.items():
            known = np.zeros(len(rows), dtype=bool)
            for cause in labels.causes[id_]:
                known[cause.start : cause.stop] = True
            assert np.array_equal(known, rows)

    @pytest.mark.parametrize(("name", "floor"), FLOORS)
    def test_floors_are_those_that_were_counted(self, of, name, floor):
        data, labels = of(name)
        figures = []
        for train, test in zip(data.train, data.test, strict=True):
            mean, deviation = train.values.mean(axis=0), train.values.std(axis=0)
            z = np.abs(test.values - mean) / np.where(deviation > 1e-9, deviation, 1.0)
            low, high = train.values.min(axis=0), train.values.max(axis=0)
            score = {
                "max-z": lambda z=z: z.max(axis=1),
                "l2-z": lambda z=z: np.sqrt((z**2).sum(axis=1)),
                "range": lambda rows=test.values, low=low, high=high: np.maximum(low - rows, rows - high).max(axis=1),
            }[floor]()
            score = np.maximum(score, 0.0)
            rows = labels.rows[test.id]
            figures.append((roc_auc_score(rows, score), average_precision_score(rows, score)))
        assert np.mean(figures, axis=0) == pytest.approx(FLOORS[name, floor], abs=0.03)

    def test_smd_is_scaled_with_the_rows_of_the_test(self, of):
        """Training and test rows together have their extremes at 0 and 1, for every sensor that varies at all."""
        data, _ = of("smd")
        for train, test in zip(data.train, data.test, strict=True):
            both = np.concatenate([train.values, test.values])
            varies = np.ptp(both, axis=0) > 0
            assert np.array_equal(both[:, varies].min(axis=0), np.zeros(varies.sum()))
            assert np.array_equal(both[:, varies].max(axis=0), np.ones(varies.sum()))
            assert not np.array_equal(train.values[:, varies].max(axis=0), np.ones(varies.sum()))
