"""What noise in the labels moves: AUPRC and ranks if labels are shifted, or doubtful rows do not count."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import fmean

import numpy as np

from tsadbench.analysis.curves import average_precision
from tsadbench.base.dataset import LabelledDataset, Labels
from tsadbench.base.protocol import Episode, Protocol, Scored
from tsadbench.base.recording import Recording
from tsadbench.base.shared_rows import shared_rows
from tsadbench.errors import ContractError, StoreError, UsageError
from tsadbench.execution.run_store import Store
from tsadbench.leaderboard.ranking import Row
from tsadbench.results.trial_result import TrialResult, protocol_of
from tsadbench.utils.arrays import BoolArray, FloatArray
from tsadbench.utils.progress import progress

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


@dataclass(frozen=True, slots=True)
class Moved:
    """What a change of the labels moves.

    Parameters
    ----------
    change
        Its name.
    n_changed, n_left_out
        Test rows with another label, and rows that do not count.
    auprc
        By row of the table: the mean over its seeds; None if undefined.
    rank
        1 for the highest; rows without an AUPRC have none.
    change_places
        Pairs of rows: the first was above the second by the given labels, and is below it now.
    """

    change: str
    n_changed: int
    n_left_out: int
    auprc: Mapping[str, float | None]
    rank: Mapping[str, int]
    change_places: tuple[tuple[str, str], ...]

    def in_words(self, most: int = 6) -> str:
        """Return who changes places with whom; of more pairs than ``most`` how many there are."""
        pairs = [f"{first} with {second}" for first, second in self.change_places]
        more = [f"{len(pairs) - most} more pairs"] if len(pairs) > most else []
        return "; ".join([*pairs[:most], *more])


@dataclass(frozen=True, slots=True)
class LabelNoise:
    """What changes of the labels move, the given labels first.

    Parameters
    ----------
    about
        Whose AUPRC it is: one-liners or stored trials, and over which rows.
    moved
        By change.
    left_out
        Rows of the table whose scores are not available.
    """

    about: str
    moved: tuple[Moved, ...]
    left_out: tuple[str, ...] = ()

    @property
    def largest(self) -> tuple[float, str, str] | None:
        """The largest move of an AUPRC, with its sign, the row's name and the change; None if there is none."""
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
    """Return the given labels, then others; a change that would leave out no row is none.

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
        If a number is below 1, or a shift at least as long as the shortest test recording.
    """
    truth = data.labels.rows
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


def of_scores(
    scores: Mapping[str, Sequence[FloatArray]], data: LabelledDataset, changes: Sequence[LabelChange]
) -> LabelNoise:
    """Return what changes move of scores that were found without trials, over all test rows.

    Parameters
    ----------
    scores
        By name: one array [n_rows] for each test recording, in the data set's order.
    data, changes
        Recordings with labels, and what `label_changes` returns for them.
    """
    pooled = {name: np.concatenate(list(rows)) for name, rows in scores.items()}
    auprc = []
    for change in changes:
        counted = np.concatenate([change.counted(name) for name in change.rows])
        truth = np.concatenate(list(change.rows.values()))[counted]
        auprc.append({name: average_precision(rows[counted], truth) for name, rows in pooled.items()})
    return _noise(f"one-liners on all test rows of {data.dataset.name}", data, changes, auprc)


def of_rows(
    rows: Sequence[Row],
    store: Store,
    data: LabelledDataset,
    changes: Sequence[LabelChange],
    n_seeds: int | None = None,
) -> LabelNoise:
    """Return what changes move of stored trials: their scores are judged again by the changed labels.

    Parameters
    ----------
    rows
        Of one data set, protocol and split; those that failed or are leaky take no part.
    store, data
        Where their scores lie, and what was scored.
    changes
        What `label_changes` returns for the data set.
    n_seeds
        How many seeds of each row take part, the first ones; None for all.

    Raises
    ------
    DataError
        If the data or labels are not those of the trials.
    """
    first = rows[0]
    protocol = protocol_of(first.first)
    episodes = tuple(protocol.episodes(data.dataset))
    altered = [_Altered.of(change, protocol, episodes, data, first.split) for change in changes]
    auprc: list[dict[str, float | None]] = [{} for _ in changes]
    left_out = []
    taking_part = [row for row in rows if row.ok and not row.leaky]
    for done, row in enumerate(taking_part):
        progress(done, len(taking_part), row.label)
        try:
            results = [TrialResult(record, store, data, episodes) for record in row.records[:n_seeds]]
        except StoreError:
            left_out.append(row.label)
            continue
        for of_change, judge in zip(auprc, altered, strict=True):
            seeds = [judge.auprc(protocol, result.scored) for result in results]
            defined = [value for value in seeds if value is not None]
            of_change[row.label] = fmean(defined) if len(defined) == len(seeds) else None
    about = f"trials on {first.dataset}, split {first.split}, protocol {first.rules}"
    return replace(_noise(about, data, changes, auprc), left_out=tuple(left_out))


@dataclass(frozen=True, slots=True, eq=False)
class _Altered:
    """An episode's recordings and labels without the evaluated rows that a change leaves out.

    Rows that a protocol does not evaluate stay, so that it evaluates just the others that are left: ``n_rows``. If it
    judges another number, it cannot be judged by these labels.
    """

    labels: Labels
    split: str
    episodes: Mapping[str, tuple[Episode, tuple[BoolArray, ...]]]
    n_rows: int

    @classmethod
    def of(
        cls, change: LabelChange, protocol: Protocol, episodes: Sequence[Episode], data: LabelledDataset, split: str
    ) -> _Altered:
        members = data.labels.splits[split]
        labels = dict(change.rows)
        lengths = {name: len(rows) for name, rows in labels.items()}
        altered, n_rows = {}, 0
        for episode in episodes:
            kept = [np.ones(recording.n_rows, dtype=np.bool_) for recording in episode.test]
            for place in protocol.places(episode, lengths):
                n, name = lengths[place.recording], place.recording
                rows = np.ones(n, dtype=np.bool_)
                rows[place.evaluated] = change.counted(name)[place.evaluated]
                kept[place.scored][place.start : place.start + n] = rows
                labels[name] = change.rows[name][rows]
                n_rows += int(np.count_nonzero(rows[place.evaluated])) if name in members else 0
            test = tuple(_rows_of(one, rows) for one, rows in zip(episode.test, kept, strict=True))
            altered[episode.id] = replace(episode, test=test), tuple(kept)
        return cls(Labels(labels, {split: members}), split, altered, n_rows)

    def auprc(self, protocol: Protocol, scored: Sequence[Scored]) -> float | None:
        try:
            judged = protocol.judge([self._of(one) for one in scored], self.labels).splits[self.split]
        except ContractError:  # nothing that it evaluates is left
            return None
        return judged.metrics.get("auprc") if judged.n_rows == self.n_rows else None

    def _of(self, scored: Scored) -> Scored:
        episode, kept = self.episodes[scored.episode.id]
        return replace(
            scored, episode=episode, test=tuple(one[rows] for one, rows in zip(scored.test, kept, strict=True))
        )


def _rows_of(recording: Recording, kept: BoolArray) -> Recording:
    if kept.all():
        return recording
    time = None if recording.time is None else recording.time[kept]
    return Recording(recording.id, recording.values[kept], recording.sensors, time)


def _noise(
    about: str,
    data: LabelledDataset,
    changes: Sequence[LabelChange],
    auprc: Sequence[Mapping[str, float | None]],
) -> LabelNoise:
    moved = []
    for change, values in zip(changes, auprc, strict=True):
        differ = (change.rows[name] != rows for name, rows in data.labels.rows.items())
        moved.append(
            Moved(
                change=change.name,
                n_changed=sum(int(np.count_nonzero(rows)) for rows in differ),
                n_left_out=sum(int(np.count_nonzero(rows)) for rows in (change.left_out or {}).values()),
                auprc=values,
                rank=_ranks(values),
                change_places=tuple(_change_places(auprc[0], values)),
            )
        )
    return LabelNoise(about, tuple(moved))


def _ranks(values: Mapping[str, float | None]) -> dict[str, int]:
    defined = {label: value for label, value in values.items() if value is not None}
    return {label: 1 + sum(other > value for other in defined.values()) for label, value in defined.items()}


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


def _shifted(rows: BoolArray, shift: int) -> BoolArray:
    """Return labels ``shift`` rows later (below 0: earlier); the one at the border is repeated."""
    return rows[np.clip(np.arange(len(rows)) - shift, 0, len(rows) - 1)]


def _margin(rows: BoolArray, margin: int) -> BoolArray:
    """Return which rows are normal, with an anomalous one among the ``margin`` before them."""
    anomalous = np.concatenate([np.zeros(margin + 1, dtype=np.int64), np.cumsum(rows)])
    return ~rows & (anomalous[margin:-1] > anomalous[: -margin - 1])


def _contradictory(data: LabelledDataset) -> dict[str, BoolArray]:
    test, truth = data.dataset.test, data.labels.rows
    numbers = shared_rows(test, untimed="by value")
    anomalous = {int(number) for one, rows in zip(test, numbers, strict=True) for number in set(rows[truth[one.id]])}
    normal = {int(number) for one, rows in zip(test, numbers, strict=True) for number in set(rows[~truth[one.id]])}
    both = np.array(sorted((anomalous & normal) - {-1}), dtype=np.int64)
    return {one.id: np.isin(rows, both) for one, rows in zip(test, numbers, strict=True)}
