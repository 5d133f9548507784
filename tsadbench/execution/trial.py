"""One trial: fit and score the protocol's episodes in boxes, judge the scores, make the record."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime

import numpy as np
from pydantic import ValidationError

from tsadbench.base.protocol import Episode, Judgement, Scored
from tsadbench.base.replay import Replay
from tsadbench.base.status import Seal
from tsadbench.errors import ContractError, DataError, PluginError, UsageError
from tsadbench.execution.identity import identity, manifest
from tsadbench.execution.judging import arrays_hash, contribution_name, named_scores
from tsadbench.execution.plan import Plan, Trial
from tsadbench.execution.record import SCHEMA, EpisodeTraining, Record, fault_of
from tsadbench.execution.replays import combined
from tsadbench.sandbox import Box, BoxFailure, Costs, Crossing, Limits
from tsadbench.sandbox.replay import Audit, Copies
from tsadbench.utils.arrays import Float32Array, FloatArray
from tsadbench.utils.parameters import JsonValue
from tsadbench.utils.progress import Listener
from tsadbench.utils.text import printable, without_folders


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """The result of a trial: its record, its arrays (empty unless ok), and what the detector printed."""

    record: Record
    scores: Mapping[str, FloatArray]
    contributions: Mapping[str, Float32Array] = field(default_factory=dict)
    log: str = ""


# Reason for a guarded trial on a machine that could seal.
IMPORTED = "its code was imported by the calling program"
# At most this many episodes are replayed: replaying all would double the time of protocols with many episodes.
_MOST_AUDITED = 3


@dataclass(slots=True, eq=False)
class _Partial:
    """A trial's results so far; kept even if it fails."""

    trial: Trial
    costs: Costs = field(default_factory=Costs)
    scored: list[Scored] = field(default_factory=list)
    contributions: dict[str, Float32Array] = field(default_factory=dict)
    log: str = ""
    training: list[EpisodeTraining] = field(default_factory=list)
    replays: list[Replay] = field(default_factory=list)
    seals: list[tuple[Seal, str]] = field(default_factory=list)

    def score(self, box: Box, episode: Episode, order: Sequence[int], *, contributions: bool) -> None:
        """Score an episode with a fitted detector; its test and calibration recordings are scored in this ``order``."""
        train, scores = box.training_scores(), dict[int, FloatArray]()
        n_test, recordings = len(episode.test), (*episode.test, *episode.calibration)
        for i in order:
            scores[i] = box.score(recording := recordings[i])
            if contributions and box.offers_contributions:
                values = box.contributions(recording).astype(np.float32)
                if i < n_test:
                    self.contributions[contribution_name(episode, recording)] = values
        test, calibration = (tuple(scores[i] for i in some) for some in (range(n_test), range(n_test, len(recordings))))
        self.scored.append(Scored(episode, train, test, self.trial.contender.traits.fixed_threshold, calibration))

    def settle(self, box: Box) -> None:
        """Add the costs and the output of an episode's box."""
        self.costs.add(box.costs)
        self.log += box.log()


@dataclass(frozen=True, slots=True)
class _Work:
    """One episode of trials that share its fit."""

    plan: Plan
    episode: Episode
    crossing: Crossing
    limits: Limits
    listener: Listener | None
    audited: bool

    def run(self, partials: Sequence[_Partial]) -> None:
        """Fit once, then score for each trial with its scoring parameters."""
        episode, first = self.episode, partials[0].trial
        unsettled = list(partials)
        with self._box(first, self.listener) as box:
            for partial in partials:
                partial.seals.append((box.seal, box.seal_reason))
            try:
                training = EpisodeTraining(episode.id, box.fit(episode.train))
                adaptive, fresh = first.contender.traits.adaptive, lambda: self._box(first)
                with Copies(
                    box, fresh, episode.train, n_copies=len(partials), adaptive=adaptive, audited=self.audited
                ) as copies:
                    for partial in partials:
                        partial.training.append(training)
                        of, traits = partial.trial.contender.construction, partial.trial.contender.traits
                        box.set_parameters(of, traits.scoring_parameters)
                        order = self.crossing.order(len(episode.test) + len(episode.calibration))
                        partial.score(box, episode, order, contributions=self.plan.contributions)
                        partial.settle(box)
                        unsettled.remove(partial)
                        # Leaky detectors are marked and unranked anyway, and their scores are known not to repeat.
                        if self.audited and not traits.leaky:
                            with copies.take(of, traits.scoring_parameters) as copy:
                                audit = Audit(copy, copies.how, traits, self.crossing, partial.scored[-1])
                                partial.replays.append(audit.run())
            finally:
                for partial in unsettled:
                    partial.settle(box)

    def _box(self, trial: Trial, listener: Listener | None = None) -> Box:
        hidden = (self.plan.data.dataset.folder, self.plan.store)
        return Box(
            trial.contender.seeded(trial.seed),
            threads=trial.threads,
            crossing=self.crossing,
            limits=self.limits,
            listener=listener,
            forbidden=[folder for folder in hidden if folder is not None],
        )


def run_trials(
    trials: Sequence[Trial],
    plan: Plan,
    listener: Listener | None = None,
    stop: threading.Event | None = None,
    crossing: str | None = None,
) -> tuple[Outcome, ...]:
    """Run trials that differ only in scoring parameters with one fit (`shared_fits`).

    A detector's faults become a status, never an exception. If a trial fails, each is run by itself, so that none fails
    because of another. Setting ``stop`` ends them and raises `Interrupted`. ``crossing`` is an earlier trial's secret
    (``manifest["crossing"]``), to repeat its disguise; None draws a new one.
    """
    secret, started = crossing or secrets.token_hex(16), datetime.now(UTC)
    partials = [_Partial(trial) for trial in trials]
    limits = Limits(plan.timeout, plan.memory_mib, stop or threading.Event(), plan.require_seal)
    drawn = Crossing(None, secret).generator("audited").permutation(range(len(plan.episodes)))
    failure: BoxFailure | None = None
    try:
        for number, episode in enumerate(plan.episodes):
            disguise = Crossing(plan.data.dataset.sensors, secret, number)
            _Work(plan, episode, disguise, limits, listener, number in drawn[:_MOST_AUDITED]).run(partials)
    except BoxFailure as broken:
        failure = broken
    except PluginError as error:  # no box can be started
        failure = BoxFailure("error", str(error))
    outcomes = []
    for partial in partials:
        shared_with = [other.contender.label for other in trials if other is not partial.trial]
        made = manifest(partial.trial, plan, started, shared_with, secret)
        outcomes.append(_outcome(partial, plan, failure, made))
    if len(trials) > 1 and any(outcome.record.status != "ok" for outcome in outcomes):
        return tuple(run_trials((trial,), plan, listener, stop, crossing)[0] for trial in trials)
    return tuple(outcomes)


def require_recordable(trial: Trial, plan: Plan) -> None:
    """Raise a UsageError if no record can hold a trial: a name has odd characters, or a parameter is infinite."""
    try:
        failed_outcome(trial, plan, BoxFailure("error", ""))
    except ValidationError as error:
        message = f"{printable(trial.contender.label)}: no record can hold it ({fault_of(error)})"
        raise UsageError(message, field="detector") from error


def failed_outcome(trial: Trial, plan: Plan, failure: BoxFailure) -> Outcome:
    """Return the outcome of a trial that did not reach a box of this machine, or was lost."""
    return _outcome(_Partial(trial), plan, failure, manifest(trial, plan, datetime.now(UTC)))


def _outcome(partial: _Partial, plan: Plan, failure: BoxFailure | None, made: dict[str, JsonValue]) -> Outcome:
    trial, judgement = partial.trial, Judgement((), {})
    if failure is None:
        try:
            judgement = plan.protocol.judge(partial.scored, plan.data.labels)
        except (ContractError, DataError) as error:  # scores that cannot be judged
            failure = BoxFailure("invalid", str(error))
    scores, contributions = ({}, {}) if failure else (named_scores(partial.scored), partial.contributions)
    if failure is None:
        made["scores_hash"] = arrays_hash(scores)
        made |= {"contributions_hash": arrays_hash(contributions)} if contributions else {}
    contender = trial.contender
    # The weakest seal of any episode's box: "guarded" < "sealed".
    seal, seal_reason = min(partial.seals, default=("guarded", "no box was opened"))
    if contender.construction.source.runs_here:
        seal, seal_reason = "guarded", IMPORTED
    record = Record(
        schema=SCHEMA,
        **asdict(identity(trial, plan)),
        detector=contender.name,
        label=contender.label,
        family=contender.traits.family,
        parameters=contender.description.values,
        floor=contender.traits.floor,
        look_ahead=contender.traits.look_ahead,
        dataset=plan.data.dataset.name,
        protocol=plan.protocol_label,
        notes=plan.data.dataset.notes,
        seed=trial.seed,
        threads=trial.threads,
        status=failure.status if failure else "ok",
        reason=without_folders(failure.reason) if failure else None,
        splits=judgement.splits,
        thresholds=judgement.thresholds,
        **asdict(partial.costs),
        manifest=made,
        protocol_notes=judgement.notes,
        leaky=contender.traits.leaky,
        differs=contender.traits.differs,
        pretrained_on=contender.traits.pretrained_on,
        note=contender.description.note,
        training=tuple(one for one in partial.training if one.facts),
        protocol_version=plan.protocol.version,
        replay=combined(partial.replays) if failure is None else None,
        seal=seal,
        seal_reason=seal_reason,
        dataset_version=plan.data.dataset.version,
    )
    return Outcome(record, scores, contributions, partial.log + (failure.traceback if failure else ""))
