"""A detector's alarms on one recording, event by event: when, how late, by which sensors, how far above the threshold.

Events and delays are those of `tsadbench.analysis.events`, so that an explanation and ``leaderboard --diagnostics``
report the same of a trial.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pydantic_core import to_jsonable_python

from tsadbench.analysis.events import Delay, Event, delays_of, recording_events, summed_contributions
from tsadbench.base.dataset import Cause
from tsadbench.base.prior import Edge, Prior
from tsadbench.base.protocol import Threshold
from tsadbench.execution.record import Record
from tsadbench.results.admission import offers_contributions
from tsadbench.results.trial_result import ScoredRecording, TrialResult
from tsadbench.utils.arrays import BoolArray, mask_runs
from tsadbench.utils.parameters import JsonValue, parse_label

SCHEMA = 1
# How many sensors of a moment are named, and their neighbours looked up in the prior.
TOP = 3


@dataclass(frozen=True, slots=True)
class Share:
    """A sensor's share of the total contribution to a score; sensors that lower the score have none."""

    sensor: str
    share: float


@dataclass(frozen=True, slots=True)
class Moment:
    """A row of the recording with its score.

    Parameters
    ----------
    row, seconds
        The row, and the time since the first one; None if the recording has no time.
    score
        The detector's.
    ratio
        Score over threshold; None if the threshold is not positive.
    sensors
        Each sensor's contribution, the largest first; empty if contributions were not kept.
    """

    row: int
    seconds: float | None
    score: float
    ratio: float | None
    sensors: tuple[Share, ...]


@dataclass(frozen=True, slots=True)
class FalseAlarms:
    """Flagged normal rows: the number of runs, of rows, and of the normal rows that are evaluated."""

    alarms: int
    rows: int
    normal_rows: int


@dataclass(frozen=True, slots=True)
class ExplainedEvent:
    """An event (`tsadbench.analysis.events.Event`) with its alarm.

    All its rows are evaluated. The delay, look-ahead included, is None if the event was missed or its onset was not
    seen; ``start_seconds`` count from the recording's first row. ``before`` are the false alarms since the previous
    event, and ``early_rows`` flagged rows directly before its start whose scores may depend on the event, as they look
    ahead. The data set names the sensors ``to_blame``; ``sensors`` are the contributions, the largest first, empty if
    they were not kept.
    """

    start: int
    stop: int
    onset_seen: bool
    already_on: bool
    start_seconds: float | None
    evaluated_rows: int
    flagged_rows: int
    first_alarm: Moment | None
    delay_rows: int | None
    delay_seconds: float | None
    highest: Moment | None
    before: FalseAlarms
    early_rows: int
    to_blame: tuple[str, ...]
    sensors: tuple[Share, ...]


@dataclass(frozen=True, slots=True)
class Neighbours:
    """A sensor's couplings in the prior: those that drive it, and those by which it drives others."""

    sensor: str
    driven_by: tuple[Edge, ...]
    drives: tuple[Edge, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """A detector's alarms on one recording.

    An alarm is raised ``look_ahead`` rows late. "training" or "held-out" rows set the threshold (``calibration``).
    Offered ``contributions`` are "kept" or "not kept"; they are "not known" of a detector that is not registered here.
    ``not_evaluated`` are anomalous rows that the protocol leaves out, as (first, one after the last). ``neighbours``
    are those of the sensors that contributed most to the first alarms, or to the highest score of a missed event.
    """

    label: str
    seed: int
    dataset: str
    protocol: str
    protocol_version: int
    recording: str
    n_rows: int
    n_evaluated: int
    look_ahead: int
    threshold: Threshold
    calibration: str
    contributions: str
    events: tuple[ExplainedEvent, ...]
    not_evaluated: tuple[tuple[int, int], ...]
    false_alarms: FalseAlarms
    neighbours: tuple[Neighbours, ...]

    def to_json(self) -> dict[str, JsonValue]:
        """Return the explanation as JSON: its fields by name, preceded by ``schema``."""
        return {"schema": SCHEMA, **to_jsonable_python(self)}


def explain(result: TrialResult, recording: str, prior: Prior | None = None) -> Explanation:
    """Explain a trial's alarms on one test recording; no code that the trial's record names is run.

    A UsageError if the protocol scores no such recording.
    """
    scored = result.recording(recording)
    record = result.record
    (threshold,) = (fit.threshold for fit in record.thresholds if fit.episode == scored.episode)
    events = _events(scored, record.look_ahead, result.data.labels.causes.get(recording, ()))
    named = parse_label(record.label).arguments.get("prior")
    used = result.data.dataset.prior if prior is None and named is None else prior
    return Explanation(
        label=record.label,
        seed=record.seed,
        dataset=record.dataset,
        protocol=record.protocol,
        protocol_version=record.protocol_version,
        recording=recording,
        n_rows=scored.recording.n_rows,
        n_evaluated=int(scored.evaluated.sum()),
        look_ahead=record.look_ahead,
        threshold=threshold,
        calibration=result.calibrated_on(scored.episode),
        contributions=_state(record, scored),
        events=events,
        not_evaluated=tuple(mask_runs(scored.anomalous & ~scored.evaluated)),
        false_alarms=_false_alarms(scored, slice(None)),
        neighbours=() if used is None else tuple(_neighbours(used, sensor) for sensor in _top(events)),
    )


def _events(scored: ScoredRecording, look_ahead: int, causes: Sequence[Cause]) -> tuple[ExplainedEvent, ...]:
    events = recording_events(scored)
    delays = delays_of(events, scored.recording.n_rows, scored.recording.time, look_ahead)
    previous_stops = [0, *(event.stop for event in events)]
    return tuple(
        _explained(scored, event, delay, previous_stop, look_ahead, causes)
        for event, delay, previous_stop in zip(events, delays, previous_stops, strict=False)
    )


def _explained(
    scored: ScoredRecording,
    event: Event,
    delay: Delay | None,
    previous_stop: int,
    look_ahead: int,
    causes: Sequence[Cause],
) -> ExplainedEvent:
    rows = slice(event.start, event.stop)
    scores = scored.scores[rows]
    its_causes = [cause for cause in causes if cause.start < event.stop and event.start < cause.stop]
    return ExplainedEvent(
        start=event.start,
        stop=event.stop,
        onset_seen=event.onset_seen,
        already_on=event.already_on,
        start_seconds=_seconds(scored, event.start),
        evaluated_rows=event.stop - event.start,
        flagged_rows=int(scored.flagged[rows].sum()),
        first_alarm=None if event.first_flagged is None else _moment(scored, event.first_flagged),
        delay_rows=None if delay is None else delay.rows,
        delay_seconds=None if delay is None else delay.seconds,
        highest=None if np.isnan(scores).all() else _moment(scored, event.start + int(np.nanargmax(scores))),
        before=_false_alarms(scored, slice(previous_stop, event.start)),
        early_rows=_early_rows(scored, max(previous_stop, event.start - look_ahead), event.start),
        to_blame=tuple(dict.fromkeys(sensor for cause in its_causes for sensor in cause.sensors)),
        sensors=_shares(scored, rows),
    )


def _early_rows(scored: ScoredRecording, first: int, start: int) -> int:
    """Return the length of the run of flagged rows that ends before ``start``, counted from ``first`` on."""
    left_alone = ~(scored.flagged & scored.evaluated)[first:start]
    return int(np.argmax(left_alone[::-1])) if left_alone.any() else start - first


def _moment(scored: ScoredRecording, row: int) -> Moment:
    score = float(scored.scores[row])
    return Moment(
        row=row,
        seconds=_seconds(scored, row),
        score=score,
        ratio=score / scored.threshold if scored.threshold > 0 else None,
        sensors=_shares(scored, slice(row, row + 1)),
    )


def _shares(scored: ScoredRecording, rows: slice) -> tuple[Share, ...]:
    if scored.contributions is None:
        return ()
    raising = np.maximum(summed_contributions(scored.contributions[rows]), 0.0)
    total = float(raising.sum())
    if total == 0:
        return ()
    sensors = scored.recording.sensors
    return tuple(Share(sensors[i], float(raising[i]) / total) for i in np.argsort(-raising, kind="stable"))


def _false_alarms(scored: ScoredRecording, rows: slice) -> FalseAlarms:
    normal: BoolArray = (~scored.anomalous & scored.evaluated)[rows]
    wrong = scored.flagged[rows] & normal
    return FalseAlarms(alarms=len(mask_runs(wrong)), rows=int(wrong.sum()), normal_rows=int(normal.sum()))


def _seconds(scored: ScoredRecording, row: int) -> float | None:
    time = scored.recording.time
    return None if time is None else float(time[row] - time[0])


def _state(record: Record, scored: ScoredRecording) -> str:
    if scored.contributions is not None:
        return "kept"
    offered = offers_contributions(record)
    return {None: "not known", True: "not kept", False: "not offered"}[offered]


def _top(events: Sequence[ExplainedEvent]) -> list[str]:
    """Return the sensors that contributed most, those of the first event first."""
    moments = [event.first_alarm or event.highest for event in events]
    shares = [share for moment in moments if moment is not None for share in moment.sensors[:TOP]]
    return list(dict.fromkeys(share.sensor for share in shares if share.share > 0))


def _neighbours(prior: Prior, sensor: str) -> Neighbours:
    return Neighbours(
        sensor=sensor,
        driven_by=tuple(edge for edge in prior.edges if edge.target == sensor),
        drives=tuple(edge for edge in prior.edges if edge.source == sensor),
    )
