"""Rows that occur in several recordings: the one definition for protocols, audits and significance tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tsadbench.base.recording import Recording
from tsadbench.utils.arrays import BoolArray, FloatArray, IntArray

Untimed: TypeAlias = Literal["distinct", "by value"]

_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio: spreads neighbouring bit patterns
_HALF = np.uint64(32)


def shared_rows(recordings: Sequence[Recording], *, untimed: Untimed) -> list[IntArray]:
    """Return for each recording [n_rows] a number for each row that another recording has too, -1 for other rows.

    Equal rows get equal numbers: rows of the same time and values; 0 equals -0. ``untimed`` says how to treat
    rows without time. "distinct": such a row equals no other, for callers that *remove* shared rows; a system at rest
    repeats its values, and would lose all its rows. "by value": if any recording has no time, values alone decide in
    all of them, for callers that *report* shared rows and say so.

    Examples
    --------
    >>> time = np.arange(3.0)
    >>> one = Recording("one", np.array([[5.0], [6.0], [7.0]]), ("flow",), time)
    >>> other = Recording("other", np.array([[9.0], [6.0], [8.0]]), ("flow",), time)
    >>> [rows.tolist() for rows in shared_rows([one, other], untimed="distinct")]
    [[-1, 0, -1], [-1, 0, -1]]
    """
    by_time = untimed == "distinct" or all(recording.time is not None for recording in recordings)
    numbers = [np.full(recording.n_rows, -1) for recording in recordings]
    compared = [i for i, recording in enumerate(recordings) if recording.time is not None or not by_time]
    digests = [row_digests(recordings[i], by_time=by_time) for i in compared]
    candidates = [rows >= 0 for rows in _numbered(digests)]
    # Digests only narrow the search, at little cost: whether rows are equal is decided on the rows themselves.
    exact = [_rows(recordings[i], rows, by_time=by_time) for i, rows in zip(compared, candidates, strict=True)]
    for i, rows, shared in zip(compared, candidates, _numbered(exact), strict=True):
        numbers[i][rows] = shared
    return numbers


def _numbered(keys: Sequence[NDArray[np.generic]]) -> list[IntArray]:
    """Return a number for each key that occurs in two or more of the arrays, -1 for the others."""
    if not keys:
        return []
    sizes = [len(part) for part in keys]
    _, key = np.unique(np.concatenate(keys), return_inverse=True)
    recording = np.repeat(np.arange(len(keys)), sizes)
    # If an index repeats, the last assignment remains: recordings ascend, so these are a key's first and last one.
    first, last = (np.empty(len(key), dtype=np.int64) for _ in range(2))
    first[key[::-1]] = recording[::-1]
    last[key] = recording
    numbers = np.where(first[key] < last[key], key, -1)
    return np.split(numbers, np.cumsum(sizes)[:-1])


def row_digests(recording: Recording, *, by_time: bool) -> NDArray[np.uint64]:
    """Return 64 bits for each row's values, and its time if asked for; equal rows have equal digests."""
    digests = np.zeros(recording.n_rows, dtype=np.uint64)
    for column in _columns(recording, by_time=by_time):
        digests = (digests ^ column.view(np.uint64)) * _ODD
        digests ^= digests >> _HALF
    return digests


def _rows(recording: Recording, chosen: BoolArray, *, by_time: bool) -> NDArray[np.void]:
    """Return the chosen rows, each as one item of bytes."""
    rows = np.stack([column[chosen] for column in _columns(recording, by_time=by_time)], axis=1)
    return rows.view(np.dtype((np.void, rows.shape[1] * rows.itemsize)))[:, 0]


def _columns(recording: Recording, *, by_time: bool) -> Iterator[FloatArray]:
    for column in (recording.time if by_time else None, *recording.values.T):
        if column is not None:
            yield column + 0.0  # turns -0.0 into 0.0, which equals it but has other bits
