"""Judges stored scores again, by today's rules or by another protocol. Runs no detector."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from tsadbench.base.dataset import LabelledDataset
from tsadbench.base.status import Seal
from tsadbench.errors import StoreError, TsadbenchError
from tsadbench.execution.identity import judging_identity
from tsadbench.execution.judging import judge_again, score_shapes, scored_episodes
from tsadbench.execution.plan import episodes_hash
from tsadbench.execution.record import Record
from tsadbench.execution.store import Store
from tsadbench.results.trial_result import fixed_threshold_of, protocol_named
from tsadbench.utils.progress import progress

if TYPE_CHECKING:
    from tsadbench.results.bank import BankFolder  # its module needs pyarrow

# The precision of tables: three digits of a metric.
SINGLE_PRECISION = 1e-3
# For thresholds and metrics. Logarithms may differ in the last digit between machines, and so does the tail's fit.
TOLERANCE = 1e-6
# The tail's parameters depend more on the processor than the threshold does.
_FITTED = ("gamma", "sigma", "log_likelihood", "endpoint")
_FITTED_TOLERANCE = 1e-4
# The fields that a judge determines.
JUDGED = ("reason", "splits", "thresholds", "protocol_version", "protocol_notes", "rows_scored")


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of judging, checking or repeating one trial; ``record`` is None if it cannot be read.

    ``faults`` say what differs, or why there is no result; ``remarks`` are harmless. A repetition has a ``seal`` and
    the largest ``difference`` of a score as a share of the test scores' range.
    """

    trial: str
    record: Record | None
    verdict: str
    faults: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    difference: float | None = None
    seal: Seal | None = None


class Judge:
    """Judges trials by today's rules; a protocol's episodes on a data set are computed once.

    ``load`` returns the data set of a name, or raises a TsadbenchError.
    """

    def __init__(self, load: Callable[[str], LabelledDataset]) -> None:
        self._load = load
        self._missing: dict[str, TsadbenchError] = {}
        self._protocol = cache(protocol_named)
        self._judging = cache(lambda label, *rest: judging_identity(label, self._protocol(label), *rest))
        self.episodes = cache(lambda data, label: tuple(self._protocol(label).episodes(self.data(data).dataset)))
        self._episodes_hash = cache(lambda data, label: episodes_hash(self.episodes(data, label)))

    def data(self, name: str) -> LabelledDataset:
        """Return a data set; if loading fails, raise the same TsadbenchError for each of its trials."""
        if name in self._missing:
            raise self._missing[name]
        try:
            return self._load(name)
        except TsadbenchError as error:
            self._missing[name] = error
            raise

    def outdated(self, record: Record) -> bool:
        """Whether a record was judged under other rules than today's. Reads no data."""
        if record.status != "ok":
            return False
        labels_hash = str(record.manifest.get("labels_hash"))
        return record.judging != self._judging(record.protocol, labels_hash, fixed_threshold_of(record))

    def again(self, record: Record, source: Store | BankFolder) -> Record:
        """Judge a trial by today's rules. Writes nothing.

        Raises a TsadbenchError if the data set, the protocol or the scores are not available, or if the data or the
        protocol's episodes differ from those of the trial.
        """
        data = self.data(record.dataset)
        if record.manifest.get("data_hash") != data.dataset.content_hash:
            raise StoreError(f"the data of {record.dataset} here differ from the data it was scored on")
        if record.manifest.get("episodes_hash") != self._episodes_hash(record.dataset, record.protocol):
            raise StoreError(f"{record.protocol} now fits or scores other recordings than in this trial")
        threshold, episodes = fixed_threshold_of(record), self.episodes(record.dataset, record.protocol)
        judging = self._judging(record.protocol, data.labels.content_hash, threshold)
        scored = scored_episodes(source.scores(record, score_shapes(episodes)), episodes, threshold)
        return judge_again(record, scored, self._protocol(record.protocol), data, judging)


def judge_all(
    source: Store | BankFolder,
    load: Callable[[str], LabelledDataset],
    protocol: str | None = None,
    datasets: Collection[str] = (),
) -> Iterator[Finding]:
    """Judge every trial that has scores, store changed records of a run store, and yield a finding for each trial.

    ``protocol`` is the label of a protocol that judges all trials instead of their own; then nothing is stored.
    ``datasets`` limits the data sets. In a bank, metrics count as equal up to `SINGLE_PRECISION`, because rounding to
    float32 changes the ranks of rows whose scores differ only in the eighth digit.
    """
    judge = Judge(load)
    trials = source.trials()
    for done, trial in enumerate(trials):
        progress(done, len(trials))
        record = None
        try:
            record = source.record(trial)
            scored = record.status == "ok" or (record.status == "invalid" and "scores_hash" in record.manifest)
            if not scored or (datasets and record.dataset not in datasets):
                continue
            now = judge.again(replace(record, protocol=protocol or record.protocol), source)
            how = (0.0, JUDGED) if isinstance(source, Store) else (SINGLE_PRECISION, ["splits"])
            faults = tuple(judged_faults(record, now, *how))
            if isinstance(source, Store) and protocol is None and now != replace(record, manifest=now.manifest):
                source.put(now)
            yield Finding(trial, now, "changed" if faults else "same", faults)
        except TsadbenchError as error:
            yield Finding(trial, record, "cannot be judged", (str(error),))


def judge_outdated(
    records: Iterable[Record], store: Store, load: Callable[[str], LabelledDataset]
) -> tuple[tuple[Record, ...], int]:
    """Judge outdated trials again, and store their records.

    Returns the records by today's rules, and how many could not be judged. Data sets are read only if a protocol's code
    has changed; `judge_all` also notices changed labels.
    """
    judge = Judge(load)
    n_left = 0
    now = []
    for record in records:
        try:
            if judge.outdated(record):
                record = judge.again(record, store)
                with suppress(StoreError):  # a store that cannot be written keeps its record
                    store.put(record)
        except TsadbenchError:
            n_left += 1
        now.append(record)
    return tuple(now), n_left


def judged_faults(
    record: Record, now: Record, tolerance: float = TOLERANCE, names: Sequence[str] = JUDGED
) -> Iterator[str]:
    """Yield differences between two records in what the judge determines; numbers may differ by a tolerance."""
    then, here = ({name: getattr(one, name) for name in names} for one in (record, now))
    return differences(then, here, tolerance)


def differences(recorded: Mapping[str, object], found: Mapping[str, object], tolerance: float = 0.0) -> Iterator[str]:
    """Yield values that differ between nested mappings, beyond a relative and an absolute tolerance for numbers."""
    then, now = dict(_leaves(recorded)), dict(_leaves(found))
    for path in dict.fromkeys([*then, *now]):
        old, new = then.get(path), now.get(path)
        fitted = tolerance and path[0] == "thresholds" and path[-1] in _FITTED
        allowed = max(tolerance, _FITTED_TOLERANCE) if fitted else tolerance
        same = old == new
        if isinstance(old, float | int) and isinstance(new, float | int):
            with suppress(OverflowError):  # an integer beyond floats
                same = math.isclose(old, new, rel_tol=allowed, abs_tol=allowed)
        if not same:
            yield f"{'.'.join(path)}: recorded {old!r}, found {new!r}"


def _leaves(value: object, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    """Yield (path, value) for nested values; a path is ``("splits", "overall", "metrics", "auroc")``."""
    if is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    elif isinstance(value, list | tuple):
        value = dict(enumerate(value))
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _leaves(inner, (*path, str(name)))
    else:
        yield path, value
