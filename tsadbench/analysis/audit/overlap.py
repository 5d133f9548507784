"""Rows that occur twice: in two recordings, in training and test, and stretches that are copies of others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tsadbench.analysis.audit.parts import Part
from tsadbench.base.recording import Recording
from tsadbench.base.shared_rows import row_digests, shared_rows
from tsadbench.utils.arrays import BoolArray, IntArray

# A stretch is a copy from so many different states in succession on: a system at rest repeats fewer by itself.
STATES = 10
_ODD, _HALF = np.uint64(0xD6E8FEB86659FD93), np.uint64(32)
_Digests: TypeAlias = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class SharedRows:
    """Rows that two recordings share: the same values and, if all recordings have times, the same time.

    Parameters
    ----------
    first, second
        Ids of the recordings.
    roles
        "train and test", "test and test" or "train and train".
    n_rows
        The number of different rows that occur in both.
    n_contradicting
        The number of these that are anomalous in one and normal in the other; None if one of them has no labels.
    """

    first: str
    second: str
    roles: str
    n_rows: int
    n_contradicting: int | None


def recordings_sharing_rows(
    train: Sequence[Recording], test: Sequence[Recording], labels: Mapping[str, BoolArray]
) -> tuple[SharedRows, ...]:
    """Return all pairs of recordings that share rows, in the data set's order.

    Without times, rows are compared by their values alone: a system at rest may repeat itself without being copied, so
    such findings need a second look.
    """
    recordings = [*train, *test]
    if not recordings:
        return ()
    roles = ["train"] * len(train) + ["test"] * len(test)
    numbers = shared_rows(recordings, untimed="by value")
    place = np.repeat(np.arange(len(recordings)), [recording.n_rows for recording in recordings])
    number = np.concatenate(numbers)
    anomalous = np.concatenate([labels.get(one.id, np.zeros(one.n_rows, dtype=np.bool_)) for one in recordings])
    # A row counts once a recording, with the label of its first occurrence.
    pairs, first = np.unique(np.stack([place, number]), axis=1, return_index=True)
    place, number, anomalous = (of[first[pairs[1] >= 0]] for of in (place, number, anomalous))
    shape = (len(recordings), int(number.max(initial=0)) + 1)
    faulty, normal = (
        csr_array((mask.astype(np.int64), (place, number)), shape=shape) for mask in (anomalous, ~anomalous)
    )
    counts = ((faulty + normal) @ (faulty + normal).T).toarray()
    contradicting = (faulty @ normal.T + normal @ faulty.T).toarray()
    return tuple(
        SharedRows(
            recordings[i].id,
            recordings[j].id,
            f"{roles[i]} and {roles[j]}",
            int(counts[i, j]),
            int(contradicting[i, j]) if recordings[i].id in labels else None,
        )
        for i, j in np.argwhere(np.triu(counts, 1)).tolist()
    )


@dataclass(frozen=True, slots=True)
class Overlap:
    """Which shares of an entity's rows recur, by their values alone, whatever their time.

    Parameters
    ----------
    entity
        Its name; empty if the data set has at most one.
    test_in_train, anomalous_in_train
        Shares of the test rows, and of the anomalous ones, that occur among the training rows; None without any.
    train_in_test
        Share of the training rows that occur in the test.
    train_in_train
        Share of the second half of the training rows that occur in the first half: how often the system repeats itself.
    """

    entity: str
    test_in_train: float | None
    anomalous_in_train: float | None
    train_in_test: float | None
    train_in_train: float | None


def overlap_of(part: Part) -> Overlap:
    """Return how far an entity's training and test rows are the same."""
    n_train = len(part.train_rows)
    if n_train < 2:
        return Overlap(part.entity, None, None, None, None)
    whole = part.recording("train")
    halves = [whole.rows(0, n_train // 2), whole.rows(n_train // 2, n_train)]
    _, again = shared_rows(halves, untimed="by value")
    if not part.test:
        return Overlap(part.entity, None, None, None, _share(again))
    train, test = shared_rows([whole, part.recording("test")], untimed="by value")
    return Overlap(part.entity, _share(test), _share(test[part.anomalous]), _share(train), _share(again))


@dataclass(frozen=True, slots=True)
class Copy:
    """A stretch of a recording whose rows occur in the same order, for as long, earlier or in another recording.

    Parameters
    ----------
    recording, start, stop
        The copy: rows ``start`` to ``stop - 1``.
    source, source_start
        Where the same rows occur first: training recordings come before test recordings.
    roles
        "train and test": a test recording copies a training one; "test and test" or "train and train".
    n_contradicting
        How many of its rows have another label there; None if one of them has no labels.
    """

    recording: str
    start: int
    stop: int
    source: str
    source_start: int
    roles: str
    n_contradicting: int | None


def copies_of(
    train: Sequence[Recording], test: Sequence[Recording], labels: Mapping[str, BoolArray]
) -> tuple[Copy, ...]:
    """Return the stretches that are copies, by values alone, in the data set's order.

    A state is a run of equal rows; two are the same if values and length are. A stretch of `STATES` different states
    that occurs twice is a copy. The rows of a state at its ends are not counted if the state lasts longer there.
    """
    recordings = [*train, *test]
    states = [_states(recording) for recording in recordings]
    digests = np.concatenate([digest for digest, _ in states])
    borders = np.cumsum([0, *(len(digest) for digest, _ in states)])
    owner = np.repeat(np.arange(len(recordings)), np.diff(borders))
    source = _first_occurrences(digests, owner)
    copied = source >= 0
    # A stretch ends where its source jumps, or a recording ends.
    goes_on = (np.diff(source) == 1) & (np.diff(owner) == 0) & (np.diff(owner[source]) == 0)
    begins = np.flatnonzero(copied & ~np.concatenate([[False], copied[:-1] & goes_on]))
    ends = np.flatnonzero(copied & ~np.concatenate([copied[1:] & goes_on, [False]]))
    copies = []
    for first, last in zip(begins.tolist(), ends.tolist(), strict=True):
        here, there = int(owner[first]), int(owner[source[first]])
        rows = states[here][1]
        start, stop = rows[[first - borders[here], last + STATES - borders[here]]].tolist()
        origin = int(states[there][1][source[first] - borders[there]])
        names = recordings[there].id, recordings[here].id
        contradicting = None
        if all(name in labels for name in names):
            differ = labels[names[0]][origin : origin + stop - start] != labels[names[1]][start:stop]
            contradicting = int(np.count_nonzero(differ))
        roles = " and ".join("train" if one < len(train) else "test" for one in (there, here))
        copies.append(Copy(names[1], start, stop, names[0], origin, roles, contradicting))
    return tuple(copies)


def _states(recording: Recording) -> tuple[_Digests, IntArray]:
    """Return a digest of each run of equal rows, values and length; and the first row of each, and the end."""
    rows = row_digests(recording, by_time=False)
    starts = np.flatnonzero(np.concatenate([[True], rows[1:] != rows[:-1], [True]]))
    return _mixed(_mixed(rows[starts[:-1]]) ^ np.diff(starts).astype(np.uint64)), starts


def _mixed(bits: _Digests) -> _Digests:
    """Return other bits, of which each depends on all lower ones."""
    bits = bits * _ODD
    return bits ^ (bits >> _HALF)


def _first_occurrences(digests: _Digests, owner: IntArray) -> IntArray:
    """Return for each window of `STATES` different states, by its first one, where it occurs before; -1 if nowhere."""
    n_windows = len(digests) - STATES + 1
    source = np.full(len(digests), -1)
    if n_windows < 1:
        return source
    key, before = np.zeros(n_windows, dtype=np.uint64), np.full(len(digests), -1)
    order = np.argsort(digests, kind="stable")
    same = digests[order[1:]] == digests[order[:-1]]
    before[order[1:][same]] = order[:-1][same]
    latest = np.full(n_windows, -1)
    for i in range(STATES):
        key = _mixed(key ^ digests[i : i + n_windows])
        latest = np.maximum(latest, before[i : i + n_windows])
    starts = np.arange(n_windows)
    # Within one recording, and no state of the window occurs in it twice.
    eligible = starts[(owner[:n_windows] == owner[STATES - 1 :]) & (latest < starts)]
    _, first, number = np.unique(key[eligible], return_index=True, return_inverse=True)
    found = eligible[first[number]]
    source[eligible] = np.where(found < eligible, found, -1)
    return source


def _share(numbers: IntArray) -> float | None:
    return float((numbers >= 0).mean()) if len(numbers) else None
