"""One trial: take the protocol's episodes to the box, bring the scores to the judge, write down what came out."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np

from tsadbench.arrays import Float32Array, FloatArray
from tsadbench.box import Box, BoxFailure, Costs, Limits
from tsadbench.errors import ContractError
from tsadbench.manifest import identity, manifest
from tsadbench.parameters import as_json, parameters_of
from tsadbench.plan import Plan, Trial
from tsadbench.progress import Listener
from tsadbench.protocol import Episode, Judgement, Scored
from tsadbench.record import SCHEMA, Record


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What a trial leaves behind.

    Parameters
    ----------
    record
        The result.
    scores
        ``train/<episode>/<recording>`` and ``test/<episode>/<recording>``: [n_rows] each; empty unless ok.
    contributions
        ``<episode>/<recording>``: [n_rows, n_sensors] for each test recording, where they were offered and asked for.
    log
        What the detector printed, and its traceback where it failed.
    """

    record: Record
    scores: Mapping[str, FloatArray]
    contributions: Mapping[str, Float32Array] = field(default_factory=dict)
    log: str = ""


class _Course:
    """What a trial has gathered so far, whether or not it came to its end."""

    def __init__(self) -> None:
        self.costs = Costs()
        self.scored: list[Scored] = []
        self.contributions: dict[str, Float32Array] = {}
        self.log = ""


def run_trial(
    trial: Trial, plan: Plan, listener: Listener | None = None, stop: threading.Event | None = None
) -> Outcome:
    """Run one trial; whatever a detector does wrong becomes a status, never an exception.

    Parameters
    ----------
    trial
        What to run.
    plan
        The plan it belongs to: data, protocol, limits.
    listener
        Receives the detector's progress reports.
    stop
        Set by whoever wants the trial to end; it raises `Interrupted` then.
    """
    started = datetime.now(UTC)
    course = _Course()
    limits = Limits(plan.timeout, plan.memory_mib, stop or threading.Event())
    judgement: Judgement | None = None
    failure: BoxFailure | None = None
    try:
        for episode in plan.episodes:
            _score_episode(trial, plan, episode, course, limits, listener)
        judgement = plan.protocol.judge(course.scored, plan.data.labels)
    except BoxFailure as broken:
        failure = broken
    except ContractError as error:
        failure = BoxFailure("invalid", str(error))
    record = _record(trial, plan, course.costs, judgement, failure, started)
    if failure is not None:
        return Outcome(record, {}, log=course.log + failure.traceback)
    return Outcome(record, _named_scores(course.scored), course.contributions, course.log)


def _score_episode(
    trial: Trial, plan: Plan, episode: Episode, course: _Course, limits: Limits, listener: Listener | None
) -> None:
    dataset = plan.data.dataset
    box = Box(
        trial.contender.seeded(trial.seed),
        threads=trial.threads,
        limits=limits,
        listener=listener,
        forbidden=() if dataset.folder is None else (dataset.folder,),
    )
    with box:
        try:
            box.fit(episode.train)
            train = box.training_scores()
            test = []
            for recording in episode.test:
                test.append(box.score(recording))
                if plan.contributions and box.offers_contributions:
                    values = box.contributions(recording).astype(np.float32)
                    course.contributions[f"{episode.id}/{recording.id}"] = values
        finally:
            course.costs.add(box.costs)
            course.log += box.log()
    course.scored.append(Scored(episode, train, tuple(test), trial.contender.traits.fixed_threshold))


def _record(
    trial: Trial,
    plan: Plan,
    costs: Costs,
    judgement: Judgement | None,
    failure: BoxFailure | None,
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


def _named_scores(scored: Sequence[Scored]) -> dict[str, FloatArray]:
    named = {}
    for one in scored:
        for role, recordings, arrays in (
            ("train", one.episode.train, one.train),
            ("test", one.episode.test, one.test),
        ):
            for recording, scores in zip(recordings, arrays, strict=True):
                named[f"{role}/{one.episode.id}/{recording.id}"] = scores
    return named
