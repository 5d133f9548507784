"""Rows that occur in several recordings: one definition for protocols, audits and significance tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tsadbench.base.recording import Recording
from tsadbench.utils.arrays import IntArray

Untimed: TypeAlias = Literal["distinct", "by value"]

_ODD = np.uint64(0x9E3779B97F4A7C15)  # makes the order of columns matter


def shared_rows(recordings: Sequence[Recording], *, untimed: Untimed) -> list[IntArray]:
    """Return, per recording, [n_rows] numbers of rows that also occur in another recording; -1 for other rows.

    Equal rows, whose times and values are equal, get equal numbers; 0 equals -0. ``untimed`` says how to treat
    rows without time. "distinct": such rows equal no other row, for callers that *remove* shared rows, because a system
    at rest repeats its values and would lose all its rows. "by value": if any recording has no time, only values are
    compared in all of them, for callers that *report* shared rows.

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
    """Return a 64-bit digest of each row's values and, if requested, time; equal rows have equal digests.

    The probability of a collision among a million rows is 3e-8.
    """
    from pandas.util import hash_array

    digests = np.zeros(recording.n_rows, dtype=np.uint64)
    for column in (recording.time if by_time else None, *recording.values.T):
        if column is not None:
            digests = digests * _ODD + hash_array(column + 0.0)  # -0.0 + 0.0 is 0.0
    return digests
