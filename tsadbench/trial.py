"""One trial: take the protocol's episodes to the box, bring the scores to the judge, write down what came out."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from tsadbench.arrays import FloatArray
from tsadbench.box import Box, Costs
from tsadbench.errors import ContractError
from tsadbench.manifest import identity, manifest
from tsadbench.parameters import as_json, parameters_of
from tsadbench.plan import Plan, Trial
from tsadbench.progress import Listener
from tsadbench.protocol import Episode, Judgement, Scored
from tsadbench.record import SCHEMA, Record, Status


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What a trial leaves behind.

    Parameters
    ----------
    record
        The result.
    scores
        ``train/<episode>/<recording>`` and ``test/<episode>/<recording>``: [n_rows] each; empty unless ok.
    log
        What there is to read where it failed.
    """

    record: Record
    scores: Mapping[str, FloatArray]
    log: str = ""


@dataclass(slots=True)
class _Failure:
    status: Status
    reason: str
    log: str


def run_trial(trial: Trial, plan: Plan, listener: Listener | None = None) -> Outcome:
    """Run one trial; whatever a detector does wrong becomes a status, never an exception.

    Parameters
    ----------
    trial
        What to run.
    plan
        The plan it belongs to: data and protocol.
    listener
        Receives the detector's progress reports.
    """
    started = datetime.now(UTC)
    costs = Costs()
    scored: tuple[Scored, ...] = ()
    judgement: Judgement | None = None
    failure: _Failure | None = None
    try:
        scored = tuple(_score_episode(trial, episode, costs, listener) for episode in plan.episodes)
        judgement = plan.protocol.judge(scored, plan.data.labels)
    except ContractError as error:
        failure = _Failure("invalid", str(error), traceback.format_exc())
    except Exception as error:  # a detector may raise anything; the other trials go on
        failure = _Failure("error", f"{type(error).__name__}: {error}", traceback.format_exc())
    record = _record(trial, plan, costs, judgement, failure, started)
    return Outcome(record, {} if failure else _named_scores(scored), failure.log if failure else "")


def _score_episode(trial: Trial, episode: Episode, costs: Costs, listener: Listener | None) -> Scored:
    construction = trial.contender.seeded(trial.seed)
    with Box(construction, threads=trial.threads, listener=listener) as box:
        try:
            box.fit(episode.train)
            train = box.training_scores()
            test = tuple(box.score(recording) for recording in episode.test)
        finally:
            costs.fit_seconds += box.costs.fit_seconds
            costs.score_seconds += box.costs.score_seconds
    costs.peak_memory_mib = max(costs.peak_memory_mib, box.costs.peak_memory_mib)
    return Scored(episode, train, test, fixed_threshold=trial.contender.traits.fixed_threshold)


def _record(
    trial: Trial,
    plan: Plan,
    costs: Costs,
    judgement: Judgement | None,
    failure: _Failure | None,
    started: datetime,
) -> Record:
    contender = trial.contender
    return Record(
        schema=SCHEMA,
        trial=identity(trial, plan),
        detector=contender.name,
        label=contender.label,
        family=contender.traits.family,
        parameters={
            parameter.name: as_json(contender.construction.arguments.get(parameter.name, parameter.default))
            for parameter in parameters_of(contender.construction.cls)
            if parameter.name != "seed"
        },
        floor=contender.floor,
        look_ahead=contender.traits.look_ahead,
        dataset=plan.data.dataset.name,
        protocol=plan.protocol_label,
        notes=plan.data.dataset.notes,
        seed=trial.seed,
        threads=trial.threads,
        status=failure.status if failure else "ok",
        reason=failure.reason if failure else None,
        splits=judgement.splits if judgement else {},
        thresholds=judgement.thresholds if judgement else (),
        fit_seconds=costs.fit_seconds,
        score_seconds=costs.score_seconds,
        peak_memory_mib=costs.peak_memory_mib,
        manifest=manifest(trial, plan, started),
    )


def _named_scores(scored: tuple[Scored, ...]) -> dict[str, FloatArray]:
    named = {}
    for one in scored:
        for role, recordings, arrays in (
            ("train", one.episode.train, one.train),
            ("test", one.episode.test, one.test),
        ):
            for recording, scores in zip(recordings, arrays, strict=True):
                named[f"{role}/{one.episode.id}/{recording.id}"] = scores
    return named
