"""Pairs of recordings that share rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from tsadbench.base.recording import Recording
from tsadbench.base.shared_rows import shared_rows
from tsadbench.utils.arrays import BoolArray


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
    roles = ["train"] * len(train) + ["test"] * len(test)
    # By row: its label in each recording that has it, at its first occurrence; None without labels.
    occurrences: dict[int, dict[int, bool | None]] = {}
    for position, numbers in enumerate(shared_rows(recordings, untimed="by value")):
        anomalous = labels.get(recordings[position].id)
        for row in np.flatnonzero(numbers >= 0).tolist():
            label = None if anomalous is None else bool(anomalous[row])
            occurrences.setdefault(int(numbers[row]), {}).setdefault(position, label)
    n_rows: Counter[tuple[int, int]] = Counter()
    n_contradicting: Counter[tuple[int, int]] = Counter()
    for label_of in occurrences.values():
        for first, second in combinations(label_of, 2):
            n_rows[first, second] += 1
            n_contradicting[first, second] += {label_of[first], label_of[second]} == {True, False}
    return tuple(
        SharedRows(
            recordings[first].id,
            recordings[second].id,
            f"{roles[first]} and {roles[second]}",
            n_rows[first, second],
            n_contradicting[first, second] if roles[first] == "test" else None,
        )
        for first, second in sorted(n_rows)
    )
