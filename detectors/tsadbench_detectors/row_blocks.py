"""Row by row, some rows at a time: what lies between the input and the result stays small."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from tsadbench.base import FloatArray, Recording

# 8,192 rows of 50 sensors are 3 MiB: several arrays of them stay in the cache.
ROWS_AT_ONCE = 8_192


def row_blocks(recordings: Sequence[Recording], at_once: int = ROWS_AT_ONCE) -> Iterator[FloatArray]:
    """Yield the rows of all recordings in order, at most so many at a time, as views [n_rows, n_sensors]."""
    for recording in recordings:
        for start in range(0, recording.n_rows, at_once):
            yield recording.values[start : start + at_once]


def pooled_blocks(recordings: Sequence[Recording], at_once: int) -> Iterator[FloatArray]:
    """Yield the rows of all recordings in order, exactly so many at a time but for the last block.

    What is computed from such blocks does not depend on how the rows are cut into recordings.
    """
    parts: list[FloatArray] = []
    missing = at_once
    for recording in recordings:
        rest = recording.values
        while len(rest):
            parts.append(rest[:missing])
            rest = rest[missing:]
            missing -= len(parts[-1])
            if missing == 0:
                yield _joined(parts)
                parts, missing = [], at_once
    if parts:
        yield _joined(parts)


def by_blocks(
    function: Callable[[FloatArray], FloatArray], values: FloatArray, at_once: int = ROWS_AT_ONCE
) -> FloatArray:
    """Return ``function(values)`` for a function that treats every row by itself.

    Parameters
    ----------
    function
        Returns [n_rows, ...] for [n_rows, n_sensors].
    values
        [n_rows, n_sensors], at least one row.
    at_once
        How many rows it is given at a time.

    Examples
    --------
    >>> by_blocks(lambda rows: rows.max(axis=1), np.array([[1.0, 2.0], [4.0, 3.0], [5.0, 6.0]]), at_once=2)
    array([2., 4., 6.])
    """
    first = function(values[:at_once])
    if len(values) <= at_once:
        return first
    whole = np.empty((len(values), *first.shape[1:]), dtype=first.dtype)
    whole[:at_once] = first
    for start in range(at_once, len(values), at_once):
        whole[start : start + at_once] = function(values[start : start + at_once])
    return whole


def _joined(parts: list[FloatArray]) -> FloatArray:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
