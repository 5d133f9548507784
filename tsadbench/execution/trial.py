"""One trial: fit and score the protocol's episodes in the box, have the scores judged, write the record."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import TypeAlias

import numpy as np

from tsadbench.base.protocol import Episode, Judgement, Scored
from tsadbench.base.replay import Replay
from tsadbench.base.status import Seal
from tsadbench.base.training_facts import EpisodeTraining
from tsadbench.errors import ContractError
from tsadbench.execution.plan import Plan, Trial
from tsadbench.execution.provenance import identity, manifest
from tsadbench.execution.record import CHECKSUM, SCHEMA, Record
from tsadbench.execution.score_arrays import arrays_hash, contribution_name, named_scores
from tsadbench.sandbox import Box, BoxFailure, Costs, Crossing, Limits
from tsadbench.sandbox.crossing import new_secret
from tsadbench.sandbox.replay import Audit, Copies, combined, may_fork
from tsadbench.utils.arrays import Float32Array, FloatArray
from tsadbench.utils.names import without_folders
from tsadbench.utils.parameters import JsonValue
from tsadbench.utils.progress import Listener


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """The result of a trial: its record and its arrays.

    Parameters
    ----------
    record
        The result.
    scores
        As `score_arrays` names them: [n_rows] each; empty unless ok.
    contributions
        ``<episode>/<recording>``: [n_rows, n_sensors] for each test recording, if they were offered and asked for.
    log
        What the detector printed, and its traceback if it failed.
    """

    record: Record
    scores: Mapping[str, FloatArray]
    contributions: Mapping[str, Float32Array] = field(default_factory=dict)
    log: str = ""


# Why a trial is guarded although the kernel could have sealed its boxes.
IMPORTED = "its code was imported by the calling program"
# Receives trials that have ended, with their outcomes.
Keep: TypeAlias = Callable[[Sequence[Trial], Sequence[Outcome]], None]


# Each needs a process of its own to score again: a protocol with many small episodes would take twice as long.
_MOST_AUDITED = 3


class _TrialProgress:
    """Partial results of a trial, kept even if it fails."""

    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        self.costs = Costs()
        self.scored: list[Scored] = []
        self.contributions: dict[str, Float32Array] = {}
        self.log = ""
        self.training: list[EpisodeTraining] = []
        self.replays: list[Replay] = []
        self.seals: list[tuple[Seal, str]] = []

    @property
    def seal(self) -> tuple[Seal, str]:
        """How well the boxes of all episodes were closed: as the worst of them."""
        return min(self.seals, default=("guarded", "no box was opened"))  # "guarded" < "sealed"

    def score(self, box: Box, episode: Episode, order: Sequence[int], *, contributions: bool) -> float:
        """Gather the scores of one episode from a box whose detector is fitted; test recordings cross in this order.

        Returns
        -------
        float
            How many seconds the scores of the test recordings took.
        """
        train = box.training_scores()
        calibration = tuple(box.score(recording) for recording in episode.calibration)
        before = box.costs.score_seconds
        test: dict[int, FloatArray] = {}
        contributed: dict[int, Float32Array] = {}
        for i in order:
            test[i] = box.score(episode.test[i])
            if contributions and box.offers_contributions:
                contributed[i] = box.contributions(episode.test[i]).astype(np.float32)
        for i, values in sorted(contributed.items()):
            self.contributions[contribution_name(episode, episode.test[i])] = values
        fixed_threshold = self.trial.contender.traits.fixed_threshold
        scores = tuple(test[i] for i in range(len(episode.test)))
        self.scored.append(Scored(episode, train, scores, fixed_threshold, calibration))
        return box.costs.score_seconds - before

    def settle(self, box: Box) -> None:
        """Take over what an episode's box has used, and what its detector printed."""
        self.costs.add(box.costs)
        self.log += box.log()


def run_trial(
    trial: Trial,
    plan: Plan,
    listener: Listener | None = None,
    stop: threading.Event | None = None,
    crossing: str | None = None,
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
        Set to end the trial; `Interrupted` is raised then.
    crossing
        An earlier trial's secret (``manifest["crossing"]``), to repeat it under the same disguise; None: a new one.
    """
    (outcome,) = _run_together((trial,), plan, listener, stop, crossing)
    return outcome


def run_variants(
    trials: Sequence[Trial],
    plan: Plan,
    listener: Listener | None = None,
    stop: threading.Event | None = None,
    crossing: str | None = None,
) -> tuple[Outcome, ...]:
    """Run trials whose detectors differ in scoring parameters only: they are fitted once (`Plan.shared_fits`).

    If one of them fails, each is run by itself, so that none fails because of another. Parameters as for `run_trial`.
    """
    outcomes = _run_together(trials, plan, listener, stop, crossing)
    if len(trials) == 1 or all(outcome.record.status == "ok" for outcome in outcomes):
        return outcomes
    return tuple(run_trial(trial, plan, listener, stop, crossing) for trial in trials)


def failed_outcome(trial: Trial, plan: Plan, failure: BoxFailure) -> Outcome:
    """Return the outcome of a trial that never reached a box of this machine, or never came back."""
    return _outcome(_TrialProgress(trial), plan, failure, datetime.now(UTC), (trial,), None)


def _run_together(
    trials: Sequence[Trial],
    plan: Plan,
    listener: Listener | None,
    stop: threading.Event | None,
    crossing: str | None,
) -> tuple[Outcome, ...]:
    secret = new_secret() if crossing is None else crossing
    started = datetime.now(UTC)
    all_progress = [_TrialProgress(trial) for trial in trials]
    limits = Limits(plan.timeout, plan.memory_mib, stop or threading.Event(), plan.require_seal)
    failure: BoxFailure | None = None
    try:
        audited = _audited(plan, secret)
        for number, episode in enumerate(plan.episodes):
            disguise = Crossing(plan.data.dataset.sensors, secret, number)
            work = _Work(episode, plan, disguise, limits, audited=number in audited)
            _score_episode(work, all_progress, listener)
    except BoxFailure as broken:
        failure = broken
    return tuple(_outcome(progress, plan, failure, started, trials, secret) for progress in all_progress)


def _audited(plan: Plan, secret: str) -> frozenset[int]:
    """Return the numbers of the episodes whose scores are replayed: a few, which no detector can guess."""
    everything = range(len(plan.episodes))
    drawn = Crossing(None, secret).generator("audited").permutation(everything)
    return frozenset(int(number) for number in drawn[:_MOST_AUDITED])


@dataclass(frozen=True, slots=True)
class _Work:
    """An episode of a trial, and how it is to be done."""

    episode: Episode
    plan: Plan
    crossing: Crossing
    limits: Limits
    audited: bool

    def box(self, trial: Trial, listener: Listener | None = None) -> Box:
        """Return a new box for a trial."""
        hidden = (self.plan.data.dataset.folder, self.plan.store)
        return Box(
            trial.contender.seeded(trial.seed),
            threads=trial.threads,
            crossing=self.crossing,
            limits=self.limits,
            listener=listener,
            forbidden=[folder for folder in hidden if folder is not None],
        )

    def copies(self, box: Box, trials: Sequence[Trial]) -> Copies:
        """Return copies of a box's detector, one for each of the trials that it serves."""
        first = trials[0]
        return Copies(
            box,
            lambda: self.box(first),
            self.episode.train,
            n_copies=len(trials),
            may_fork=may_fork(first.contender.construction, first.threads),
            adaptive=first.contender.traits.adaptive,
            audited=self.audited,
        )

    def replay(self, copies: Copies, progress: _TrialProgress, seconds: float) -> None:
        """Have a copy score rows of the episode again that took so many seconds."""
        contender = progress.trial.contender
        with copies.take(contender.construction, contender.traits.scoring_parameters) as copy:
            audit = Audit(copy, copies.how, contender.traits, self.crossing, progress.scored[-1], seconds)
            progress.replays.append(audit.run())


def _score_episode(work: _Work, all_progress: Sequence[_TrialProgress], listener: Listener | None) -> None:
    episode = work.episode
    trials = [progress.trial for progress in all_progress]
    order = work.crossing.order(len(episode.test))
    unsettled = list(all_progress)
    with work.box(trials[0], listener) as box:
        for progress in all_progress:
            progress.seals.append((box.seal, box.seal_reason))
        try:
            training = EpisodeTraining(episode.id, box.fit(episode.train))
            with work.copies(box, trials) as copies:
                for progress in all_progress:
                    progress.training.append(training)
                    contender = progress.trial.contender
                    box.set_parameters(contender.construction, contender.traits.scoring_parameters)
                    seconds = progress.score(box, episode, order, contributions=work.plan.contributions)
                    progress.settle(box)
                    unsettled.remove(progress)
                    # A published leak is kept for comparison, marked and without a place: that its scores do not repeat
                    # is known.
                    if work.audited and not contender.traits.leaky:
                        work.replay(copies, progress, seconds)
        finally:
            for progress in unsettled:
                progress.settle(box)


def _outcome(
    progress: _TrialProgress,
    plan: Plan,
    failure: BoxFailure | None,
    started: datetime,
    trials: Sequence[Trial],
    secret: str | None,
) -> Outcome:
    judgement: Judgement | None = None
    if failure is None:
        try:
            judgement = plan.protocol.judge(progress.scored, plan.data.labels)
        except ContractError as error:
            failure = BoxFailure("invalid", str(error))
    shared_with = [trial.contender.label for trial in trials if trial is not progress.trial]
    made = manifest(progress.trial, plan, started, shared_with, secret)
    if failure is not None:
        record = _record(progress, plan, judgement, failure, made)
        return Outcome(record, {}, log=progress.log + failure.traceback)
    scores = named_scores(progress.scored)
    hashes = {"scores_hash": arrays_hash(scores)}
    if progress.contributions:
        hashes["contributions_hash"] = arrays_hash(progress.contributions)
    record = _record(progress, plan, judgement, failure, {**made, **hashes})
    return Outcome(record, scores, progress.contributions, progress.log)


def _record(
    progress: _TrialProgress,
    plan: Plan,
    judgement: Judgement | None,
    failure: BoxFailure | None,
    manifest: Mapping[str, JsonValue],
) -> Record:
    trial = progress.trial
    contender = trial.contender
    seal, seal_reason = progress.seal
    if contender.imported:
        seal, seal_reason = "guarded", IMPORTED
    record = Record(
        schema=SCHEMA,
        **asdict(identity(trial, plan)),
        detector=contender.name,
        label=contender.label,
        family=contender.traits.family,
        parameters=contender.parameters,
        floor=contender.floor,
        look_ahead=contender.traits.look_ahead,
        dataset=plan.data.dataset.name,
        protocol=plan.protocol_label,
        notes=plan.data.dataset.notes,
        seed=trial.seed,
        threads=trial.threads,
        status=failure.status if failure else "ok",
        reason=without_folders(failure.reason) if failure else None,
        splits=judgement.splits if judgement else {},
        thresholds=judgement.thresholds if judgement else (),
        **asdict(progress.costs),
        manifest=manifest,
        protocol_notes=judgement.notes if judgement else (),
        leaky=contender.traits.leaky,
        pretrained_on=contender.traits.pretrained_on,
        note=contender.description.note,
        training=tuple(one for one in progress.training if one.facts),
        protocol_version=plan.protocol.version,
        replay=combined(progress.replays) if failure is None else None,
        seal=seal,
        seal_reason=seal_reason,
        dataset_version=plan.data.dataset.version,
    )
    return replace(record, manifest={**manifest, CHECKSUM: record.checksum})
