"""Judges the trials of a run store again, by today's rules and without fitting."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal, TypeAlias

from tsadbench.base.dataset import LabelledDataset
from tsadbench.base.protocol import Episode, Protocol
from tsadbench.errors import BrokenTrialError, StoreError, TsadbenchError
from tsadbench.execution.identity import judging_identity
from tsadbench.execution.judging import StoredScores, judge_again
from tsadbench.execution.record import Record
from tsadbench.execution.store import Store
from tsadbench.results.trial_result import fixed_threshold_of, protocol_of
from tsadbench.utils.progress import progress

Verdict: TypeAlias = Literal["same", "changed", "cannot be judged"]


@dataclass(frozen=True, slots=True)
class Judged:
    """What came of judging one trial again.

    Parameters
    ----------
    trial
        Its name.
    record
        Its record as the store holds it now; None if that cannot be read.
    verdict
        "changed" if a metric or a threshold is another one now.
    reason
        Why the trial cannot be judged; empty if it can.
    changes
        By how much each metric is another now, in the split where that is most; known of files of the bank.
    """

    trial: str
    record: Record | None
    verdict: Verdict
    reason: str = ""
    changes: Mapping[str, float] = field(default_factory=dict)


class Judge:
    """Today's rules for stored trials; what a protocol yields on a data set is computed once.

    Parameters
    ----------
    load
        Returns the data set of a name; a TsadbenchError means that its trials cannot be judged.
    own
        Protocols by the labels that records have, besides those that are registered.
    """

    def __init__(
        self, load: Callable[[str], LabelledDataset], own: Mapping[str, Protocol] = MappingProxyType({})
    ) -> None:
        self._load = load
        self._data: dict[str, LabelledDataset | TsadbenchError] = {}
        self._protocols: dict[str, Protocol] = dict(own)
        self._episodes: dict[tuple[str, str], tuple[Episode, ...]] = {}
        self._judging: dict[tuple[str, str, float | None], str] = {}

    def data(self, name: str) -> LabelledDataset:
        """Return a data set; a TsadbenchError is raised again for each of its trials."""
        if name not in self._data:
            try:
                self._data[name] = self._load(name)
            except TsadbenchError as error:
                self._data[name] = error
        data = self._data[name]
        if isinstance(data, TsadbenchError):
            raise data
        return data

    def outdated(self, record: Record) -> bool:
        """Whether other rules than today's have judged a trial, by its record; reads no data."""
        if record.status != "ok":
            return False
        if record.protocol_version != self._protocol(record).version:
            return True
        return record.judging != self._judging_of(record, str(record.manifest.get("labels_hash")))

    def again(self, record: Record, store: StoredScores, smoothing: int = 1) -> Record:
        """Return a record by today's rules, its scores averaged over ``smoothing`` rows; the store is left as it is.

        Raises
        ------
        TsadbenchError
            If the data set, the protocol, the detector or the scores are not available, or the data are others.
        """
        data = self.data(record.dataset)
        if record.manifest.get("data_hash") != data.dataset.content_hash:
            raise StoreError(f"the data of {record.dataset} here are not those it was scored on")
        judging = self._judging_of(record, data.labels.content_hash)
        threshold = fixed_threshold_of(record)
        rules = self._protocol(record), self.episodes(record), data.labels, threshold, judging
        return judge_again(record, store, *rules, smoothing)

    def episodes(self, record: Record) -> tuple[Episode, ...]:
        """Return what the protocol of a record yields on its data set."""
        key = record.dataset, record.protocol
        if key not in self._episodes:
            self._episodes[key] = tuple(self._protocol(record).episodes(self.data(record.dataset).dataset))
        return self._episodes[key]

    def _judging_of(self, record: Record, labels_hash: str) -> str:
        key = record.protocol, labels_hash, fixed_threshold_of(record)
        if key not in self._judging:
            self._judging[key] = judging_identity(key[0], self._protocol(record), *key[1:])
        return self._judging[key]

    def _protocol(self, record: Record) -> Protocol:
        if record.protocol not in self._protocols:
            self._protocols[record.protocol] = protocol_of(record)
        return self._protocols[record.protocol]


def judge_store(store: Store, load: Callable[[str], LabelledDataset]) -> Iterator[Judged]:
    """Judge every trial of a store that has scores again, and yield what came of each, by the trials' names.

    One trial is in memory at a time; how far it is is reported to `tsadbench.progress`.

    Parameters
    ----------
    store
        The store; a record is written anew if anything in it changes.
    load
        Returns the data set of a name; a TsadbenchError means that its trials cannot be judged.
    """
    judge = Judge(load)
    trials = store.trials()
    for done, trial in enumerate(trials):
        progress(done, len(trials))
        try:
            record = store.record(trial)
        except StoreError as error:
            yield Judged(trial, None, "cannot be judged", str(error))
            continue
        if not may_be_judged(record):
            continue
        try:
            now = judge.again(record, store)
        except TsadbenchError as error:
            yield Judged(trial, record, "cannot be judged", str(error))
            continue
        changed = _found(now) != _found(record)
        if changed or (now.judging, now.rows_scored) != (record.judging, record.rows_scored):
            store.put(now)
        yield Judged(trial, now, "changed" if changed else "same")


def judge_outdated(
    records: Iterable[Record], store: Store, load: Callable[[str], LabelledDataset]
) -> tuple[tuple[Record, ...], int]:
    """Judge the trials of a store again that other rules than today's have judged.

    Data sets are read only if a protocol's code has changed; whether their labels have is for `judge_store` to see.

    Parameters
    ----------
    records
        The store's.
    store, load
        As for `judge_store`.

    Returns
    -------
    tuple
        The records by today's rules, and how many of them could not be judged.
    """
    judge = Judge(load)
    n_left = 0
    now = []
    for record in records:
        try:
            if judge.outdated(record):
                again = judge.again(record, store)
                store.put(again)
                record = again
        except TsadbenchError:
            n_left += 1
        now.append(record)
    return tuple(now), n_left


def judge_smoothed(
    records: Sequence[Record], store: Store, load: Callable[[str], LabelledDataset], rows: int
) -> tuple[tuple[Record, ...], dict[str, str]]:
    """Judge trials by their scores averaged over each row and the ``rows - 1`` before it; the store is left as it is.

    Training scores are averaged as test scores are, recording by recording, so that thresholds are found anew.

    Parameters
    ----------
    records
        The store's.
    store, load
        As for `judge_store`.
    rows
        Over how many, at least 1.

    Returns
    -------
    tuple
        The records, and why some rows are not among them, by what tables call those: a mean over the seeds that are
        left would be another number.
    """
    judge = Judge(load)
    found: list[Record] = []
    left_out: dict[tuple[str, str, str], str] = {}
    for done, record in enumerate(records):
        progress(done, len(records))
        try:
            again = may_be_judged(record)
            found.append(judge.again(record, store, rows) if again else replace(record, smoothing=rows))
        except TsadbenchError as error:
            if isinstance(error, BrokenTrialError):
                store.pass_over(record.trial, error)
            left_out.setdefault(_row(record), str(error))
    kept = tuple(record for record in found if _row(record) not in left_out)
    return kept, {f"{label} ({dataset}, {protocol})": why for (dataset, protocol, label), why in left_out.items()}


def may_be_judged(record: Record) -> bool:
    """Whether a trial has scores: it is ok, or the judge called it invalid."""
    return record.status == "ok" or (record.status == "invalid" and "scores_hash" in record.manifest)


def _row(record: Record) -> tuple[str, str, str]:
    return record.dataset, record.protocol, record.label


def _found(record: Record) -> object:
    return record.status, record.splits, record.thresholds, record.protocol_notes
