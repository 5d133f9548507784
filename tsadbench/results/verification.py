"""Checks a run store without running a detector: computes every threshold and metric from scores and labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias

from tsadbench.base.dataset import LabelledDataset
from tsadbench.errors import StoreError, TsadbenchError
from tsadbench.execution.record import Record
from tsadbench.execution.run_store import Store
from tsadbench.execution.score_arrays import contribution_shapes
from tsadbench.results.admission import known_detector
from tsadbench.results.judging import Judge
from tsadbench.results.trial_result import data_faults
from tsadbench.utils.code_fingerprint import code_fingerprint
from tsadbench.utils.progress import progress

# Another machine's logarithm may differ in the last digit, and the fit of the tail follows it.
TOLERANCE = 1e-6

Verdict: TypeAlias = Literal["same", "differs", "cannot be checked"]


@dataclass(frozen=True, slots=True)
class Verified:
    """The result of checking one trial.

    Parameters
    ----------
    trial
        Its name.
    record
        Its record; None if that cannot be read.
    verdict
        "differs" if a metric, a threshold, the data or the labels are not as recorded.
    faults
        What differs, or why it cannot be checked; empty if nothing does.
    remarks
        What is no fault: the detector's code is another one now, or the rules are, and the trial was judged again.
    """

    trial: str
    record: Record | None
    verdict: Verdict
    faults: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


def verify(store: Store, load: Callable[[str], LabelledDataset], *, trust_code: bool = False) -> Iterator[Verified]:
    """Yield the result for each trial of a store, in the order of the trials' names.

    One trial is in memory at a time; how far it is is reported to `tsadbench.progress`.

    Parameters
    ----------
    store
        The store.
    load
        Returns the data set of a name; a TsadbenchError means that its trials cannot be checked.
    trust_code
        Whether to import detectors that are not registered here, to compare their code.
    """
    judge = Judge(load)

    @cache  # asking which detectors are installed takes as long as judging
    def code_here(detector: str) -> str | None:
        return _code_here(detector, trust_code)

    trials = store.trials()
    for done, trial in enumerate(trials):
        progress(done, len(trials))
        try:
            record = store.record(trial)
        except StoreError as error:
            yield Verified(trial, None, "cannot be checked", (str(error),))
        else:
            yield _verified(record, store, judge, code_here(record.detector))


def _verified(record: Record, store: Store, judge: Judge, code_here: str | None) -> Verified:
    remarks = []
    if code_here is None:
        remarks.append(
            f"the detector {record.detector} is not registered here: its code was not compared (--trust-code)"
        )
    elif code_here != record.manifest.get("code_hash"):
        remarks.append(f"the code of {record.detector} here is not what made it")
    try:
        data = judge.data(record.dataset)
    except TsadbenchError as error:
        fault = f"data set {record.dataset}: {error}"
        return Verified(record.trial, record, "cannot be checked", (fault,), tuple(remarks))
    faults = data_faults(record, data)
    if record.status != "ok":
        if record.splits or record.thresholds:
            faults.append(f"its status is {record.status}, yet it has metrics")
    elif not faults:
        try:
            now = judge.again(record, store)
            store.contributions(record.trial, contribution_shapes(judge.episodes(record)))
            if judge.outdated(record):
                store.replace_record(now, record.trial)
                remarks.append("judged again: the rules have changed since")
                record = now
            faults += [*_threshold_faults(record, now), *_metric_faults(record, now)]
        except TsadbenchError as error:
            faults.append(str(error))
    return Verified(record.trial, record, "differs" if faults else "same", tuple(faults), tuple(remarks))


def _code_here(detector: str, trust_code: bool) -> str | None:
    """Return the fingerprint of a detector's code; None if it is not registered here, or cannot be loaded."""
    known = known_detector(detector, trust_code=trust_code)
    return None if known is None else code_fingerprint(known)


def _threshold_faults(record: Record, now: Record) -> Iterator[str]:
    recorded = {entry.episode: entry.threshold.value for entry in record.thresholds}
    here = {entry.episode: entry.threshold.value for entry in now.thresholds}
    for episode in dict.fromkeys([*recorded, *here]):
        if not _close(recorded.get(episode), here.get(episode)):
            yield f"threshold of {episode}: recorded {recorded.get(episode)}, found {here.get(episode)}"


def _metric_faults(record: Record, now: Record) -> Iterator[str]:
    for split in dict.fromkeys([*record.splits, *now.splits]):
        recorded, here = record.splits.get(split), now.splits.get(split)
        if recorded is None or here is None:
            yield f"split {split}: {'not recorded' if recorded is None else 'recorded, but not in the data'}"
            continue
        then_values = {**recorded.metrics, **{name: getattr(recorded, name) for name in _COUNTS}}
        now_values = {**here.metrics, **{name: getattr(here, name) for name in _COUNTS}}
        for name in dict.fromkeys([*then_values, *now_values]):
            if not _close(then_values.get(name), now_values.get(name)):
                yield f"{name} on {split}: recorded {then_values.get(name)}, found {now_values.get(name)}"


_COUNTS = ("n_rows", "n_anomalous", "coverage")


def _close(recorded: float | None, found: float | None) -> bool:
    if recorded is None or found is None:
        return recorded is found
    return math.isclose(recorded, found, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
