"""Rows that occur in several recordings: the one definition for protocols, audits and significance tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tsadbench.base.recording import Recording
from tsadbench.utils.arrays import IntArray

Untimed: TypeAlias = Literal["distinct", "by value"]

_ODD = np.uint64(0x9E3779B97F4A7C15)  # makes the order of columns count


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
    >>> [(rows >= 0).tolist() for rows in shared_rows([one, other], untimed="distinct")]
    [[False, True, False], [False, True, False]]
    """
    by_time = untimed == "distinct" or all(recording.time is not None for recording in recordings)
    if not recordings:
        return []
    sizes = [recording.n_rows for recording in recordings]
    digests = np.concatenate([row_digests(recording, by_time=by_time) for recording in recordings])
    compared = np.repeat([recording.time is not None or not by_time for recording in recordings], sizes)
    key = np.unique(digests, return_inverse=True)[1]
    owner = np.repeat(np.arange(len(sizes)), sizes)
    first, last = np.full(len(key), len(sizes)), np.full(len(key), -1)
    np.minimum.at(first, key[compared], owner[compared])
    np.maximum.at(last, key[compared], owner[compared])
    return np.split(np.where(compared & (first[key] < last[key]), key, -1), np.cumsum(sizes)[:-1])


def row_digests(recording: Recording, *, by_time: bool) -> NDArray[np.uint64]:
    """Return 64 bits for each row's values, and its time if asked for; equal rows have equal digests.

    Two different rows among a million have equal digests with a probability of 3e-8.
    """
    from pandas.util import hash_array

    digests = np.zeros(recording.n_rows, dtype=np.uint64)
    for column in (recording.time if by_time else None, *recording.values.T):
        if column is not None:
            digests = digests * _ODD + hash_array(column + 0.0)  # -0.0 + 0.0 is 0.0
    return digests
