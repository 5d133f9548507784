from __future__ import annotations

import json
import os
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tests.helpers.plans import make_plan
from tsadbench import StoreError, UsageError
from tsadbench.execution.run_store import Store
from tsadbench.execution.trial import Outcome, run_trial

pytestmark = pytest.mark.usefixtures("tiny_plugin")


@pytest.fixture
def outcome(small_data) -> Outcome:
    plan = make_plan(["distance"], dataset=small_data, floors=False)
    return run_trial(plan.trials[0], plan)


def test_a_trial_comes_back_as_it_was(tmp_path, outcome):
    Store.create(tmp_path / "runs").add(outcome)
    store = Store.open(tmp_path / "runs")
    assert store.records() == (outcome.record,)
    scores = store.scores(outcome.record.trial)
    assert set(scores) == {*outcome.scores, "thresholds"}
    for name, array in outcome.scores.items():
        assert_array_equal(scores[name], array)
    assert_array_equal(scores["thresholds"], [outcome.record.thresholds[0].threshold.value])


def test_a_trial_of_the_same_identity_is_replaced_and_nothing_unfinished_is_left(tmp_path, outcome):
    store = Store.create(tmp_path)
    store.add(outcome)
    store.add(Outcome(replace(outcome.record, status="error", reason="r"), {}, log="log"))
    assert [record.status for record in store.records()] == ["error"]
    assert sorted(os.listdir(tmp_path)) == sorted([outcome.record.trial, "store.json"])
    assert sorted(os.listdir(tmp_path / outcome.record.trial)) == ["log.txt", "record.json"]


def test_a_trial_that_cannot_be_written_leaves_nothing(tmp_path, outcome, monkeypatch):
    store = Store.create(tmp_path)

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(StoreError, match="No space left on device"):
        store.add(outcome)
    assert os.listdir(tmp_path) == ["store.json"]


def test_folders_of_something_else_and_files_are_refused(tmp_path, outcome):
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(UsageError, match=str(tmp_path)):
        Store.create(tmp_path)
    with pytest.raises(UsageError, match="letter"):
        Store.create(tmp_path / "letter.txt")
    with pytest.raises(UsageError, match=str(tmp_path)):
        Store.open(tmp_path)


def test_a_store_of_another_schema_is_refused_with_the_reason(tmp_path):
    Store.create(tmp_path)
    (tmp_path / "store.json").write_text('{"schema": 99}')
    for way in (Store.open, Store.create):
        with pytest.raises(StoreError, match="99"):
            way(tmp_path)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda text: text[: len(text) // 2], "record"),
        (lambda text: text.replace('"schema": 1', '"schema": 7'), "7"),
        (lambda text: json.dumps({**json.loads(text), "seed": "many"}), "seed"),
    ],
)
def test_truncated_and_edited_records_are_named(tmp_path, outcome, edit, message):
    store = Store.create(tmp_path)
    store.add(outcome)
    file = tmp_path / outcome.record.trial / "record.json"
    file.write_text(edit(file.read_text()))
    with pytest.raises(StoreError, match=message) as caught:
        store.records()
    assert str(file) in str(caught.value)


def test_scores_that_are_gone_are_a_store_error(tmp_path, outcome):
    store = Store.create(tmp_path)
    store.add(outcome)
    (tmp_path / outcome.record.trial / "scores.npz").write_bytes(b"PK broken")
    with pytest.raises(StoreError, match="scores"):
        store.scores(outcome.record.trial)
