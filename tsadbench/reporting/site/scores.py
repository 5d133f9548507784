"""Scores by recording, from the score bank: thinned, with thresholds, and with labels where the data are at hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tsadbench.analysis.curves import rows_of
from tsadbench.analysis.events import elapsed
from tsadbench.base.dataset import LabelledDataset
from tsadbench.base.protocol import Episode
from tsadbench.datasets.fetch import place
from tsadbench.datasets.loading import loader
from tsadbench.errors import BrokenTrialError, TsadbenchError
from tsadbench.execution.record import Record
from tsadbench.leaderboard.cells import best_floors, metrics_of, ranked_means
from tsadbench.leaderboard.ranking import Row
from tsadbench.reporting.html.compact import Buckets, packed, packed_flags
from tsadbench.reporting.html.curves import curves_of_fits
from tsadbench.reporting.html.series import time_axis
from tsadbench.reporting.site.source import Table, recordings
from tsadbench.results.judging import judged_faults
from tsadbench.results.trial_result import ScoredRecording, StoredScores, TrialResult, data_faults, protocol_of
from tsadbench.utils.arrays import BoolArray, FloatArray
from tsadbench.utils.parameters import JsonValue
from tsadbench.utils.progress import progress

# Fifty rows with so many points of their scores and curves make a file of some 260 kB.
_POINTS = 800
_CURVE_POINTS = 40
_BEST = 5
_NOT_HERE = "the data set was not at hand when this page was made"
_ANOTHER = "the data set or the protocol at hand when this page was made was another one than the table's"


@dataclass(frozen=True, slots=True, eq=False)
class Bank:
    """A folder of the score bank, and the data sets behind it as far as they are here.

    Parameters
    ----------
    store
        Its scores.
    trials
        Its trials, by data set, rules, label and seed.
    load
        Returns a data set; a TsadbenchError if it is not here.
    """

    store: StoredScores
    trials: Mapping[tuple[str, str, str, int], str]
    load: Callable[[str], LabelledDataset]

    @classmethod
    def open(cls, folder: Path) -> Bank:
        """Return the bank of a folder; errors as for `BankFolder`, and MissingExtraError without pyarrow."""
        from tsadbench.results.bank import BankFolder  # a site without scores needs no pyarrow

        store = BankFolder(folder)
        records = map(store.record, store.trials())
        rules = {(one.dataset, one.rules, one.label, one.seed): one.trial for one in records}
        # Where a data set is looked for is named, so that it is never downloaded.
        return cls(store, rules, loader([], place("", None)))


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of a table's rows that the bank has.

    Parameters
    ----------
    recordings
        What a page shows of each recording, by its id.
    seeds
        The seed whose scores are shown, by the rows' labels, in the table's order.
    usual
        The labels that a fresh page shows: the best rows, and the best floor.
    unlabelled
        Why labels and times are missing; empty if they are there.
    others
        Labels whose files in the bank are of other trials than the table's; they are left out.
    """

    recordings: Mapping[str, Mapping[str, JsonValue]]
    seeds: Mapping[str, int]
    usual: tuple[str, ...]
    unlabelled: str
    others: tuple[str, ...]


def scores_of(table: Table, bank: Bank) -> Scores | None:
    """Return the scores of a table's rows by recording, of the lowest seed of each; None if the bank has none.

    A BrokenTrialError if a file is damaged, or has another checksum.
    """
    if table.values is None:
        return None
    chosen = [(row, found) for row in table.main if row.ok and (found := _lowest(row, bank)) is not None]
    of_recordings: dict[str, _OneRecording] = {}
    seeds: dict[str, int] = {}
    others: list[str] = []
    at_hand: _AtHand | None = None
    for done, (row, (record, trial)) in enumerate(chosen):
        progress(done, len(chosen), f"{table.name}: scores of {row.label}")
        kept = bank.store.record(trial)
        if any(judged_faults(kept, record)) or kept.manifest.get("data_hash") != record.manifest.get("data_hash"):
            others.append(row.label)
            continue
        at_hand = at_hand or _AtHand.of(kept, bank)
        seeds[row.label] = kept.seed
        for one in at_hand.recordings(kept, bank.store, recordings(table.values)):
            of_recordings.setdefault(one.name, _OneRecording(one)).add(row.label, one)
    if not chosen:
        return None
    return Scores(
        recordings={name: one.content() for name, one in of_recordings.items()},
        seeds=seeds,
        usual=_best([row for row, _ in chosen if row.label in seeds]),
        unlabelled="" if at_hand is None else at_hand.missing,
        others=tuple(others),
    )


def _best(rows: Sequence[Row]) -> tuple[str, ...]:
    """Return the best of the detectors that are compared, and the best floor, by AUPRC if the protocol has it."""
    metrics = [metric for metric in metrics_of(rows) if metric.better is not None] if rows else []
    if not metrics:
        return ()
    metric = next((metric for metric in metrics if metric.name == "auprc"), metrics[0])
    means = ranked_means(rows, metric)
    ranked = sorted(means, key=means.__getitem__, reverse=metric.better == "higher")
    return (*ranked[:_BEST], *best_floors(rows, [metric]))


def _lowest(row: Row, bank: Bank) -> tuple[Record, str] | None:
    """Return the first trial of a row that the bank has: its record in the table, and its name in the bank."""
    for record in row.records:
        if trial := bank.trials.get((record.dataset, record.rules, record.label, record.seed)):
            return record, trial
    return None


@dataclass(frozen=True, slots=True, eq=False)
class _Scored:
    """A recording as one detector scored it; truth and time are None without the data set."""

    name: str
    scores: FloatArray
    threshold: float
    truth: ScoredRecording | None

    @property
    def flagged(self) -> BoolArray:
        """[n_rows]; without the data set it is not known which rows count, and all of them do."""
        flagged: BoolArray = self.scores > self.threshold
        return flagged if self.truth is None else flagged & self.truth.evaluated


@dataclass(frozen=True, slots=True, eq=False)
class _AtHand:
    """What lies here of a table's data: the data set and what the protocol makes of it, or why they are missing."""

    data: LabelledDataset | None
    episodes: tuple[Episode, ...] = ()
    missing: str = ""

    @classmethod
    def of(cls, record: Record, bank: Bank) -> _AtHand:
        try:
            data = bank.load(record.dataset)
        except TsadbenchError:
            return cls(None, missing=_NOT_HERE)
        try:
            protocol = protocol_of(record)
        except TsadbenchError:  # it is not installed
            return cls(None, missing=_ANOTHER)
        if data_faults(record, data) or protocol.version != record.protocol_version:
            return cls(None, missing=_ANOTHER)
        return cls(data, tuple(protocol.episodes(data.dataset)))

    def recordings(self, record: Record, store: StoredScores, names: Sequence[str]) -> Iterator[_Scored]:
        """Yield those of the recordings that a trial scored."""
        if self.data is not None:
            found = TrialResult(record, store, self.data, self.episodes).recordings
            for one in (found[name] for name in names if name in found):
                yield _Scored(one.recording.id, one.scores, one.threshold, one)
            return
        scores = store.scores(record)
        for name in names:
            for fit in record.thresholds:
                if (array := scores.get(f"test/{fit.episode}/{name}")) is not None:
                    yield _Scored(name, array, fit.threshold.value, None)


class _OneRecording:
    """What a page holds of a recording; detectors are added one by one."""

    def __init__(self, first: _Scored) -> None:
        self._first = first
        self._buckets = Buckets.at_most(_POINTS, len(first.scores))
        self._detectors: dict[str, JsonValue] = {}

    def add(self, label: str, one: _Scored) -> None:
        if len(one.scores) != self._buckets.n_rows:
            raise BrokenTrialError(
                f"scores of {label}, {one.name}: expected {self._buckets.n_rows} rows as other files of the bank have, "
                f"found {len(one.scores)}; fetch it again"
            )
        curves = None if one.truth is None else curves_of_fits([rows_of("", [one.truth])], n_points=_CURVE_POINTS)
        self._detectors[label] = {
            "scores": packed(self._buckets.envelope(one.scores)),
            "threshold": one.threshold,
            "flagged": packed_flags(self._buckets.any(one.flagged)),
            "n_flagged": int(np.count_nonzero(one.flagged)),
            "curves": curves,
        }

    def content(self) -> dict[str, JsonValue]:
        buckets, truth = self._buckets, self._first.truth
        rows = buckets.rows()
        x = rows.astype(np.float64) if truth is None else elapsed(truth.recording)[rows]
        return {
            "n_rows": buckets.n_rows,
            "thinned": not buckets.whole,
            "rows": None if buckets.whole else packed(rows),
            "time": packed(x),
            **({"timed": False, "clock": None} if truth is None else time_axis(truth.recording)),
            "anomalous": None if truth is None else packed_flags(buckets.any(truth.anomalous)),
            "evaluated": None if truth is None else packed_flags(buckets.any(truth.evaluated)),
            "detectors": self._detectors,
        }
