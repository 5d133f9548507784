"""Other labels than the given ones: shifted, without contradictory rows, without a margin after events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tsadbench.base.dataset import LabelledDataset
from tsadbench.base.shared_rows import shared_rows
from tsadbench.errors import UsageError
from tsadbench.utils.arrays import BoolArray
from tsadbench.utils.grouping import grouped

# In rows: both directions; after each event.
SHIFTS = (1, 5, 10)
MARGINS = (10, 60)


@dataclass(frozen=True, slots=True, eq=False)
class LabelChange:
    """Other labels than the given ones.

    Parameters
    ----------
    name
        What tables call it.
    rows
        For each test recording's id: [n_rows], True where anomalous.
    left_out
        [n_rows] each: rows that do not count; None if all do.
    """

    name: str
    rows: Mapping[str, BoolArray]
    left_out: Mapping[str, BoolArray] | None = None

    def counted(self, name: str) -> BoolArray:
        """Return [n_rows], which rows of a recording count."""
        return np.ones_like(self.rows[name]) if self.left_out is None else ~self.left_out[name]


def label_changes(
    data: LabelledDataset, shifts: Sequence[int] | None = None, margins: Sequence[int] | None = None
) -> tuple[LabelChange, ...]:
    """Return the given labels, then others; a change that would leave out no row is none. Nothing without labels.

    Labels that are shifted keep their length: the first or last one is repeated at the border. Contradictory rows stand
    in several test recordings, anomalous in one and normal in another (the same time and values; without times, the
    same values). A margin is made of the normal rows after an event.

    Parameters
    ----------
    data
        Recordings and labels.
    shifts
        Over how many rows labels are shifted, earlier and later; None for those of `SHIFTS` that fit all recordings.
    margins
        How many rows after each event are left out; None for `MARGINS`.

    Raises
    ------
    UsageError
        If a number is below 1, or a shift at least as long as the shortest test recording, or there are no labels to
        be shifted.
    """
    truth = data.labels.rows
    if not truth:
        if shifts or margins:
            raise UsageError(f"data set {data.dataset.name!r} has no labels to shift or to leave out rows by")
        return ()
    shortest, name = min((len(rows), name) for name, rows in truth.items())
    for shift in shifts or ():
        if not 0 < shift < shortest:
            raise UsageError(
                f"labels shifted by {shift} rows: expected 1 to {shortest - 1}; recording {name!r} has {shortest} rows"
            )
    for margin in margins or ():
        if margin < 1:
            raise UsageError(f"a margin of {margin} rows after an event: expected at least 1")
    fitting = [shift for shift in SHIFTS if shift < shortest] if shifts is None else shifts
    changes = [LabelChange("as given", truth)]
    for shift in sorted({sign * shift for shift in fitting for sign in (-1, 1)}):
        side = f"{abs(shift)} {'row' if abs(shift) == 1 else 'rows'} {'later' if shift > 0 else 'earlier'}"
        changes.append(LabelChange(side, {name: _shifted(rows, shift) for name, rows in truth.items()}))
    changes.append(LabelChange("contradictory rows out", truth, _contradictory(data)))
    for margin in sorted(set(MARGINS if margins is None else margins)):
        after = {name: _margin(rows, margin) for name, rows in truth.items()}
        changes.append(LabelChange(f"{margin} rows after events out", truth, after))
    return tuple(change for change in changes if change.left_out is None or any(map(np.any, change.left_out.values())))


def _shifted(rows: BoolArray, shift: int) -> BoolArray:
    """Return labels ``shift`` rows later (below 0: earlier); the one at the border is repeated."""
    return rows[np.clip(np.arange(len(rows)) - shift, 0, len(rows) - 1)]


def _margin(rows: BoolArray, margin: int) -> BoolArray:
    """Return which rows are normal, with an anomalous one among the ``margin`` before them."""
    anomalous = np.concatenate([np.zeros(margin + 1, dtype=np.int64), np.cumsum(rows)])
    return ~rows & (anomalous[margin:-1] > anomalous[: -margin - 1])


def _contradictory(data: LabelledDataset) -> dict[str, BoolArray]:
    """Return [n_rows] for each test recording; rows of different entities are never the same."""
    truth, contradictory = data.labels.rows, dict[str, BoolArray]()
    for test in grouped(data.dataset.test, lambda one: data.dataset.entities.get(one.id)).values():
        numbers = shared_rows(test, untimed="by value")
        labels = [truth[one.id] for one in test]
        anomalous, normal = (
            np.concatenate([rows[label == kind] for rows, label in zip(numbers, labels, strict=True)])
            for kind in (True, False)
        )
        both = np.setdiff1d(np.intersect1d(anomalous, normal), [-1])
        contradictory |= {one.id: np.isin(rows, both) for one, rows in zip(test, numbers, strict=True)}
    return contradictory
