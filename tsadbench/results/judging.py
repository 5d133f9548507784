"""Judges stored scores again, by today's rules or by another protocol: no detector runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Literal, TypeAlias

from tsadbench.base.dataset import LabelledDataset
from tsadbench.base.protocol import Episode, Protocol, SplitJudgement, Threshold
from tsadbench.errors import BrokenTrialError, StoreError, TsadbenchError
from tsadbench.execution.identity import judging_identity
from tsadbench.execution.judging import StoredScores, judge_again
from tsadbench.execution.plan import episodes_hash
from tsadbench.execution.record import Record
from tsadbench.execution.store import Store
from tsadbench.results.trial_result import fixed_threshold_of, protocol_of
from tsadbench.utils.progress import progress

Verdict: TypeAlias = Literal["same", "changed", "cannot be judged"]
# What tables show: three digits of a metric.
SINGLE_PRECISION = 1e-3
# Of thresholds and metrics. Another machine's logarithm may differ in the last digit, and the fit of the tail follows.
TOLERANCE = 1e-6
# The search for the likeliest tail ends a little elsewhere on another processor; the threshold does not.
_FITTED = ("gamma", "sigma", "log_likelihood", "endpoint")
_FITTED_TOLERANCE = 1e-4


@dataclass(frozen=True, slots=True)
class Judged:
    """One trial judged again: its new record, or the ``reason`` why it cannot be judged or counts as changed.

    ``changes`` are the largest change of each metric in any split, known of files of the bank.
    """

    trial: str
    record: Record | None
    verdict: Verdict
    reason: str = ""
    changes: Mapping[str, float] = field(default_factory=dict)


class Judge:
    """Today's rules for stored trials; what a protocol yields on a data set is computed once.

    ``load`` returns the data set of a name, or raises a TsadbenchError: its trials cannot be judged then. ``own`` are
    protocols by the labels that records have, besides those that are registered.
    """

    def __init__(
        self, load: Callable[[str], LabelledDataset], own: Mapping[str, Protocol] = MappingProxyType({})
    ) -> None:
        self._load = load
        self._data: dict[str, LabelledDataset | TsadbenchError] = {}
        self._protocols: dict[str, Protocol] = dict(own)
        self._episodes: dict[tuple[str, str], tuple[tuple[Episode, ...], str]] = {}
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

        A TsadbenchError if the data set, the protocol or the scores are not available, or the data are others.
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
        return self._fits(record)[0]

    def episodes_hash(self, record: Record) -> str:
        """Return the hash of `episodes`."""
        return self._fits(record)[1]

    def _fits(self, record: Record) -> tuple[tuple[Episode, ...], str]:
        key = record.dataset, record.protocol
        if key not in self._episodes:
            episodes = tuple(self._protocol(record).episodes(self.data(record.dataset).dataset))
            self._episodes[key] = episodes, episodes_hash(episodes)
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
    """Judge every trial of a store that has scores, yield what came of each, and put records that have changed."""
    judge = Judge(load)

    def one(record: Record) -> Judged:
        now = judge.again(record, store)
        results = [(each.status, each.splits, each.thresholds, each.protocol_notes) for each in (record, now)]
        changed = results[0] != results[1]
        if changed or (now.judging, now.rows_scored) != (record.judging, record.rows_scored):
            store.put(now)
        return Judged(record.trial, now, "changed" if changed else "same")

    return _each(store, one)


def judge_bank(bank: StoredScores, load: Callable[[str], LabelledDataset]) -> Iterator[Judged]:
    """Judge every trial of a folder of the bank by its own protocol, and yield what came of each.

    A trial is "same" if every metric is that of its record up to `SINGLE_PRECISION`. Rounding to float32 changes the
    ranks of rows whose scores differ in the eighth digit alone, and for a few detectors that is more.
    """
    judge = Judge(load)

    def one(record: Record) -> Judged:
        now = judge.again(record, bank)
        fault = next(metric_faults(record, now, SINGLE_PRECISION), "")
        changes: dict[str, float] = {}
        for split in now.splits.keys() & record.splits.keys():
            before = record.splits[split].metrics
            for metric, value in now.splits[split].metrics.items():
                if value is not None and (recorded := before.get(metric)) is not None:
                    changes[metric] = max(changes.get(metric, 0.0), abs(value - recorded))
        return Judged(record.trial, now, "changed" if fault else "same", fault, changes)

    return _each(bank, one)


def judge_by(
    source: StoredScores, protocol: Protocol, label: str, load: Callable[[str], LabelledDataset]
) -> Iterator[Judged]:
    """Judge every trial by one protocol, which records call ``label``, and yield the record that this gives.

    Nothing is written. Trials that were run on other episodes than this protocol's cannot be judged.
    """
    judge = Judge(load, {label: protocol})

    def one(found: Record) -> Judged:
        record = replace(found, protocol=label, protocol_version=protocol.version)
        if record.manifest.get("episodes_hash") != judge.episodes_hash(record):
            raise StoreError(
                f"it was run under {found.protocol}, and {label} asks for other recordings to be fitted or scored"
            )
        return Judged(record.trial, judge.again(record, source), "changed")

    return _each(source, one)


def judge_outdated(
    records: Iterable[Record], store: Store, load: Callable[[str], LabelledDataset]
) -> tuple[tuple[Record, ...], int]:
    """Judge the trials of a store again that other rules than today's have judged, and put their records.

    Returns the records by today's rules, and how many of them could not be judged. Data sets are read only if a
    protocol's code has changed; whether their labels have is for `judge_store` to see.
    """
    judge = Judge(load)
    n_left = 0
    now = []
    for record in records:
        try:
            if judge.outdated(record):
                record = judge.again(record, store)
                store.put(record)
        except TsadbenchError:
            n_left += 1
        now.append(record)
    return tuple(now), n_left


def judge_smoothed(
    records: Sequence[Record], store: Store, load: Callable[[str], LabelledDataset], rows: int
) -> tuple[tuple[Record, ...], dict[str, str]]:
    """Judge trials by trailing means of their training and test scores over ``rows`` rows; nothing is written.

    Returns the records, and why some rows of a table are not among them: a mean over the seeds that are left would be
    another number.
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
            left_out.setdefault((record.label, record.dataset, record.protocol), str(error))
    kept = tuple(record for record in found if (record.label, record.dataset, record.protocol) not in left_out)
    return kept, {f"{label} ({dataset}, {protocol})": why for (label, dataset, protocol), why in left_out.items()}


def may_be_judged(record: Record) -> bool:
    """Whether a trial has scores: it is ok, or the judge called it invalid."""
    return record.status == "ok" or (record.status == "invalid" and "scores_hash" in record.manifest)


def _each(source: StoredScores, judge: Callable[[Record], Judged]) -> Iterator[Judged]:
    """Yield what judging makes of each trial with scores, one in memory at a time; progress is reported."""
    trials = source.trials()
    for done, trial in enumerate(trials):
        progress(done, len(trials))
        record = None
        try:
            record = source.record(trial)
            judged = judge(record) if may_be_judged(record) else None
        except TsadbenchError as error:
            judged = Judged(trial, record, "cannot be judged", str(error))
        if judged is not None:
            yield judged


def judged_faults(record: Record, now: Record, tolerance: float = TOLERANCE) -> Iterator[str]:
    """Yield the thresholds and metrics of a record that are not those of another one, up to a tolerance."""
    recorded = {entry.episode: entry.threshold for entry in record.thresholds}
    here = {entry.episode: entry.threshold for entry in now.thresholds}
    for episode in dict.fromkeys([*recorded, *here]):
        then, found = recorded.get(episode), here.get(episode)
        if then is None or found is None:
            yield f"threshold of {episode}: {'not recorded' if then is None else 'recorded, but not in the data'}"
            continue
        for name in (one.name for one in fields(Threshold)):
            values = getattr(then, name), getattr(found, name)
            allowed = _FITTED_TOLERANCE if tolerance and name in _FITTED else tolerance
            if not _close(*values, allowed):
                which = "" if name == "value" else f", {name}"
                yield f"threshold of {episode}{which}: recorded {values[0]}, found {values[1]}"
    yield from metric_faults(record, now, tolerance)


def metric_faults(record: Record, now: Record, tolerance: float) -> Iterator[str]:
    """Yield the metrics of a record that are not those of another one, up to a tolerance."""
    for split in dict.fromkeys([*record.splits, *now.splits]):
        recorded, here = record.splits.get(split), now.splits.get(split)
        if recorded is None or here is None:
            yield f"split {split}: {'not recorded' if recorded is None else 'recorded, but not in the data'}"
            continue
        then, found = _values(recorded), _values(here)
        for name in dict.fromkeys([*then, *found]):
            if not _close(then.get(name), found.get(name), tolerance):
                yield f"{name} on {split}: recorded {then.get(name)}, found {found.get(name)}"


def _values(judged: SplitJudgement) -> dict[str, float | None]:
    """Return all numbers of a split by name; those of an entity as "auroc of machine-1"."""
    of_entities = {
        f"{name} of {entity}": value for entity, metrics in judged.entities.items() for name, value in metrics.items()
    }
    return {
        **judged.metrics,
        **of_entities,
        "n_rows": judged.n_rows,
        "n_anomalous": judged.n_anomalous,
        "coverage": judged.coverage,
    }


def _close(recorded: float | str | None, found: float | str | None, tolerance: float) -> bool:
    if isinstance(recorded, float | int) and isinstance(found, float | int):
        return math.isclose(recorded, found, rel_tol=tolerance, abs_tol=tolerance)
    return recorded == found
