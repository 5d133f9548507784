"""Choosing trials of a store: by default, by name, by seed, and requests that are ambiguous."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.helpers.data import make_data
from tests.helpers.plans import make_plan
from tsadbench import UsageError
from tsadbench.analysis.stored import select
from tsadbench.execution.runner import run_plan
from tsadbench.execution.store import Store
from tsadbench.execution.trial import Outcome


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """One trial, copied under other names with other metrics: 7 detectors, 2 floors, one failed, one leaky."""
    data = make_data()
    store = Store.create(tmp_path_factory.mktemp("made") / "runs")
    plan = make_plan(["tests.helpers.tiny:Distance"], dataset=data, floors=False)
    (record,) = run_plan(plan, store)
    scores = store.scores(record)

    def add(label, auprc, **changes):
        splits = {name: replace(one, metrics={**one.metrics, "auprc": auprc}) for name, one in record.splits.items()}
        content = {"trial": f"{label}-{changes.get('seed', 0)}", "label": label, "splits": splits, **changes}
        store.add(Outcome(replace(record, **content), scores))

    store.remove([record.trial])
    for place in range(7):
        add(f"d{place}", 0.9 - place / 10)
    add("d1", 0.8, seed=1)
    add("cheat", 0.99, leaky="statistics of the scored rows")
    add("good-floor", 0.4, floor=True)
    add("bad-floor", 0.2, floor=True)
    store.add(Outcome(replace(record, trial="f", label="broken", status="timeout", reason="too long", splits={}), {}))
    return store, data


def labels(chosen):
    return [*chosen.stores]


def test_the_best_five_and_the_best_floor(made):
    store, data = made
    chosen = select(store.path)
    assert labels(chosen) == ["d0", "d1", "d2", "d3", "d4", "good-floor"]
    assert chosen.split == "overall"
    results = chosen.results(data)
    assert [(one.record.label, one.record.seed) for one in results[:3]] == [("d0", 0), ("d1", 0), ("d1", 1)]
    assert len(chosen.results(data, one_each=True)) == 6
    assert len(select(store.path, everything=True).rows) == 10


def test_chosen_detectors_keep_the_requested_order(made):
    store, _ = made
    chosen = select(store.path, detectors=["d6", "cheat", "d6"])
    assert labels(chosen) == ["d6", "cheat"]
    assert not chosen.left_out
    assert labels(chosen.only("cheat")) == ["cheat"]


def test_one_seed(made):
    store, data = made
    chosen = select(store.path, detectors=["d1", "d2"], seed=1)
    assert [(one.record.label, one.record.seed) for one in chosen.results(data)] == [("d1", 1), ("d2", 0)]


def test_several_data_sets_or_protocols_must_be_told_apart(made, tmp_path):
    store, _ = made
    (record, *_) = store.records()
    both = Store.create(tmp_path / "runs")
    with pytest.raises(UsageError, match="runs"):
        select(both.path)
    for name, dataset, protocol in (("a", "small", "strict"), ("b", "small", "skab"), ("c", "large", "strict")):
        both.add(Outcome(replace(record, trial=name, dataset=dataset, protocol=protocol), {}))
    with pytest.raises(UsageError, match="--dataset"):
        select(both.path)
    with pytest.raises(UsageError, match="--protocol"):
        select(both.path, dataset="small")
    assert select(both.path, dataset="small", protocol="skab").rows["protocol"].item() == "skab"
