from __future__ import annotations

import codecs
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tests.helpers.plans import make_plan, run_trial
from tsadbench import StoreError, UsageError
from tsadbench.execution.store import Store
from tsadbench.execution.trial import Outcome

pytestmark = pytest.mark.usefixtures("tiny_plugin")


def files(folder: Path) -> list[str]:
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())


@pytest.fixture
def outcome(small_data) -> Outcome:
    plan = make_plan(["distance"], dataset=small_data, floors=False)
    return run_trial(plan.trials[0], plan)


def test_a_trial_comes_back_as_it_was(tmp_path, outcome):
    Store.create(tmp_path / "runs").add(outcome)
    store = Store.open(tmp_path / "runs")
    assert store.records() == (outcome.record,)
    scores = store.scores(outcome.record)
    assert set(scores) == set(outcome.scores)
    for name, array in outcome.scores.items():
        assert_array_equal(scores[name], array)


def test_the_trials_that_were_planned_last_come_last(tmp_path, outcome):
    """Code that was changed back: the older trial is the one that counts."""
    store = Store.create(tmp_path)
    older = replace(outcome.record, trial="older", manifest={**outcome.record.manifest, "started": "2026-01-01"})
    for record in (outcome.record, older):
        store.put(record)
    assert [record.trial for record in store.records()] == ["older", outcome.record.trial]
    store.remember(planned={"distance, seed 0": "older"})
    assert [record.trial for record in store.records()] == [outcome.record.trial, "older"]


def test_a_trial_of_the_same_identity_is_replaced_and_nothing_unfinished_is_left(tmp_path, outcome):
    store = Store.create(tmp_path)
    store.add(outcome)
    store.add(Outcome(replace(outcome.record, status="error", reason="r"), {}, log="log"))
    assert [record.status for record in store.records()] == ["error"]
    trial, scoring = outcome.record.trial, outcome.record.scoring
    names = [f"contributions/{scoring}.npz", f"logs/{trial}.txt", f"records/{trial}.json", f"scores/{scoring}.npz"]
    assert files(tmp_path) == [*names, "store.json"]


def test_trials_share_scores_until_the_last_of_them_is_removed(tmp_path, outcome):
    store = Store.create(tmp_path)
    store.add(outcome)
    store.put(replace(outcome.record, trial="other"))
    store.remove([outcome.record.trial])
    assert store.scores(store.record("other"))
    store.remove(["other"])
    assert files(tmp_path) == ["store.json"]


def test_what_a_dead_writer_left_is_removed_and_what_a_living_one_writes_is_not(tmp_path):
    Store.create(tmp_path)
    with subprocess.Popen([sys.executable, "-c", ""]) as dead:
        dead.wait()
    for number in (dead.pid, os.getpid()):
        (tmp_path / "scores" / f".unfinished-{socket.gethostname()}-{number}-0").write_bytes(b"half")
    Store.create(tmp_path)
    assert files(tmp_path) == [f"scores/.unfinished-{socket.gethostname()}-{os.getpid()}-0", "store.json"]


def test_a_trial_that_cannot_be_written_leaves_nothing(tmp_path, outcome, monkeypatch):
    store = Store.create(tmp_path)

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(StoreError, match="No space left on device"):
        store.add(outcome)
    assert files(tmp_path) == ["store.json"]


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


@pytest.fixture
def read_only(outcome) -> Iterator[Path]:
    """A store that this process may not write to; root, who may write anywhere, becomes another user meanwhile."""
    with tempfile.TemporaryDirectory() as folder:
        runs = Path(folder, "runs")
        Store.create(runs).add(outcome)
        folders = [Path(folder), runs, *(path for path in runs.iterdir() if path.is_dir())]
        for path in folders:
            path.chmod(0o555)
        codecs.lookup("cp437")  # zipfile's; the other user may not be able to import it
        user = os.geteuid()
        os.seteuid(user or 65_534)
        yield runs
        os.seteuid(user)
        for path in folders:
            path.chmod(0o755)


def test_a_read_only_store_is_read_and_not_written_to(read_only, outcome):
    store = Store.open(read_only)
    assert store.records() == (outcome.record,)
    assert store.scores(outcome.record)
    for write in (lambda: store.put(outcome.record), lambda: store.add(outcome), lambda: store.remove(store.trials())):
        with pytest.raises(StoreError):
            write()
    with pytest.raises(UsageError):
        Store.create(read_only)


@pytest.mark.parametrize("folder", ["records", "scores"])
def test_a_folder_that_is_a_link_is_refused(tmp_path, folder):
    Store.create(tmp_path / "runs")
    (tmp_path / "runs" / folder).rmdir()
    (tmp_path / "runs" / folder).symlink_to(tmp_path)
    with pytest.raises(StoreError, match="link"):
        Store.open(tmp_path / "runs")
