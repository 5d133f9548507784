"""Runs: what a store holds is not run again, and variants that differ in scoring share a fit."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.helpers.counting import Counting, Telling
from tests.helpers.fits import NotingBox, fits
from tests.helpers.plans import make_plan
from tsadbench.errors import UsageError
from tsadbench.execution.plan import Plan
from tsadbench.execution.record import Record
from tsadbench.execution.runner import run_plan
from tsadbench.execution.store import Store


class Listener:
    """Records the events that it receives."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str]] = []

    def __getattr__(self, what: str):
        return lambda trial, *_: self.heard.append((what, trial.contender.label))


@pytest.fixture
def diary(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr("tsadbench.execution.trial.Box", NotingBox)
    return tmp_path / "diary.txt"


@pytest.fixture
def plan_of(small_data, diary):
    def plan_of(*variants: dict[str, object]) -> Plan:
        detectors = [Counting(diary=str(diary), **variant) for variant in variants]
        return make_plan(detectors, dataset=small_data, floors=False)

    return plan_of


def metrics(records: tuple[Record, ...]) -> list[object]:
    return [record.splits for record in records]


def test_variants_that_differ_in_scoring_share_one_fit(plan_of, diary):
    variants = [{}, {"weight": 2.0}, {"weight": -1.0}]
    together = run_plan(plan_of(*variants), None)
    assert fits(diary) == 1
    apart = [run_plan(plan_of(variant), None)[0] for variant in variants]
    assert fits(diary) == 4
    assert metrics(together) == metrics(apart)
    assert [one.trial for one in together] == [one.trial for one in apart]
    assert together[0].manifest["fit_shared_with"] == [together[1].label, together[2].label]
    assert together[1].fit_seconds == together[0].fit_seconds
    assert apart[0].manifest["fit_shared_with"] == []


def test_what_no_record_can_hold_is_refused_before_the_fit(plan_of, diary, tmp_path):
    store = Store.create(tmp_path / "runs")
    with pytest.raises(UsageError, match=r"weight.* inf"):
        run_plan(plan_of({"weight": math.inf}), store)
    assert fits(diary) == 0
    assert store.about().planned == {}


def test_a_variant_that_fails_does_not_spoil_the_others(plan_of):
    records = run_plan(plan_of({}, {"fails": True}, {"weight": 2.0}), None)
    assert [record.status for record in records] == ["ok", "error", "ok"]
    assert metrics(records)[0] == metrics(run_plan(plan_of({}), None))[0]


def test_what_the_store_holds_is_not_run_again(plan_of, diary, tmp_path):
    store = Store.create(tmp_path / "runs")
    first = run_plan(plan_of({}), store)
    listener = Listener()
    again = run_plan(plan_of({"weight": 2.0}, {}), store, listener)
    assert fits(diary) == 2
    assert again[1] == first[0]
    label = again[0].label
    assert listener.heard == [("kept", first[0].label), ("started", label), ("finished", label)]


def test_failures_and_all_that_rerun_names_are_run_again(plan_of, diary, tmp_path):
    store = Store.create(tmp_path / "runs")
    plan = plan_of({"fails": True}, {"power": 2})
    for expected, rerun in ((2, None), (3, None), (3, set()), (4, {"ok"})):
        records = run_plan(plan, store) if rerun is None else run_plan(plan, store, rerun=rerun)
        assert [record.status for record in records] == ["error", "ok"]
        assert fits(diary) == expected


def test_scored_rows_are_counted(plan_of, small_data):
    training, tests = small_data.dataset.train, small_data.dataset.test
    n_rows = sum(recording.n_rows for recording in (*training, *tests))
    # Variants share a fit; each scores all rows by itself.
    assert [record.rows_scored for record in run_plan(plan_of({}, {"weight": 2.0}), None)] == [n_rows, n_rows]
    plan = make_plan(["t2"], dataset=small_data, protocol="skab", settings=["skab.train_rows=20"], floors=False)
    (record,) = run_plan(plan, None)
    n_fits = len(plan.episodes)
    assert n_fits > 1
    # Each recording is scored by its own fit, whose training rows are scored once more.
    assert record.rows_scored == sum(recording.n_rows for recording in tests) + 20 * n_fits
    (failed,) = run_plan(plan_of({"fails": True}), None)
    assert failed.rows_scored == 0


def test_trials_without_contributions_are_run_again_if_requested(small_data, diary, tmp_path):
    def plan(*, contributions: bool) -> Plan:
        detectors = [Telling(diary=str(diary)), Counting(diary=str(diary)), Telling(diary=str(diary), fails=True)]
        return make_plan(detectors, dataset=small_data, floors=False, contributions=contributions)

    store = Store.create(tmp_path / "runs")
    told, _, _ = run_plan(plan(contributions=False), store)
    assert not store.has_contributions(told)
    before = fits(diary)
    run_plan(plan(contributions=True), store, rerun=set())
    run_plan(plan(contributions=False), store, rerun={"no-contributions"})
    assert fits(diary) == before
    again, *_ = run_plan(plan(contributions=True), store, rerun={"no-contributions"})
    assert fits(diary) == before + 1  # not the one that offers none, nor the one that failed
    assert set(store.contributions(again)) == {f"all/{name}" for name in ("f1", "f2", "g1")}
    run_plan(plan(contributions=True), store, rerun={"no-contributions"})
    assert fits(diary) == before + 1
