"""Labels that are shifted, contradict each other, or end too early: against rows counted by hand and scikit-learn."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from tests.helpers.plans import make_plan
from tests.helpers.protocol_plant import SENSORS, plant
from tests.helpers.stored import stored
from tests.helpers.trials import DISTANCE, LARGEST_Z, make_plant
from tsadbench import Recording, UsageError
from tsadbench.analysis.audit.label_noise import Fit, fits_of, label_changes, label_noise
from tsadbench.analysis.stored import stored_trials
from tsadbench.base.dataset import Dataset, LabelledDataset, Labels
from tsadbench.execution.runner import run_plan
from tsadbench.execution.store import Store

PROTOCOLS = ("strict", "published", "skab")


def recording(name: str, n_rows: int, *, start: float | None = None) -> Recording:
    values = np.random.default_rng([n_rows, len(name)]).normal(size=(n_rows, 2))
    return Recording(name, values, SENSORS, None if start is None else start + np.arange(float(n_rows)))


def frames(noise):
    """Return AUPRC and rank by row and change, and what each change touches, from the tables of a finding."""
    auprc, rank, changes = (table.frame for table in noise.tables)
    return auprc.set_index(""), rank.set_index(""), changes.set_index("labels")


def one_recording(labels: list[int]):
    data = plant((recording("free", 50),), (recording("a", len(labels)),))
    data.labels.rows["a"].flags.writeable = True
    data.labels.rows["a"][:] = labels
    return data


def test_shifted_labels_repeat_the_one_at_the_border():
    data = one_recording([1, 0, 0, 1, 1, 0, 0])
    changes = label_changes(data, shifts=[2])
    assert changes["2 rows later"]["a"].tolist() == [1, 1, 1, 0, 0, 1, 1]
    assert changes["2 rows earlier"]["a"].tolist() == [0, 1, 1, 0, 0, 0, 0]
    assert changes["as given"]["a"].tolist() == [1, 0, 0, 1, 1, 0, 0]


@given(st.lists(st.booleans(), min_size=3, max_size=40), st.integers(1, 20))
def test_a_margin_is_the_normal_rows_after_an_event(labels: list[bool], margin: int):
    data = one_recording([int(label) for label in labels])
    after = [
        not labels[row] and any(labels[max(0, row - margin) : row]) for row in range(len(labels))
    ]  # by the definition, row by row
    (*_, (name, change)) = label_changes(data, shifts=[1], margins=[margin]).items()
    if any(after):
        assert name == f"{margin} rows after events out"
        np.testing.assert_array_equal(change["a"], np.where(after, -1, labels))
    else:  # there is nothing to leave out
        assert name == "1 row later"


def test_contradictory_rows_are_left_out_wherever_they_stand():
    a = recording("a", 10, start=0.0)
    b = Recording("b", np.vstack([a.values[4:8], recording("x", 6).values]), SENSORS, a.time + 4.0)
    c = Recording("c", a.values.copy(), SENSORS, a.time + 100.0)  # equal values, but at another time
    data = plant((recording("free", 50, start=-500.0),), (a, b, c), {"a": slice(5, 7), "c": slice(0, 10)})
    change = label_changes(data)["contradictory rows out"]
    assert {name: np.flatnonzero(rows < 0).tolist() for name, rows in change.items()} == {
        "a": [5, 6],
        "b": [1, 2],
        "c": [],
    }
    alike = plant((recording("free", 50, start=-500.0),), (a, b), {"a": slice(5, 7), "b": slice(1, 3)})
    assert "contradictory rows out" not in label_changes(alike)


@pytest.mark.parametrize(
    ("options", "name"), [({"shifts": [7]}, "label_shift 7"), ({"margins": [0]}, "label_margin 0")]
)
def test_shifts_beyond_a_recording_and_empty_margins_are_refused(options, name):
    with pytest.raises(UsageError, match=name):
        label_changes(one_recording([0, 0, 1, 1, 0, 0, 0]), **options)


def test_who_changes_places_and_by_how_much():
    data = one_recording([0, 0, 0, 1, 1, 0, 0, 0, 0, 0])
    (name,) = data.labels.rows
    early = {name: np.array([0, 0, 8, 9, 1, 0, 0, 0, 0, 0.0])}
    late = {name: np.array([0, 0, 0, 8, 9, 7, 0, 0, 0, 0.0])}
    fits = [Fit("early", early), Fit("late", late)]
    noise = label_noise("", fits, label_changes(data, shifts=[1], margins=[1]))
    auprc, rank, changes = frames(noise)
    assert auprc["as given"].to_dict() == {"early": pytest.approx((1 + 2 / 3) / 2), "late": 1.0}
    assert rank["as given"].to_dict() == {"early": 2, "late": 1}
    assert auprc.loc["early", "1 row earlier"] == 1.0
    assert auprc.loc["late", "1 row earlier"] == pytest.approx((1 / 2 + 2 / 10) / 2)
    assert changes["which"].fillna("-").tolist() == ["late with early", "-", "-"]
    assert changes.loc["1 row earlier", ["changed rows", "rows left out"]].tolist() == [2, 0]
    assert changes.iloc[-1][["changed rows", "rows left out"]].tolist() == [0, 1]
    assert f"{0.35 - 1.0:.4f} (late, 1 row earlier)" in noise.sentence


def test_scores_of_several_fits_are_never_pooled():
    """Two entities whose scores are of different sizes: each ranks perfectly by itself."""
    data = machines({"a": [0, 0, 1, 1, 0, 0], "b": [0, 1, 1, 0, 0, 0]})
    fits = [
        Fit("x", {"a": np.array([0, 0, 9, 9, 0, 0.0])}),
        Fit("x", {"b": np.array([500, 900, 900, 500, 500, 500.0])}),
        Fit("y", {"b": np.array([0, 1, 0, 0, 0, 0.0])}),
    ]
    auprc, *_ = frames(label_noise("", fits, label_changes(data, shifts=[1], margins=[1])))
    assert auprc["as given"].to_dict() == {"x": 1.0, "y": pytest.approx((1 + 2 / 6) / 2)}
    # Labels a row earlier: rows 1 and 2 of a, where 2 and 3 score highest; rows 0 and 1 of b, where 1 and 2 do.
    of_each = [0.5 * 0.5 + 0.5 * 2 / 6] * 2
    assert auprc.loc["x", "1 row earlier"] == pytest.approx(np.mean(of_each))


def machines(labels: dict[str, list[int]]) -> LabelledDataset:
    """Return a data set of several entities, a test recording each."""
    rows = {name: np.array(one, dtype=np.bool_) for name, one in labels.items()}
    test = tuple(Recording(name, np.arange(2.0 * len(one)).reshape(-1, 2), ("a", "b")) for name, one in rows.items())
    train = tuple(Recording(f"{name} train", np.ones((40, 2)), ("a", "b")) for name in rows)
    entities = {one.id: one.id.split()[0] for one in (*train, *test)}
    splits = {"overall": tuple(rows)}
    return LabelledDataset(Dataset("machines", train, test, splits, entities=entities), Labels(rows, splits))


def test_labels_of_one_class_have_no_auprc():
    data = one_recording([0] * 10)
    noise = label_noise("", [Fit("x", dict.fromkeys(data.labels.rows, np.arange(10.0)))], label_changes(data))
    assert frames(noise)[0].isna().all(axis=None)
    assert noise.grade == "note"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A store under three protocols, whose data have a contradictory stretch."""
    data = make_plant(460)
    store = Store.create(tmp_path_factory.mktemp("made") / "runs")
    for protocol in PROTOCOLS:
        settings = ["skab.train_rows=80"] if protocol == "skab" else []
        detectors = [DISTANCE, LARGEST_Z, "random"]
        run_plan(make_plan(detectors, dataset=data, protocol=protocol, settings=settings, floors=False, seeds=2), store)
    return store, data


def evaluated(protocol: str, data) -> dict[str, np.ndarray]:
    """Return which rows count by what the protocols' pages say, by recording."""
    rows = {one.id: np.arange(one.n_rows) for one in data.dataset.test}
    if protocol != "published":
        return {name: at >= (30 if protocol == "strict" else 80) for name, at in rows.items()}
    n, start, found = sum(map(len, rows.values())), 0, {}
    for name, at in rows.items():
        found[name] = (at + start >= 30) & (at + start <= n - 10)
        start += len(at)
    return found


def scores_on_disk(store: Store, trial: str, protocol: str, data) -> dict[str, np.ndarray]:
    arrays = np.load(stored(store.path, trial).scores)
    if protocol == "published":
        parts = np.split(arrays["test/all/test"], np.cumsum([one.n_rows for one in data.dataset.test])[:-1])
        return dict(zip(data.labels.rows, parts, strict=True))
    return {name: arrays[f"test/{'all' if protocol == 'strict' else name}/{name}"] for name in data.labels.rows}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_stored_trials_are_judged_on_just_the_rows_that_count(protocol, made):
    store, data = made
    label = "skab[train_rows=80]" if protocol == "skab" else protocol
    found = stored_trials(store.path, dataset=data, protocol=label)
    changes = label_changes(data, shifts=[1, 7], margins=[12])
    auprc, *_ = frames(label_noise("", fits_of(found.on("overall"), data), changes))
    assert list(auprc) == [*changes]
    counted = evaluated(protocol, data)
    rows = found.rows[found.rows["split"] == "overall"].set_index("detector")
    for detector, records in rows["records"].items():
        for change, rows_of in changes.items():
            seeds = []
            for record in records:
                scores = scores_on_disk(store, record.trial, protocol, data)
                pairs = []
                for name, labels in rows_of.items():
                    kept = counted[name] & (labels >= 0)
                    pairs.append((labels[kept], scores[name][kept]))
                if protocol == "skab":
                    both = [(y, s) for y, s in pairs if y.any() and not y.all()]
                    seeds.append(np.mean([average_precision_score(y, s) for y, s in both]))
                else:
                    y, s = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
                    seeds.append(average_precision_score(y, s))
            assert auprc.loc[detector, change] == pytest.approx(np.mean(seeds)), (detector, change)
    assert auprc["as given"].to_dict() == pytest.approx(rows["auprc_mean"].to_dict())


@pytest.mark.skab
def test_the_command_line(skab_directory, monkeypatch, tsadbench, tmp_path):
    monkeypatch.setenv("TSADBENCH_DATA", str(skab_directory))
    store = Store.create(tmp_path / "runs")
    run_plan(make_plan(["max-z", "l2-z"], protocol="strict", floors=False), store)
    arguments = ("--runs", store.path, "--label-shift", 3, "--label-margin", 20, "--format", "json")
    shown = tsadbench("data", "audit", "skab", *arguments)
    tables = {one["title"]: one["rows"] for one in json.loads(shown.out)["tables"]}
    names = ["as given", "3 rows earlier", "3 rows later", "contradictory rows out", "20 rows after events out"]
    one_liners, stored = (rows for title, rows in tables.items() if title.startswith("AUPRC by other labels"))
    assert list(stored[0]) == list(one_liners[0]) == ["", *names]
    assert {row[""] for row in stored} == {"max-z", "l2-z"}
    (changes,) = (rows for title, rows in tables.items() if title.startswith("What") and "protocol strict" in title)
    assert changes[2]["rows left out"] == 470  # 57 and 178 rows, each in two recordings
    refused = tsadbench("data", "audit", "skab", "--split", "valve1")
    assert (refused.code, "--runs" in refused.err) == (2, True)
