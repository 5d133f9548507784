"""What noise in the labels moves: AUPRC and ranks if labels are shifted, or doubtful rows do not count."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import fmean

import numpy as np

from tsadbench.analysis.curves import average_precision
from tsadbench.analysis.label_changes import LabelChange
from tsadbench.base.dataset import LabelledDataset, Labels
from tsadbench.base.protocol import Episode, Protocol, Scored
from tsadbench.base.recording import Recording
from tsadbench.errors import ContractError, StoreError
from tsadbench.execution.run_store import Store
from tsadbench.leaderboard.ranking import Row
from tsadbench.results.trial_result import protocol_of, readable_result
from tsadbench.utils.arrays import BoolArray, FloatArray
from tsadbench.utils.means import mean_defined
from tsadbench.utils.progress import progress


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


def of_scores(
    fits: Sequence[Mapping[str, Mapping[str, FloatArray]]], data: LabelledDataset, changes: Sequence[LabelChange]
) -> LabelNoise:
    """Return what changes move of scores that were found without trials, over all test rows.

    Parameters
    ----------
    fits
        Of each entity, or one: by name, and by the test recording's id, scores [n_rows]. Scores of different fits are
        never pooled: an AUPRC is the mean over the fits for which it is defined.
    data, changes
        Recordings with labels, and what `label_changes` returns for them.
    """
    names = dict.fromkeys(name for fit in fits for name in fit)
    auprc = [
        {name: mean_defined(_auprc(fit[name], change) for fit in fits if name in fit) for name in names}
        for change in changes
    ]
    return _noise(f"one-liners on all test rows of {data.dataset.name}", data, changes, auprc)


def _auprc(scores: Mapping[str, FloatArray], change: LabelChange) -> float | None:
    counted = np.concatenate([change.counted(name) for name in scores])
    truth = np.concatenate([change.rows[name] for name in scores])[counted]
    return average_precision(np.concatenate(list(scores.values()))[counted], truth)


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
            read = [readable_result(record, store, data, episodes) for record in row.records[:n_seeds]]
        except StoreError:
            read = [None]
        results = [result for result in read if result is not None]
        if len(results) < len(read):
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
