"""The index of a large store is a cache: whatever happens to it or to the records, lists say what the records say."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.helpers.records import record
from tsadbench.errors import BrokenTrialWarning
from tsadbench.execution import store_index
from tsadbench.execution.run_store import Store
from tsadbench.execution.store_index import Listed

N = 1200


def add(store: Store, label: str, seed: int) -> str:
    made = replace(record(label, seed), manifest={"started": f"2026-01-01T{seed:06d}"})
    (store.path / made.trial).mkdir(exist_ok=True)
    (store.path / made.trial / "record.json").write_text(made.to_json())
    return made.trial


def young(folder: Path) -> Store:
    """Return a store of N trials."""
    made = Store.create(folder)
    for i in range(N):
        add(made, "a", i)
    return made


@pytest.fixture(scope="module")
def aged(tmp_path_factory) -> list[Store]:
    """Stores that are old enough to be indexed, all made at once: a copy would be young again."""
    made = [young(tmp_path_factory.mktemp("aged") / "runs") for _ in range(5)]
    time.sleep(2.1)
    return made


@pytest.fixture
def store(aged) -> Store:
    """One of them that no other test has."""
    return aged.pop()


def truth(store: Store) -> tuple[Listed, ...]:
    return tuple(map(Listed.of, store.records()))


def n_read(store: Store) -> int:
    """Return how many records a list reads now."""
    calls: list[str] = []

    def read(trial: str):
        calls.append(trial)
        return store.record(trial)

    def nowhere() -> Path:
        raise OSError(30, "Read-only file system")

    store_index.listed(store.path, store.trials(), "record.json", read, nowhere)
    return len(calls)


def test_a_second_list_reads_no_record_and_says_the_same(store):
    assert store.listed() == (truth(store), {})
    assert n_read(store) == 0
    assert store.listed() == (truth(store), {})
    assert store.trials() == sorted(record("a", i).trial for i in range(N)), "the index is no trial"


@pytest.mark.parametrize("keeps_time", [False, True])
def test_a_record_that_was_edited_is_read_again_even_if_size_and_time_are_as_before(store, keeps_time):
    store.listed()
    file = store.path / "a-7" / "record.json"
    before = file.stat()
    file.write_text(file.read_text().replace('"label": "a"', '"label": "b"'))
    assert file.stat().st_size == before.st_size
    if keeps_time:
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert n_read(store) == 1
    found, _ = store.listed()
    assert [one.trial for one in found if one.label == "b"] == ["a-7"]


def test_deleted_added_replaced_and_broken_trials(store):
    store.listed()
    shutil.rmtree(store.path / "a-1")
    add(store, "b", 1)
    os.replace(store.path / "a-2" / "record.json", store.path / "a-3" / "record.json")
    (store.path / "a-4" / "record.json").write_text("{")
    found, broken = store.listed()
    assert set(broken) == {"a-2", "a-3", "a-4"}, "a record in the place of another is broken too"
    with pytest.warns(BrokenTrialWarning):
        readable = store.readable()
    assert (found, broken) == (tuple(map(Listed.of, readable)), store.broken)
    assert store.listed() == (found, broken)


@pytest.fixture(scope="module")
def indexed(aged):
    store = aged.pop()
    store.listed()
    index = store.path / ".index.json"
    return store, index, index.read_bytes(), truth(store)


@pytest.mark.parametrize("garbage", [b"", b"[1,[]]", b"[2,[]]", b"null", b"[1,[[1,2,3]]]", b"[" * 100_000, "half"])
def test_garbage_in_the_index_is_no_index(indexed, garbage):
    store, index, good, expected = indexed
    index.write_bytes(good[: len(good) // 2] if garbage == "half" else garbage)
    assert store.listed() == (expected, {})
