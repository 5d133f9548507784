"""Flaws planted into sound data sets: the audit finds each, and the clean twin does not show it."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tsadbench import Recording
from tsadbench.analysis.audit import audit
from tsadbench.analysis.audit.findings import parts_of
from tsadbench.analysis.audit.labels import event_table
from tsadbench.base import mask_runs
from tsadbench.base.dataset import Dataset, LabelledDataset, Labels
from tsadbench.registry import floors

SENSORS = ("level", "flow", "speed")


def recording(name: str, n_rows: int, seed: int, start: float | None = None) -> Recording:
    values = np.random.default_rng(seed).normal(size=(n_rows, len(SENSORS)))
    return Recording(name, values, SENSORS, None if start is None else start + np.arange(float(n_rows)))


def data_set(
    train: list[Recording],
    test: list[Recording],
    events: dict[str, list[slice]],
    entities: dict[str, str] | None = None,
) -> LabelledDataset:
    rows = {one.id: np.zeros(one.n_rows, dtype=np.bool_) for one in test}
    for name, slices in events.items():
        for stretch in slices:
            rows[name][stretch] = True
    splits = {"overall": tuple(rows)}
    dataset = Dataset("plant", tuple(train), tuple(test), splits, entities=entities or {})
    return LabelledDataset(dataset, Labels(rows, splits))


def sound() -> LabelledDataset:
    """Return two training and three test recordings of noise, with labelled events that leave no trace in it."""
    train = [recording(f"train{i}", 400, seed=i) for i in range(2)]
    test = [recording(f"test{i}", 300, seed=10 + i) for i in range(3)]
    places = {"test0": (20, 110, 250), "test1": (60, 190, 230), "test2": (5, 90, 160)}
    return data_set(train, test, {name: [slice(at, at + 15) for at in starts] for name, starts in places.items()})


def changed(data: LabelledDataset, change) -> LabelledDataset:
    """Return the data set with other values: ``change(role, id, values)``."""
    recordings = {
        role: tuple(
            Recording(one.id, change(role, one.id, np.array(one.values)), SENSORS, one.time)
            for one in getattr(data.dataset, role)
        )
        for role in ("train", "test")
    }
    return LabelledDataset(replace(data.dataset, **recordings), data.labels)


def only(found, about: str):
    """Return the only row of the table behind a finding."""
    (frame,) = (table.frame for table in found[about].tables)
    return frame.iloc[0]


PLANTED = ("trivial", "overlap", "shared-train-test", "shared-test-test", "contradicting-labels", "copies", "shift",
           "range", "duplicates", "constant", "constant-in-training", "scaling", "events")  # fmt: skip


def test_the_clean_twin_shows_no_flaw():
    found = audit(sound())
    clean = {one.about: one.grade for one in found.findings}
    assert {about: clean[about] for about in PLANTED} == dict.fromkeys(PLANTED, "good")
    predictors = {"position", "time", *floors()} - {"all-positive", "random"}
    assert set(found["position"].tables[0].frame["predictor"]) == predictors


def test_scaling_by_the_tests_statistics():
    data = sound()
    every = np.concatenate([one.values for one in (*data.dataset.train, *data.dataset.test)])
    train = np.concatenate([one.values for one in data.dataset.train])
    test = np.concatenate([one.values for one in data.dataset.test])

    def of_both(role, name, values):
        # The training rows reach neither bound: the test has the extremes of every sensor.
        return np.clip(values, test.min(0) * 0.9, test.max(0) * 0.9) if role == "train" else values

    outer = changed(data, of_both)
    outer_rows = np.concatenate([one.values for one in (*outer.dataset.train, *outer.dataset.test)])
    by_both = changed(outer, lambda role, name, values: (values - outer_rows.min(0)) / np.ptp(outer_rows, axis=0))
    found = audit(by_both)
    assert found["scaling"].grade == "fault"
    assert "3 of 3 sensors" in found["scaling"].sentence
    assert tuple(only(found, "range")[["move", "scaled by both", "scaled by training"]]) == (3, 3, 0)
    by_train = changed(data, lambda role, name, values: (values - train.min(0)) / np.ptp(train, axis=0))
    assert audit(by_train)["scaling"].grade == "good"
    z_both = changed(data, lambda role, name, values: (values - every.mean(0)) / every.std(0))
    assert audit(z_both)["scaling"].grade == "fault"

    def each(role, name, values):
        own = train if role == "train" else test
        return (values - own.min(0)) / np.ptp(own, axis=0)

    found = audit(changed(data, each))["scaling"]
    assert found.grade == "fault"
    assert "its own statistics" in found.sentence


def test_most_test_rows_in_training_are_a_fault_but_only_a_note_if_the_system_repeats_itself():
    data = sound()
    pool = np.concatenate([one.values for one in data.dataset.train])
    generator = np.random.default_rng(3)
    drawn = changed(data, lambda role, name, v: pool[generator.integers(0, 800, len(v))] if role == "test" else v)
    assert audit(drawn)["overlap"].grade == "fault"
    states = changed(data, lambda role, name, values: np.round(values))
    found = audit(states)
    assert found["overlap"].grade == "note"
    facts = only(found, "overlap")
    train = [tuple(row) for one in states.dataset.train for row in one.values]
    assert facts["second half of training in the first"] == pytest.approx(
        np.mean([row in set(train[:400]) for row in train[400:]])
    )
    test = [tuple(row) for one in states.dataset.test for row in one.values]
    anomalous = np.concatenate(list(states.labels.rows.values()))
    assert facts["test rows in training"] == pytest.approx(np.mean([row in set(train) for row in test]))
    rows = [row in set(train) for row, faulty in zip(test, anomalous, strict=True) if faulty]
    assert facts["anomalous ones"] == pytest.approx(np.mean(rows))


def test_a_copied_recording_and_a_copied_stretch_whatever_their_times():
    data = sound()
    other = data.dataset.test[0].values
    copied = changed(data, lambda role, name, values: np.array(other) if name == "test2" else values)
    found = audit(copied)
    copy = only(found, "copies")
    assert tuple(copy)[:5] == ("test2", 0, 300, "test0", 0)
    labels = copied.labels.rows
    assert copy["with two labels"] == (labels["test0"] != labels["test2"]).sum()
    assert found["copies"].grade == "fault"

    source = data.dataset.train[1].values

    def planted(role, name, values):
        if name == "test1":
            values[200:240] = source[60:100]
            values[7:16] = source[:9]  # nine states: too few
        return values

    found = audit(changed(data, planted))
    copy = only(found, "copies")
    assert tuple(copy)[:6] == ("test1", 200, 40, "train1", 60, "train and test")
    assert pd.isna(copy["with two labels"])
    assert found["copies"].grade == "fault"


def test_rows_of_copied_stretches_that_overlap_count_once():
    data = sound()
    states = np.array(data.dataset.train[1].values[60:81])

    def planted(role, name, values):
        if name == "train1":
            values[80] = 7.0  # it has the first 20 of 21 states, train0 the last 20
        if name == "train0":
            values[100:120] = states[1:]
        if name == "test1":
            values[200:221] = states
        return values

    found = audit(changed(data, planted))["copies"]
    (table,) = found.tables
    of_test = table.frame[table.frame["copy"] == "test1"]
    assert sorted(zip(of_test["from row"], of_test["rows"], strict=True)) == [(200, 10), (201, 20)]
    assert re.search(r"\b21 test rows\b", found.sentence)


def test_a_sensor_that_moves_in_anomalous_rows_alone():
    data = sound()

    def planted(role, name, values):
        values[:, 2] = 5.0
        if role == "test":
            values[data.labels.rows[name], 2] = 6.0
        return values

    found = audit(changed(data, planted))
    facts = only(found, "range")
    assert facts["move in the test only"] == facts["move in anomalies only"] == "speed"
    assert facts["off a training constant"] == 0.0
    assert found["constant-in-training"].grade == "note"
    events = only(found, "events")
    assert tuple(events[["found", "finds", "best alone"]]) == (1.0, 1.0, "speed high")
    assert events["alone by chance"] == pytest.approx(0.0, abs=0.1)


@pytest.mark.parametrize("kind", ["high", "low", "jumps"])
def test_events_that_one_threshold_finds(kind):
    """Four of the nine events are loud, and found by thresholds set on all normal rows, worked out row by row."""
    data = sound()
    loud = [("test0", 110), ("test1", 60), ("test1", 230), ("test2", 160)]

    def planted(role, name, values):
        for where, at in loud:
            if name == where:
                values[at + 5, 1] += -30.0 if kind == "low" else 30.0
                if kind == "jumps":
                    values[at + 5, 1] -= 26.0  # within the range of normal rows, far from its neighbours
                    values[[at + 4, at + 6], 1] = -3.0
        return values

    shown = changed(data, planted)
    facts = only(audit(shown), "events")
    assert tuple(facts[["events", "shortest", "median", "longest"]]) == (9, 15, 15, 15)
    scores = {}
    for one in shown.dataset.test:
        jumps = np.abs(np.diff(one.values, axis=0, prepend=one.values[:1]))
        for _, stop in mask_runs(data.labels.rows[one.id]):
            jumps[stop : stop + 1] = -np.inf
        scores[one.id] = np.hstack([one.values, -one.values, jumps])
    top = np.max([scores[name][~rows].max(0) for name, rows in data.labels.rows.items()], axis=0)
    found = np.array(
        [
            (scores[name][start:stop] > top).any(0)
            for name, rows in data.labels.rows.items()
            for start, stop in mask_runs(rows)
        ]
    )
    assert facts["found"] == pytest.approx(found.any(1).mean())
    assert facts["finds"] == pytest.approx(found.mean(0).max())
    assert found.mean(0).max() >= 4 / 9
    assert facts["best alone"].startswith("flow ")


def test_the_best_threshold_is_chosen_for_random_stretches_as_it_is_for_events():
    """Of the normal rows 1, 3, 2, 4, one is the highest, one the lowest, and two have the largest jump."""
    test = Recording("test", np.array([[1.0], [3.0], [2.0], [4.0], [9.0]]), ("flow",))
    data = data_set([replace(test, id="train")], [test], {"test": [slice(4, 5)]})
    facts = event_table(parts_of(data)).iloc[0]
    assert tuple(facts[["found", "finds"]]) == (1.0, 1.0)
    # With one event, any threshold and the best one find the same stretches: those of rows 0 and 3.
    assert facts["by chance"] == facts["alone by chance"] == pytest.approx(0.5, abs=0.06)


# Entities


def machines(n: int = 3, loud: tuple[str, ...] = ()) -> LabelledDataset:
    """Return machines at very different levels: only its own training rows explain a machine."""
    train, test, events, entities = [], [], {}, {}
    for i in range(n):
        name = f"m{i}"
        for role, rows, into in (("train", 400, train), ("test", 300, test)):
            one = recording(f"{name} {role}", rows, seed=100 * i + rows)
            into.append(Recording(one.id, one.values + 1000.0 * i, SENSORS))
            entities[one.id] = name
        events[f"{name} test"] = [slice(at, at + 12) for at in (20 + 7 * i, 90 + 31 * i, 200, 270 - 9 * i, 240)]
    data = data_set(train, test, events, entities)
    if not loud:
        return data

    def planted(role, name, values):
        if role == "test" and name.split()[0] in loud:
            values[data.labels.rows[name]] += 25.0
        return values

    return changed(data, planted)


def test_each_entity_has_its_own_fits():
    found = audit(machines(loud=("m1",)))
    means, of_each = (table.frame for table in found["position"].tables)
    max_z = of_each.set_index("entity")["max-z"]
    assert list(max_z.index) == ["m0", "m1", "m2"]
    assert max_z["m1"] == 1.0
    assert means.set_index("predictor").loc["max-z", "AUROC"] == pytest.approx(max_z.mean())
    assert 0.4 < max_z["m0"] < 0.6
    # A single model of all machines would put m1 in the middle, and m2 far out.
    assert (found["range"].tables[0].frame["out of range"] < 0.05).all()
    assert set(found["shift"].tables[0].frame["where"]) == {"m0", "m1", "m2"}
    assert re.search(r"max-z.*\b3 entities", found.text("markdown"))
    assert json.loads(found.text("json"))["tables"][0]["rows"][0]["about"] == "anomalies"
