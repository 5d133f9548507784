"""Rows that stand in more than one recording."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tsadbench.base.recording import Recording
from tsadbench.utils.arrays import BoolArray, IntArray

UInt64Array: TypeAlias = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class SharedRows:
    """Rows that two recordings share: the same values and, where both have times, the same time.

    Parameters
    ----------
    first, second
        Ids of the recordings.
    roles
        "train and test", "test and test" or "train and train".
    n_rows
        Different rows that stand in both.
    n_contradicting
        Those of them that are anomalous in one and normal in the other; None where one of them has no labels.
    """

    first: str
    second: str
    roles: str
    n_rows: int
    n_contradicting: int | None


def shared_rows(
    train: Sequence[Recording], test: Sequence[Recording], labels: Mapping[str, BoolArray]
) -> tuple[SharedRows, ...]:
    """Return all pairs of recordings that share rows, in the data set's order.

    Without times, rows are compared by their values alone: a system at rest may repeat itself honestly, so read these
    with care.
    """
    recordings = [*train, *test]
    roles = ["train"] * len(train) + ["test"] * len(test)
    frame = _common(recordings, labels)
    found: Counter[tuple[int, int]] = Counter()
    contradicting: Counter[tuple[int, int]] = Counter()
    for _, group in frame.groupby("row", sort=False):
        by_recording = dict(zip(group["recording"], group["label"], strict=True))
        for pair in combinations(sorted(by_recording), 2):
            found[pair] += 1
            one, other = (by_recording[member] for member in pair)
            contradicting[pair] += one >= 0 and other >= 0 and one != other
    return tuple(
        SharedRows(
            recordings[first].id,
            recordings[second].id,
            f"{roles[first]} and {roles[second]}",
            found[first, second],
            contradicting[first, second] if roles[first] == "test" else None,
        )
        for first, second in sorted(found)
    )


def _common(recordings: Sequence[Recording], labels: Mapping[str, BoolArray]) -> pd.DataFrame:
    """Return the rows that stand in more than one recording: row (an id), recording (its place), label (-1: none)."""
    timed = all(recording.time is not None for recording in recordings)
    frame = pd.concat(
        [
            pd.DataFrame({"row": _digests(recording, timed), "recording": place, "label": _labels(recording, labels)})
            for place, recording in enumerate(recordings)
        ],
        ignore_index=True,
    ).drop_duplicates(["row", "recording"])
    return frame[frame.duplicated("row", keep=False)]


def _digests(recording: Recording, timed: bool) -> UInt64Array:
    """Return 64 bits a row, [n_rows]: equal for equal rows, and but for one chance in 10^5 for 10^7 rows only then."""
    columns = pd.DataFrame(recording.values + 0.0)  # turns -0.0 into 0.0, which equals it but has other bits
    if timed:
        columns["time"] = recording.time
    return np.asarray(pd.util.hash_pandas_object(columns, index=False), dtype=np.uint64)


def _labels(recording: Recording, labels: Mapping[str, BoolArray]) -> IntArray:
    of_recording = labels.get(recording.id)
    return np.full(recording.n_rows, -1) if of_recording is None else of_recording.astype(np.int64)
