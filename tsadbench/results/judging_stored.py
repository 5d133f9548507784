"""Judges stored scores without writing to where they lie: those of the score bank, or any by other rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tsadbench.base.dataset import LabelledDataset
from tsadbench.base.protocol import Protocol
from tsadbench.errors import StoreError, TsadbenchError
from tsadbench.execution.judging import StoredScores
from tsadbench.execution.plan import episodes_hash
from tsadbench.execution.record import Record
from tsadbench.results.judging import Judge, Judged, may_be_judged
from tsadbench.results.verification import metric_faults
from tsadbench.utils.progress import progress

# What tables show: three digits of a metric.
SINGLE_PRECISION = 1e-3


def judge_bank(bank: StoredScores, load: Callable[[str], LabelledDataset]) -> Iterator[Judged]:
    """Judge every trial of a folder of the bank by its own protocol, and yield what came of each.

    A trial is "same" if every metric is that of its record up to `SINGLE_PRECISION`. Rounding to float32 changes the
    ranks of rows whose scores differ in the eighth digit alone, and for a few detectors that is more.

    Parameters
    ----------
    bank
        The folder.
    load
        Returns the data set of a name; a TsadbenchError means that its trials cannot be judged.
    """
    judge = Judge(load)
    for trial, found in _records(bank):
        if isinstance(found, TsadbenchError):
            yield Judged(trial, None, "cannot be judged", str(found))
            continue
        try:
            now = judge.again(found, bank)
        except TsadbenchError as error:
            yield Judged(trial, found, "cannot be judged", str(error))
            continue
        # A threshold that matters shows in the metrics; how its tail was fitted is no result.
        fault = next(metric_faults(found, now, SINGLE_PRECISION), "")
        yield Judged(trial, now, "changed" if fault else "same", fault, _largest_changes(found, now))


def judge_by(
    source: StoredScores, protocol: Protocol, label: str, load: Callable[[str], LabelledDataset]
) -> Iterator[Judged]:
    """Judge every trial by one protocol, whatever its own is, and yield the record that this gives.

    Parameters
    ----------
    source
        A run store or a folder of the bank; nothing is written to it.
    protocol, label
        The protocol, and what records and tables call it. Its episodes must be those that the scores were made for:
        trials of others cannot be judged.
    load
        As for `judge_bank`.
    """
    judge = Judge(load, {label: protocol})
    hashes: dict[str, str] = {}
    for trial, found in _records(source):
        if isinstance(found, TsadbenchError):
            yield Judged(trial, None, "cannot be judged", str(found))
            continue
        record = replace(found, protocol=label, protocol_version=protocol.version)
        try:
            if record.dataset not in hashes:
                hashes[record.dataset] = episodes_hash(judge.episodes(record))
            if record.manifest.get("episodes_hash") != hashes[record.dataset]:
                raise StoreError(
                    f"it was run under {found.protocol}, and {label} asks for other recordings to be fitted or scored"
                )
            now = judge.again(record, source)
        except TsadbenchError as error:
            yield Judged(trial, found, "cannot be judged", str(error))
        else:
            yield Judged(trial, now, "changed")


def _largest_changes(record: Record, now: Record) -> dict[str, float]:
    """Return by how much each metric is another in any split; one that is undefined in one of them is left out."""
    changes: dict[str, float] = {}
    for name, split in now.splits.items():
        before = record.splits[name].metrics if name in record.splits else {}
        for metric, value in split.metrics.items():
            if value is not None and (recorded := before.get(metric)) is not None:
                changes[metric] = max(changes.get(metric, 0.0), abs(value - recorded))
    return changes


def _records(source: StoredScores) -> Iterator[tuple[str, Record | TsadbenchError]]:
    """Yield the record of each trial with scores, or why it cannot be read; progress is reported."""
    trials = source.trials()
    for done, trial in enumerate(trials):
        progress(done, len(trials))
        try:
            record = source.record(trial)
        except StoreError as error:
            yield trial, error
            continue
        if may_be_judged(record):
            yield trial, record
