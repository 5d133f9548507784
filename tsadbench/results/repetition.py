"""Runs trials of a store again from the code at hand, and compares their scores: what no stored number can show."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from tsadbench.base.dataset import LabelledDataset
from tsadbench.base.status import Seal
from tsadbench.errors import BrokenTrialError, TsadbenchError, UsageError
from tsadbench.execution.identity import changes, code_of, identity
from tsadbench.execution.judging import score_shapes, scored_episodes
from tsadbench.execution.plan import Plan, Trial, make_plan
from tsadbench.execution.record import Record
from tsadbench.execution.request import RunRequest
from tsadbench.execution.store import Store
from tsadbench.execution.trial import Outcome, run_trial
from tsadbench.results.admission import require_admitted
from tsadbench.results.judging import judged_faults
from tsadbench.results.trial_result import data_faults
from tsadbench.utils.arrays import FloatArray
from tsadbench.utils.parameters import JsonValue, parse_label
from tsadbench.utils.progress import progress

Verdict: TypeAlias = Literal["to the bit", "within tolerance", "differs", "cannot be repeated"]
# Of the range of a trial's test scores. Another processor changes last digits, and training enlarges them.
TOLERANCE = 1e-6
# Of a manifest.
_VERSIONS = ("versions",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated:
    """What came of running one trial again.

    ``faults`` are what differs, or why the trial cannot be repeated; ``remarks`` what may be the cause of a difference:
    other code, other versions. ``difference`` is the largest one between a score and its repetition, as a share of the
    range of the test scores; ``seal`` is that of the repetition.
    """

    record: Record
    verdict: Verdict
    faults: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    difference: float | None = None
    seal: Seal | None = None


def drawn(store: Store, n: int | None) -> tuple[Record, ...]:
    """Return n random trials with scores (all if None), which nobody can know beforehand; a UsageError without any."""
    with_scores = [record for record in store.records() if record.status == "ok"]
    if not with_scores:
        raise UsageError(f"{store.path} has no trial with scores to run again")
    if n is None or n >= len(with_scores):
        return tuple(with_scores)
    return tuple(secrets.SystemRandom().sample(with_scores, n))


def repeat(
    records: Sequence[Record],
    store: Store,
    load: Callable[[str], LabelledDataset],
    named: Collection[str] = (),
    *,
    tolerance: float = TOLERANCE,
    timeout: float | None = None,
    memory: float | None = None,
) -> Iterator[Repeated]:
    """Run trials again, one after the other, and yield how each compares with what the store holds.

    Each runs as `tsadbench run` would do it, with its seed and threads, its recordings in the order and under the
    disguise of the first time. ``named`` are labels of detectors that boxes may load though they are not registered
    here. Scores may differ by ``tolerance``, as a share of the range of the recorded test scores.
    """
    for done, record in enumerate(records):
        progress(done, len(records), record.label)
        try:
            require_admitted(record, named)
            data = load(record.dataset)
            if faults := data_faults(record, data):
                raise UsageError("; ".join(faults))
            trial, plan = _planned(record, data, timeout, memory, contributions=store.has_contributions(record))
            recorded = dict(store.scores(record, score_shapes(plan.episodes)))
            scored_episodes(recorded, plan.episodes, None)  # none is missing
            crossing = record.manifest.get("crossing")
            outcome = run_trial(trial, plan, crossing=crossing if isinstance(crossing, str) else None)
            repeated = _compared(record, recorded, trial, plan, outcome, tolerance)
        except TsadbenchError as error:
            if isinstance(error, BrokenTrialError):
                store.pass_over(record.trial, error)
            repeated = Repeated(record=record, verdict="cannot be repeated", faults=(str(error),))
        yield repeated


def why_new(record: Record, load: Callable[[str], LabelledDataset], named: Collection[str] = ()) -> list[str]:
    """Return what has changed since a trial ran, so that a run makes or judges it again; parameters as for `repeat`."""
    require_admitted(record, named)
    return list(changes(record, *_planned(record, load(record.dataset))))


def _planned(
    record: Record,
    data: LabelledDataset,
    timeout: float | None = None,
    memory: float | None = None,
    *,
    contributions: bool = False,
) -> tuple[Trial, Plan]:
    """Return the trial that a record's label names, and a plan that holds it."""
    protocol = parse_label(record.protocol)
    plan = make_plan(
        RunRequest(
            detectors=[record.label],
            datasets=[data],
            protocols=[protocol.target],
            settings={f"{protocol.target}.{key}": value for key, value in protocol.arguments.items()},
            seeds=1,
            threads=record.threads,
            floors=False,
            contributions=contributions,
            timeout=timeout,
            memory=memory,
        )
    )
    (trial,) = plan.trials
    traits = trial.contender.traits
    if record.seed != trial.seed and not (traits.stochastic or traits.adaptive):
        raise UsageError(f"{record.label} is deterministic and has no seed {record.seed}")
    return replace(trial, seed=record.seed), plan


def _compared(
    record: Record,
    recorded: Mapping[str, FloatArray],
    trial: Trial,
    plan: Plan,
    outcome: Outcome,
    tolerance: float,
) -> Repeated:
    again, seal = outcome.record, outcome.record.seal
    remarks = tuple(_other_circumstances(record, again, trial, plan))
    if again.status != "ok":
        ended = f"run again it ends with status {again.status}: {again.reason}"
        return Repeated(record=record, verdict="differs", faults=(ended,), remarks=remarks, seal=seal)
    same_bits = all(np.array_equal(recorded[name], scores, equal_nan=True) for name, scores in outcome.scores.items())
    difference = 0.0 if same_bits else _largest_difference(recorded, outcome.scores)
    faults = []
    if not difference <= tolerance:
        faults.append(
            f"its scores differ from those of its repetition by up to {difference:.2g} of their range; {tolerance:g} "
            "is allowed"
        )
    faults += judged_faults(record, again, 0.0 if tolerance == 0.0 else TOLERANCE)
    verdict: Verdict = "differs" if faults else "to the bit" if same_bits else "within tolerance"
    return Repeated(
        record=record, verdict=verdict, faults=tuple(faults), remarks=remarks, difference=difference, seal=seal
    )


def _largest_difference(recorded: Mapping[str, FloatArray], again: Mapping[str, FloatArray]) -> float:
    """Return the largest difference as a share of the range of the recorded test scores; infinite if NaN differ."""
    names = list(again)
    then, now = (np.concatenate([scores[name] for name in names]) for scores in (recorded, again))
    if not np.array_equal(np.isfinite(then), np.isfinite(now)):
        return float("inf")
    tested = np.concatenate([recorded[name] for name in names if name.startswith("test/")])
    finite = tested[np.isfinite(tested)]
    spread = float(np.ptp(finite)) if len(finite) else 0.0
    largest = float(np.abs(then - now)[np.isfinite(then)].max(initial=0.0))
    return largest / spread if spread > 0 else float("inf") if largest > 0 else 0.0


def _other_circumstances(record: Record, again: Record, trial: Trial, plan: Plan) -> Iterator[str]:
    """Yield what is not as it was, and may be the cause of a difference."""
    then, here = record.manifest, again.manifest
    if code_of(here) != code_of(then):
        yield f"the code of {record.detector} here is not what made it"
    others = [
        f"{name} {versions.get(name)}, here {version}"
        for versions, now in ((_mapping(then, key), _mapping(here, key)) for key in _VERSIONS if key in then)
        for name, version in {**dict.fromkeys(versions), **now}.items()
        if versions.get(name) != version
    ]
    if others:
        yield f"it was made with other versions: {', '.join(dict.fromkeys(others))}"
    for key in ("platform", "processor", "blas"):
        if key in then and then[key] != here[key]:
            yield f"{key}: {then[key]}, here {here[key]}"
    if not others and identity(trial, plan).scoring != record.scoring:
        yield "its scoring identity is not that of the trial that was run"


def _mapping(manifest: Mapping[str, JsonValue], key: str) -> Mapping[str, JsonValue]:
    found = manifest.get(key)
    return found if isinstance(found, dict) else {}
