"""Labels that are shifted, contradict each other, or end too early: by hand, and against stored trials."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.plans import make_plan
from tests.helpers.protocol_plant import SENSORS, plant, recording
from tests.helpers.trials import DISTANCE, LARGEST_Z, make_plant
from tsadbench import Recording
from tsadbench.analysis.audit.label_noise import Fit, fits_of, label_changes, label_noise
from tsadbench.analysis.stored import stored_trials
from tsadbench.execution.runner import run_plan
from tsadbench.execution.store import Store

PROTOCOLS = ("strict", "published", "skab")


def frames(noise):
    """Return a finding's tables: AUPRC and rank by detector and change, and the rows that each change affects."""
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
        assert name == f"without {margin} rows after events"
        np.testing.assert_array_equal(change["a"], np.where(after, -1, labels))
    else:  # there is nothing to leave out
        assert name == "1 row later"


def test_contradictory_rows_are_left_out_wherever_they_are():
    a = recording("a", 10, start=0.0)
    b = Recording("b", np.vstack([a.values[4:8], recording("x", 6).values]), SENSORS, a.time + 4.0)
    c = Recording("c", a.values.copy(), SENSORS, a.time + 100.0)  # equal values, but at another time
    data = plant((recording("free", 50, start=-500.0),), (a, b, c), {"a": slice(5, 7), "c": slice(0, 10)})
    change = label_changes(data)["without contradictory rows"]
    assert {name: np.flatnonzero(rows < 0).tolist() for name, rows in change.items()} == {
        "a": [5, 6],
        "b": [1, 2],
        "c": [],
    }
    alike = plant((recording("free", 50, start=-500.0),), (a, b), {"a": slice(5, 7), "b": slice(1, 3)})
    assert "without contradictory rows" not in label_changes(alike)


def test_changes_of_rank_and_of_auprc_by_hand():
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


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A store with trials under three protocols, and its data."""
    data = make_plant(460)
    store = Store.create(tmp_path_factory.mktemp("made") / "runs")
    for protocol in PROTOCOLS:
        settings = ["skab.train_rows=80"] if protocol == "skab" else []
        detectors = [DISTANCE, LARGEST_Z, "random"]
        run_plan(make_plan(detectors, dataset=data, protocol=protocol, settings=settings, floors=False, seeds=2), store)
    return store, data


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_stored_trials_are_judged_on_the_evaluated_rows_only(protocol, made):
    """With the original labels, the numbers are the protocol's own."""
    store, data = made
    label = "skab[train_rows=80]" if protocol == "skab" else protocol
    found = stored_trials(store.path, dataset=data, protocol=label)
    changes = label_changes(data, shifts=[1, 7], margins=[12])
    auprc, *_ = frames(label_noise("", fits_of(found.on("overall"), data), changes))
    assert list(auprc) == [*changes]
    rows = found.rows[found.rows["split"] == "overall"].set_index("detector")
    assert auprc["as given"].to_dict() == pytest.approx(rows["auprc_mean"].to_dict())
