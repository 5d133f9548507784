"""Training rows that also occur in a test recording."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tsadbench.base import BoolArray, FloatArray, Recording

_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio: spreads neighbouring bit patterns
_HALF = np.uint64(32)


def without_shared_rows(train: Sequence[Recording], test: Sequence[Recording]) -> tuple[Recording, ...]:
    """Return the training recordings less the rows that a test recording has too, cut at the gaps.

    Rows are the same where their time and all their values are equal. A row without time is never taken for another
    one: a system at rest repeats its values, and would lose them all.

    Returns
    -------
    tuple
        In the order of ``train``. A recording that loses nothing is the same object; a piece of one is named after
        its rows, "plant[0:120]".
    """
    timed = _timed(train)
    shared = dict(zip((recording.id for recording in timed), _shared(timed, _timed(test)), strict=True))
    return tuple(piece for recording in train for piece in _pieces(recording, shared.get(recording.id)))


def _timed(recordings: Iterable[Recording]) -> list[Recording]:
    return [recording for recording in recordings if recording.time is not None]


def _shared(train: Sequence[Recording], test: Sequence[Recording]) -> list[BoolArray]:
    """Return for each training recording [n_rows], True where a test recording has the row."""
    train_digests = [_digests(recording) for recording in train]
    test_digests = [_digests(recording) for recording in test]
    both = _in_both(train_digests, test_digests)
    masks = [np.isin(digests, both) for digests in train_digests]
    if len(both) == 0:
        return masks
    # Digests only narrow the search down, cheaply: whether rows are equal is decided on the rows.
    candidates = np.concatenate(
        [_rows(recording, np.isin(digests, both)) for recording, digests in zip(test, test_digests, strict=True)]
    )
    for recording, mask in zip(train, masks, strict=True):
        if mask.any():
            mask[mask] = np.isin(_rows(recording, mask), candidates)
    return masks


def _in_both(train: list[NDArray[np.uint64]], test: list[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    if not train or not test:
        return np.empty(0, dtype=np.uint64)
    # They may repeat, so one that occurs twice on one side gets in as well: harmless here, and 50 times faster.
    return np.intersect1d(np.concatenate(train), np.concatenate(test), assume_unique=True)


def _digests(recording: Recording) -> NDArray[np.uint64]:
    """Return 64 bits for each row's time and values; equal rows have equal ones."""
    digests = np.zeros(recording.n_rows, dtype=np.uint64)
    for column in _columns(recording):
        digests = (digests ^ column.view(np.uint64)) * _ODD
        digests ^= digests >> _HALF
    return digests


def _rows(recording: Recording, mask: BoolArray) -> NDArray[np.void]:
    """Return the chosen rows' times and values, one item of bytes a row."""
    rows = np.stack([column[mask] for column in _columns(recording)], axis=1)
    return rows.view(np.dtype((np.void, rows.shape[1] * rows.itemsize)))[:, 0]


def _columns(recording: Recording) -> Iterator[FloatArray]:
    for column in (recording.time, *recording.values.T):
        if column is not None:
            yield column + 0.0  # turns -0.0 into 0.0, which equals it but has other bits


def _pieces(recording: Recording, shared: BoolArray | None) -> list[Recording]:
    if shared is None or not shared.any():
        return [recording]
    borders = np.flatnonzero(np.diff(~shared, prepend=False, append=False)).tolist()
    return [
        recording.rows(start, stop, id=f"{recording.id}[{start}:{stop}]")
        for start, stop in zip(borders[::2], borders[1::2], strict=True)
    ]
