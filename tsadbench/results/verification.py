"""Verifies a run store by comparing its files with each other, or by running trials again.

Stored files cannot prove that a detector made the scores: a forger can make everything else fit. `repeat` can.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from functools import cache
from typing import Any

import numpy as np

from tsadbench.base.dataset import LabelledDataset
from tsadbench.errors import BrokenTrialError, StoreError, TsadbenchError, UsageError
from tsadbench.execution.identity import changes, code_of, scoring_identity, trial_name
from tsadbench.execution.judging import contribution_shapes, score_shapes
from tsadbench.execution.plan import Contender, Plan, Trial, contender_from_label, plan_of
from tsadbench.execution.record import Record
from tsadbench.execution.store import Store
from tsadbench.execution.trial import run_trials
from tsadbench.results.admission import refusal
from tsadbench.results.judging import TOLERANCE, Finding, Judge, differences, judged_faults
from tsadbench.results.trial_result import data_faults, fixed_threshold_of
from tsadbench.sandbox import Costs, asking
from tsadbench.utils.arrays import FloatArray
from tsadbench.utils.parameters import parse_label
from tsadbench.utils.progress import progress

# Traits of the detector that a record repeats.
_TRAITS = ("floor", "family", "look_ahead", "leaky", "differs", "pretrained_on")
# What a run measures: a store can only claim it.
_CLAIMED = (*(one.name for one in fields(Costs)), "seal", "seal_reason", "replay", "training")
# Manifest entries that may explain a difference, besides code and versions.
_CIRCUMSTANCES = ("platform", "processor", "blas")


def verify(
    store: Store,
    load: Callable[[str], LabelledDataset],
    named: Collection[str] = (),
    datasets: Collection[str] = (),
) -> Iterator[Finding]:
    """Yield a finding for each trial of a store, "same", "differs" or "cannot be checked", and "edited" for odd files.

    ``load`` returns the data set of a name; ``datasets`` limits the data sets. ``named`` are labels of unregistered
    detectors that boxes may load, with their priors. Remarks report changed code or rules; records under other rules
    are replaced by today's.
    """
    judge = Judge(load)

    @cache
    def contender(label: str, dataset: str) -> Contender | str:
        try:
            return contender_from_label(label, judge.data(dataset).dataset)
        except TsadbenchError as error:
            return f"the detector {label} was not compared: {error}"

    trials = store.trials()
    with asking():
        for done, trial in enumerate(trials):
            progress(done, len(trials))
            record = None
            try:
                record = store.record(trial)
                if datasets and record.dataset not in datasets:
                    continue
                judge.data(record.dataset)
            except TsadbenchError as error:
                yield Finding(trial, record, "cannot be checked", (str(error),))
                continue
            refused = refusal(record, named)
            found = f"{refused}: the detector was not compared" if refused else contender(record.label, record.dataset)
            if isinstance(found, Contender) and found.description.sources.digest != code_of(record.manifest):
                found = f"the code of {record.detector} here differs from the code that made it"
            faults, remarks = list[str](), [found] if isinstance(found, str) else []
            try:
                faults += _record_faults(record, found)
                faults += _judged_faults(record, store, judge, remarks)
            except TsadbenchError as error:
                faults.append(str(error))
            yield Finding(trial, record, "differs" if faults else "same", tuple(faults), tuple(remarks))
    yield from (Finding(name, None, "edited", ("it is a link, a pipe or a device",)) for name in store.odd_files())


def _record_faults(record: Record, contender: Contender | str) -> Iterator[str]:
    """Yield fields that contradict other fields of the record or, if the same code is installed, its detector."""
    identity = scoring_identity(record.label, record.dataset, record.manifest)
    expected: dict[str, object] = {name: record.manifest.get(name) for name in ("seed", "threads")}
    expected |= {"scoring": identity, "trial": trial_name(identity, record.protocol)}
    expected |= {"detector": parse_label(record.label).target}
    if record.status != "ok":
        expected |= {"splits": {}, "thresholds": ()}
    if isinstance(contender, Contender):
        expected |= {"label": contender.label, "parameters": contender.description.values}
        expected |= {name: getattr(contender.traits, name) for name in _TRAITS}
        if fixed_threshold_of(record) != contender.traits.fixed_threshold:
            yield f"fixed threshold: recorded {fixed_threshold_of(record)}, found {contender.traits.fixed_threshold}"
    yield from differences({name: getattr(record, name) for name in expected}, expected)


def _judged_faults(record: Record, store: Store, judge: Judge, remarks: list[str]) -> Iterator[str]:
    """Yield data and results that differ from today's; raise a StoreError if arrays are not the record's."""
    faults = data_faults(record, judge.data(record.dataset))
    yield from faults
    if record.status != "ok" or faults:
        return
    now = judge.again(record, store)
    episodes = judge.episodes(record.dataset, record.protocol)
    store.contributions(record, contribution_shapes(episodes))  # raises if they are not those of the record
    if now.judging == record.judging:
        yield from judged_faults(record, now)
    else:
        with suppress(StoreError):  # a store that cannot be written keeps its record
            store.put(now)
        remarks.append("judged again, because the rules have changed")


def drawn(store: Store, n: int | None, datasets: Collection[str] = ()) -> tuple[Record, ...]:
    """Draw n random trials with scores (None: all), detectors before floors, optionally from some data sets only.

    Raises a UsageError if no trial has scores.
    """
    records = (record for record in store.records() if record.status == "ok")
    with_scores = [record for record in records if not datasets or record.dataset in datasets]
    if not with_scores:
        raise UsageError(f"{store.path} has no trial with scores to run again")
    # Use the system's randomness, so that the sender of a store cannot predict the trials.
    shuffled = secrets.SystemRandom().sample(with_scores, len(with_scores))
    return tuple(sorted(shuffled, key=lambda record: record.floor)[:n])


def repeat(
    records: Sequence[Record],
    store: Store,
    load: Callable[[str], LabelledDataset],
    named: Collection[str] = (),
    *,
    tolerance: float = TOLERANCE,
    timeout: float | None = None,
    memory: float | None = None,
) -> Iterator[Finding]:
    """Run trials again, one after the other, and yield the comparison of each with the store.

    The verdict is "to the bit", "within tolerance", "differs" or "cannot be repeated"; remarks name possible causes
    of a difference. If a trial repeats, the new measurements replace its record's. Trials run as under
    `tsadbench run`, with the same seed, threads, order and disguise. ``named`` are labels of unregistered detectors
    that boxes may load. Scores may differ by ``tolerance``, a share of the range of the recorded test scores, and so
    may thresholds and metrics: another processor changes the last digits, and training amplifies such changes.
    """
    for done, record in enumerate(records):
        progress(done, len(records), record.label)
        try:
            data = load(record.dataset)
            if faults := data_faults(record, data):
                raise UsageError("; ".join(faults))
            asked = {"timeout": timeout, "memory": memory, "contributions": store.has_contributions(record)}
            yield _repeated(record, store, *_planned(record, data, named, **asked), tolerance)
        except TsadbenchError as error:
            if isinstance(error, BrokenTrialError):
                store.pass_over(record.trial, error)
            yield Finding(record.trial, record, "cannot be repeated", (str(error),))


def why_new(record: Record, load: Callable[[str], LabelledDataset], named: Collection[str] = ()) -> list[str]:
    """Return what has changed since a trial ran and makes it outdated; parameters as for `repeat`."""
    return list(changes(record, *_planned(record, load(record.dataset), named)))


def _planned(record: Record, data: LabelledDataset, named: Collection[str], **asked: Any) -> tuple[Trial, Plan]:
    """Return the trial that a record's label names, and its plan; a UsageError if it may not be loaded."""
    if refused := refusal(record, named):
        raise UsageError(f"trial {record.trial} ({record.label}): {refused}: a store can name any code")
    plan = plan_of([record.label], data, record.protocol, seeds=1, threads=record.threads, **asked)
    (trial,) = plan.trials
    traits = trial.contender.traits
    if record.seed != trial.seed and not (traits.stochastic or traits.adaptive):
        raise UsageError(f"{record.label} is deterministic and has no seed {record.seed}")
    return replace(trial, seed=record.seed), plan


def _repeated(record: Record, store: Store, trial: Trial, plan: Plan, tolerance: float) -> Finding:
    recorded = store.scores(record, score_shapes(plan.episodes))
    crossing = record.manifest.get("crossing")
    plan = replace(plan, store=store.path)  # boxes must not read it
    (outcome,) = run_trials((trial,), plan, crossing=crossing if isinstance(crossing, str) else None)
    again, difference = outcome.record, None
    if again.status != "ok":
        faults = [f"run again, it ends with status {again.status}: {again.reason}"]
    else:
        difference = _largest_difference(recorded, outcome.scores)
        share = f"{difference:.2g} of their range; {tolerance:g} is allowed"
        faults = [] if difference <= tolerance else [f"its scores differ from the repeated ones by up to {share}"]
        faults += judged_faults(record, again, max(TOLERANCE, tolerance) if tolerance else 0.0)
    then, here = ({key: one.manifest.get(key) for key in _CIRCUMSTANCES} for one in (record, again))
    remarks = (*changes(record, trial, plan), *differences(then, here))
    verdict = "differs" if faults else "within tolerance" if difference else "to the bit"
    if not faults:
        with suppress(StoreError):  # a store that cannot be written keeps its claims
            store.put(replace(record, **{name: getattr(again, name) for name in _CLAIMED}))
    return Finding(record.trial, record, verdict, tuple(faults), remarks, difference, again.seal)


def _largest_difference(recorded: Mapping[str, FloatArray], again: Mapping[str, FloatArray]) -> float:
    """Return the largest difference as a share of the range of the recorded test scores; infinite if NaN differ."""
    then, now = (np.concatenate([scores[name] for name in again]) for scores in (recorded, again))
    if not np.array_equal(np.isfinite(then), np.isfinite(now)):
        return float("inf")
    tested = np.concatenate([recorded[name] for name in again if name.startswith("test/")])
    # fmin and fmax ignore NaN.
    spread = float(np.fmax.reduce(tested, initial=-np.inf) - np.fmin.reduce(tested, initial=np.inf))
    largest = float(np.fmax.reduce(np.abs(then - now), initial=0.0))
    return largest / spread if spread > 0 else float("inf") if largest > 0 else 0.0
