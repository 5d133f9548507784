"""Which recordings are taken for one session."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tsadbench import Dataset, Recording
from tsadbench.base.dataset import DataOptions
from tsadbench.datasets.sessions import sessions_of

SENSORS = ("flow", "pressure")
STEP = 5.0
VALUES = np.random.default_rng(0).normal(size=(400, 2))


def recording(name: str, *, rows: int, start: float | None, n_rows: int = 20) -> Recording:
    """Rows ``rows`` to ``rows + n_rows - 1`` of the values, from a time on."""
    time = None if start is None else start + STEP * np.arange(n_rows)
    return Recording(name, VALUES[rows : rows + n_rows], SENSORS, time)


def dataset(*test: Recording, train: tuple[Recording, ...] = (), **more) -> Dataset:
    train = train or (recording("normal", rows=380, start=1e9),)
    return Dataset("d", train, test, {"overall": tuple(one.id for one in test)}, **more)


def groups(data: Dataset) -> set[frozenset[str]]:
    """Return the recordings of each session, without their names."""
    found: dict[str, set[str]] = {}
    for name, session in sessions_of(data).items():
        found.setdefault(session, set()).add(name)
    return {frozenset(names) for names in found.values()}


def split(*sessions: str) -> set[frozenset[str]]:
    return {frozenset(names.split()) for names in sessions}


def test_declared_ones_are_as_they_are_declared():
    same = [recording(name, rows=0, start=0.0) for name in "ab"]
    sessions = {"normal": "x", "a": "y", "b": "z"}
    assert sessions_of(dataset(*same, sessions=sessions)) == sessions


@pytest.mark.parametrize(("steps", "joined"), [(1, True), (10, True), (10.5, False), (11, False), (1000, False)])
def test_what_begins_within_ten_sampling_steps_goes_on(steps, joined):
    end = STEP * 19
    data = dataset(recording("a", rows=0, start=0.0), recording("b", rows=20, start=end + steps * STEP))
    assert groups(data) == (split("a b", "normal") if joined else split("a", "b", "normal"))


def test_what_begins_while_another_runs_is_of_its_session_and_chains_are_joined():
    data = dataset(
        recording("c", rows=40, start=STEP * 50),
        recording("a", rows=0, start=0.0),
        recording("b", rows=20, start=STEP * 21, n_rows=20),
        recording("inside", rows=60, start=STEP * 3, n_rows=5),
        train=(recording("normal", rows=300, start=-STEP * 25), recording("other", rows=350, start=1e6)),
    )
    assert groups(data) == split("normal a inside b c", "other")
    # By its first test recording; the training recording of nothing but itself keeps its own.
    assert sessions_of(data)["normal"] == "c and 4 more"
    assert sessions_of(data)["other"] == "other"


def test_clocks_that_start_anew_tell_nothing():
    data = dataset(*(recording(name, rows=20 * i, start=0.0) for i, name in enumerate("abc")))
    assert groups(data) == split("a", "b", "c", "normal")
    # Of another machine they may begin together, and follow each other nonetheless.
    on, off = recording("a2", rows=60, start=STEP * 20), recording("b2", rows=80, start=STEP * 20)
    two = dataset(*data.test[:2], on, off, entities={"normal": "one", "a": "one", "a2": "one", "b": "two", "b2": "two"})
    assert groups(two) == split("a a2", "b b2", "normal")


def test_a_shared_row_joins():
    far = Recording("far", VALUES[[19, 100, 101]], SENSORS, np.array([STEP * 19, 1e6, 2e6]))
    assert groups(dataset(recording("a", rows=0, start=0.0), far)) == split("a far", "normal")


def test_a_copy_at_another_time_or_half_of_one_joins_but_a_repeated_row_does_not():
    first = recording("a", rows=0, start=0.0)
    for copied, joined in ((20, True), (10, True), (9, False), (1, False)):
        values = np.vstack([VALUES[:copied], VALUES[200 : 220 - copied]])
        other = Recording("b", values, SENSORS, 1e6 + STEP * np.arange(20))
        assert groups(dataset(first, other)) == (split("a b", "normal") if joined else split("a", "b", "normal"))


def test_without_times_a_shared_row_joins_by_its_values():
    data = dataset(
        recording("a", rows=0, start=None),
        recording("b", rows=19, start=None),
        recording("c", rows=100, start=0.0),
        train=(recording("normal", rows=300, start=None),),
    )
    assert groups(data) == split("a b", "c", "normal")


def test_one_row_a_recording_has_no_step():
    data = dataset(
        recording("a", rows=0, start=0.0, n_rows=1),
        recording("b", rows=1, start=STEP, n_rows=1),
        train=(recording("normal", rows=300, start=1e6, n_rows=1),),
    )
    assert groups(data) == split("a", "b", "normal")


@pytest.mark.skab
def test_skab_undeclared_falls_apart_where_its_files_pause(skab_directory):
    """The declared sessions are unions of inferred ones: pauses of half a minute and more are known to people alone."""
    from tsadbench.datasets.shipped import load_skab

    declared = load_skab(DataOptions(directory=skab_directory)).dataset
    inferred = groups(dataclasses.replace(declared, sessions={}))
    assert {frozenset(f"valve1/{i}" for i in range(16)), frozenset(f"valve2/{i}" for i in range(4))} <= inferred
    for names in inferred:
        assert len({declared.sessions[name] for name in names}) == 1
    assert len(inferred) > 4
