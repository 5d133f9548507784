"""How noise in the labels moves the AUPRC: labels shifted by some rows, or doubtful rows left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from tsadbench.analysis.curves import average_precision
from tsadbench.base.dataset import LabelledDataset
from tsadbench.base.shared_rows import shared_rows
from tsadbench.errors import UsageError
from tsadbench.execution.store import Store
from tsadbench.leaderboard.ranking import Row
from tsadbench.results.trial_result import protocol_of, readable_result
from tsadbench.utils.arrays import BoolArray, FloatArray, mean_defined
from tsadbench.utils.grouping import grouped
from tsadbench.utils.progress import progress

# In rows: both directions; after each event.
SHIFTS = (1, 5, 10)
MARGINS = (10, 60)


@dataclass(frozen=True, slots=True, eq=False)
class LabelChange:
    """Labels of the test recordings, [n_rows] each, True where anomalous, and which rows count."""

    name: str
    rows: Mapping[str, BoolArray]
    counted: Mapping[str, BoolArray]


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """Scores of one row of a table by one fit: by recording, [n_rows], and which rows are evaluated (None: all)."""

    label: str
    scores: Mapping[str, FloatArray]
    evaluated: Mapping[str, BoolArray] | None = None


@dataclass(frozen=True, slots=True)
class Moved:
    """AUPRC (None if undefined) and rank of each row by changed labels, and which pairs of rows change places."""

    change: str
    n_changed: int
    n_left_out: int
    auprc: Mapping[str, float | None]
    rank: Mapping[str, int]
    change_places: tuple[tuple[str, str], ...]

    def in_words(self, most: int = 6) -> str:
        """Return who changes places with whom."""
        pairs = [f"{first} with {second}" for first, second in self.change_places]
        more = [f"{len(pairs) - most} more pairs"] if len(pairs) > most else []
        return "; ".join([*pairs[:most], *more])


@dataclass(frozen=True, slots=True)
class LabelNoise:
    """The effect of each change of the labels; the first is the labels as given."""

    about: str
    moved: tuple[Moved, ...]

    @property
    def largest(self) -> tuple[float, str, str] | None:
        """The largest move of an AUPRC, the row's name and the change; None if no AUPRC is defined."""
        given, *others = self.moved
        moves = [
            (now - before, label, one.change)
            for one in others
            for label, now in one.auprc.items()
            if now is not None and (before := given.auprc[label]) is not None
        ]
        return max(moves, key=lambda move: abs(move[0]), default=None)


def label_changes(
    data: LabelledDataset, shifts: Sequence[int] | None = None, margins: Sequence[int] | None = None
) -> tuple[LabelChange, ...]:
    """Return the given labels and changed ones: shifted, without contradictory rows, without rows after events.

    Shifted labels repeat the first or last one at a recording's border. Contradictory rows stand in several test
    recordings, anomalous in one and normal in another. None means those of `SHIFTS` that fit, and `MARGINS`.
    A change that leaves out no row is omitted.
    """
    truth = data.labels.rows
    if not truth:
        if shifts or margins:
            raise UsageError(f"data set {data.dataset.name!r} has no labels to shift or to leave out rows by")
        return ()
    shortest = min(map(len, truth.values()))
    for shift in shifts or ():
        if not 0 < shift < shortest:
            raise UsageError(f"label_shift {shift}: expected 1 to {shortest - 1} rows, fewer than any recording has")
    for margin in margins or ():
        if margin < 1:
            raise UsageError(f"label_margin {margin}: expected at least 1 row")
    every = {name: np.ones_like(rows) for name, rows in truth.items()}
    changes = [LabelChange("as given", truth, every)]
    fitting = [shift for shift in SHIFTS if shift < shortest] if shifts is None else shifts
    for shift in sorted({sign * shift for shift in fitting for sign in (-1, 1)}):
        side = f"{abs(shift)} {'row' if abs(shift) == 1 else 'rows'} {'later' if shift > 0 else 'earlier'}"
        shifted = {name: rows[np.clip(np.arange(len(rows)) - shift, 0, len(rows) - 1)] for name, rows in truth.items()}
        changes.append(LabelChange(side, shifted, every))
    left_out = {"contradictory rows out": _contradictory(data)}
    for margin in sorted(set(MARGINS if margins is None else margins)):
        left_out[f"{margin} rows after events out"] = {name: _margin(rows, margin) for name, rows in truth.items()}
    for change, out in left_out.items():
        if any(map(np.any, out.values())):
            changes.append(LabelChange(change, truth, {name: ~rows for name, rows in out.items()}))
    return tuple(changes)


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


def fits_of(rows: Sequence[Row], store: Store, data: LabelledDataset) -> Iterator[Fit]:
    """Yield the scores of the fits of stored trials, on the rows of their split that the protocol evaluates."""
    episodes = tuple(protocol_of(rows[0].first).episodes(data.dataset))
    trials = [(row, record) for row in rows if row.ok and not row.leaky for record in row.records]
    for done, (row, record) in enumerate(trials):
        progress(done, len(trials), row.label)
        result = readable_result(record, store, data, episodes)
        if result is None:
            continue
        members = data.labels.splits[row.split]
        scored = [one for name, one in result.recordings.items() if name in members]
        for of_fit in grouped(scored, lambda one: one.episode).values():
            scores = {one.recording.id: one.scores for one in of_fit}
            yield Fit(row.label, scores, {one.recording.id: one.evaluated for one in of_fit})


def label_noise(about: str, fits: Iterable[Fit], data: LabelledDataset, changes: Sequence[LabelChange]) -> LabelNoise:
    """Return the AUPRC of each row by each change of the labels: the mean over its fits, which are never pooled."""
    values: list[dict[str, list[float | None]]] = [{} for _ in changes]
    for fit in fits:
        for of_change, change in zip(values, changes, strict=True):
            of_change.setdefault(fit.label, []).append(_auprc(fit, change))
    auprc = [{label: mean_defined(of_fits) for label, of_fits in of_change.items()} for of_change in values]
    moved = []
    for change, now in zip(changes, auprc, strict=True):
        differ = (change.rows[name] != rows for name, rows in data.labels.rows.items())
        defined = {label: value for label, value in now.items() if value is not None}
        moved.append(
            Moved(
                change=change.name,
                n_changed=sum(int(np.count_nonzero(rows)) for rows in differ),
                n_left_out=sum(int(np.count_nonzero(~rows)) for rows in change.counted.values()),
                auprc=now,
                rank={label: 1 + sum(other > one for other in defined.values()) for label, one in defined.items()},
                change_places=tuple(_change_places(auprc[0], now)),
            )
        )
    return LabelNoise(about, tuple(moved))


def _auprc(fit: Fit, change: LabelChange) -> float | None:
    kept = {name: change.counted[name] for name in fit.scores}
    if fit.evaluated is not None:
        kept = {name: rows & fit.evaluated[name] for name, rows in kept.items()}
    truth = np.concatenate([change.rows[name][rows] for name, rows in kept.items()])
    return average_precision(np.concatenate([fit.scores[name][rows] for name, rows in kept.items()]), truth)


def _change_places(before: Mapping[str, float | None], now: Mapping[str, float | None]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of which the first was above the second and is below it now, by where they were."""
    both = [
        (value, after, label)
        for label, value in before.items()
        if value is not None and (after := now[label]) is not None
    ]
    for (high, first_now, first), (low, second_now, second) in combinations(sorted(both, reverse=True), 2):
        if high > low and first_now < second_now:
            yield first, second
