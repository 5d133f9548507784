"""Checks a run store without running a detector: records against themselves, metrics against scores and labels.

What this cannot know is whether a detector made the scores: whoever forges them can compute everything else to fit.
`tsadbench.results.repetition` runs trials again for that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tsadbench.base.dataset import Dataset, LabelledDataset
from tsadbench.base.protocol import SplitJudgement, Threshold
from tsadbench.errors import StoreError, TsadbenchError
from tsadbench.execution.identity import code_of
from tsadbench.execution.judging import arrays_hash, contribution_shapes, score_shapes
from tsadbench.execution.plan import Contender, episodes_hash
from tsadbench.execution.record import Record
from tsadbench.execution.store import Store
from tsadbench.results.admission import refusal
from tsadbench.results.identities import contender_of, edits, other_detector, scoring_fault
from tsadbench.results.judging import Judge
from tsadbench.results.trial_result import data_faults
from tsadbench.sandbox import asking
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


def verify(store: Store, load: Callable[[str], LabelledDataset], named: Collection[str] = ()) -> Iterator[Verified]:
    """Yield the result for each trial of a store, in the order of the trials' names.

    One trial is in memory at a time; how far it is is reported to `tsadbench.progress`.

    Parameters
    ----------
    store
        The store.
    load
        Returns the data set of a name; a TsadbenchError means that its trials cannot be checked.
    named
        Labels of detectors that boxes may load, with the priors that they name, though they are not registered here.
    """
    trials = store.trials()
    with asking():
        verifier = _Verifier(store, load, named)
        for done, trial in enumerate(trials):
            progress(done, len(trials))
            try:
                record = store.record(trial)
            except StoreError as error:
                yield Verified(trial, None, "cannot be checked", (str(error),))
            else:
                yield verifier.verified(record)


class _Verifier:
    """Checks the trials of one store; what they have in common is found once."""

    def __init__(self, store: Store, load: Callable[[str], LabelledDataset], named: Collection[str]) -> None:
        self._store = store
        self._judge = Judge(load)
        self._named = named
        self._contenders: dict[tuple[str, str], Contender | str] = {}
        self._episodes: dict[tuple[str, str], str] = {}

    def verified(self, record: Record) -> Verified:
        """Return the result for one trial."""
        remarks: list[str] = []
        faults = list(edits(record))
        try:
            data = self._judge.data(record.dataset)
        except TsadbenchError as error:
            faults.append(f"data set {record.dataset}: {error}")
            return Verified(record.trial, record, "cannot be checked", tuple(faults), tuple(remarks))
        other_data = data_faults(record, data)
        faults += other_data
        same_code = self._same_code(record, data.dataset, remarks)
        if same_code is not None:
            faults += other_detector(record, same_code)
        if record.status != "ok":
            if record.splits or record.thresholds:
                faults.append(f"its status is {record.status}, yet it has metrics")
        elif not other_data:
            try:
                if fault := self._identity_fault(record):
                    faults.append(fault)
                faults += self._array_faults(record)
                faults += self._judged_faults(record, remarks)
            except TsadbenchError as error:
                faults.append(str(error))
        return Verified(record.trial, record, "differs" if faults else "same", tuple(faults), tuple(remarks))

    def _same_code(self, record: Record, dataset: Dataset, remarks: list[str]) -> Contender | None:
        """Return the detector that a record's label names if its code is here; otherwise a remark says why not."""
        if refused := refusal(record, self._named):
            remarks.append(f"{refused}: the detector was not compared")
            return None
        key = record.dataset, record.label
        if key not in self._contenders:
            self._contenders[key] = contender_of(record, dataset)
        contender = self._contenders[key]
        if isinstance(contender, str):
            remarks.append(f"the detector {record.label} was not compared: {contender}")
            return None
        if contender.description.sources.digest != code_of(record.manifest):
            remarks.append(f"the code of {record.detector} here is not what made it")
            return None
        return contender

    def _identity_fault(self, record: Record) -> str:
        table = record.dataset, record.protocol
        if table not in self._episodes:
            self._episodes[table] = episodes_hash(self._judge.episodes(record))
        return scoring_fault(record, self._episodes[table])

    def _array_faults(self, record: Record) -> Iterator[str]:
        """Yield whether the arrays are those that the run wrote; a StoreError if they cannot be read."""
        episodes = self._judge.episodes(record)
        arrays: dict[str, Mapping[str, NDArray[np.floating]]] = {
            "scores": self._store.scores(record, score_shapes(episodes)),
            "contributions": self._store.contributions(record, contribution_shapes(episodes)),
        }
        for name, found in arrays.items():
            if (found or name == "scores") and arrays_hash(found) != record.manifest.get(f"{name}_hash"):
                yield f"its {name} are not those that its run wrote: their hash is another"

    def _judged_faults(self, record: Record, remarks: list[str]) -> Iterator[str]:
        """Yield thresholds and metrics that are not what today's judge finds; older rules are replaced first."""
        now = self._judge.again(record, self._store)
        if self._judge.outdated(record):
            if now.judging == record.judging:
                yield f"protocol_version: recorded {record.protocol_version}, expected {now.protocol_version}"
            self._store.put(now)
            remarks.append("judged again: the rules have changed since")
            record = now
        yield from _found_again_faults(record, now)
        yield from judged_faults(record, now)


def _found_again_faults(record: Record, now: Record) -> Iterator[str]:
    """Yield what else judging finds again and is recorded otherwise."""
    if len({entry.episode for entry in record.thresholds}) < len(record.thresholds):
        yield "it has two thresholds for one episode"
    for name in _FOUND_AGAIN:
        then, found = getattr(record, name), getattr(now, name)
        if then != found:
            yield f"{name}: recorded {then!r}, found {found!r}"
    if record.reason is not None:
        yield f"reason: recorded {record.reason!r}, but its status is {record.status}"


def judged_faults(record: Record, now: Record, tolerance: float = TOLERANCE) -> Iterator[str]:
    """Yield the thresholds and metrics of a record that are not those of another one, up to a tolerance."""
    yield from _threshold_faults(record, now, tolerance)
    yield from metric_faults(record, now, tolerance)


def _threshold_faults(record: Record, now: Record, tolerance: float) -> Iterator[str]:
    recorded = {entry.episode: entry.threshold for entry in record.thresholds}
    here = {entry.episode: entry.threshold for entry in now.thresholds}
    for episode in dict.fromkeys([*recorded, *here]):
        then, found = recorded.get(episode), here.get(episode)
        if then is None or found is None:
            yield f"threshold of {episode}: {'not recorded' if then is None else 'recorded, but not in the data'}"
            continue
        for name in (field.name for field in fields(Threshold)):
            one, other = getattr(then, name), getattr(found, name)
            same = one == other if isinstance(one, str) or isinstance(other, str) else _close(one, other, tolerance)
            # What a search finds by likelihood ends a little elsewhere on another processor; the threshold does not.
            if not same and not (tolerance and name in _FITTED and _close(one, other, _FITTED_TOLERANCE)):
                which = "" if name == "value" else f", {name}"
                yield f"threshold of {episode}{which}: recorded {one}, found {other}"


def metric_faults(record: Record, now: Record, tolerance: float) -> Iterator[str]:
    """Yield the metrics of a record that are not those of another one, up to a tolerance."""
    for split in dict.fromkeys([*record.splits, *now.splits]):
        recorded, here = record.splits.get(split), now.splits.get(split)
        if recorded is None or here is None:
            yield f"split {split}: {'not recorded' if recorded is None else 'recorded, but not in the data'}"
            continue
        then_values, now_values = _values(recorded), _values(here)
        for name in dict.fromkeys([*then_values, *now_values]):
            if not _close(then_values.get(name), now_values.get(name), tolerance):
                yield f"{name} on {split}: recorded {then_values.get(name)}, found {now_values.get(name)}"


def _values(judged: SplitJudgement) -> dict[str, float | None]:
    """Return all numbers of a split by name; those of an entity as "auroc of machine-1"."""
    of_entities = {
        f"{name} of {entity}": value for entity, metrics in judged.entities.items() for name, value in metrics.items()
    }
    return {**judged.metrics, **of_entities, **{name: getattr(judged, name) for name in _COUNTS}}


_FOUND_AGAIN = ("rows_scored", "protocol_notes")
_COUNTS = ("n_rows", "n_anomalous", "coverage")


_FITTED = ("gamma", "sigma", "log_likelihood", "endpoint")
_FITTED_TOLERANCE = 1e-4


def _close(recorded: float | None, found: float | None, tolerance: float) -> bool:
    if recorded is None or found is None:
        return recorded is found
    return math.isclose(recorded, found, rel_tol=tolerance, abs_tol=tolerance)
