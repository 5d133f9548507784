"""A detector's alarms on one recording, event by event: when, how late, by which sensors, how far above the threshold.

Events and delays are those of `tsadbench.analysis.events`, so that an explanation and ``leaderboard --diagnostics``
report the same of a trial.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
from pydantic_core import to_jsonable_python

from tsadbench.analysis.events import delays_of, recording_events, summed_contributions
from tsadbench.base.dataset import Cause
from tsadbench.base.prior import Edge, Prior
from tsadbench.base.protocol import Threshold
from tsadbench.results.admission import offers_contributions
from tsadbench.results.trial_result import ScoredRecording, TrialResult
from tsadbench.utils.arrays import BoolArray, mask_runs
from tsadbench.utils.parameters import JsonValue, parse_label

SCHEMA = 2
# How many sensors of a moment are named, and their neighbours looked up in the prior.
TOP = 3


class Moment(TypedDict):
    """A row with its score, and the sensors' shares of what raised it, the largest first; empty if not kept.

    Seconds count from the recording's first row, None without time; the ratio is score over threshold, None if that is
    not positive. A sensor that lowers the score has no share.
    """

    row: int
    seconds: float | None
    score: float
    ratio: float | None
    sensors: dict[str, float]


class FalseAlarms(TypedDict):
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
    ahead. The data set names the sensors ``to_blame``; ``sensors`` are the contributions' shares, the largest first,
    empty if they were not kept.
    """

    start: int
    stop: int
    onset_seen: bool
    already_on: bool
    start_seconds: float | None
    flagged_rows: int
    first_alarm: Moment | None
    delay_rows: int | None
    delay_seconds: float | None
    highest: Moment | None
    before: FalseAlarms
    early_rows: int
    to_blame: tuple[str, ...]
    sensors: dict[str, float]


@dataclass(frozen=True, slots=True)
class Explanation:
    """A detector's alarms on one recording.

    An alarm is raised ``look_ahead`` rows late. "training" or "held-out" rows set the threshold (``calibration``).
    Offered ``contributions`` are "kept" or "not kept"; they are "not known" of a detector that is not registered here.
    ``not_evaluated`` are anomalous rows that the protocol leaves out, as (first, one after the last). ``neighbours``
    are the prior's edges from and to the sensors that contributed most to the first alarms, or to the highest score of
    a missed event.
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
    neighbours: Mapping[str, tuple[Edge, ...]]

    def to_json(self) -> dict[str, JsonValue]:
        """Return all values as JSON has them, preceded by ``schema``."""
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
    state = "kept"
    if scored.contributions is None:
        state = {None: "not known", True: "not kept", False: "not offered"}[offers_contributions(record)]
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
        contributions=state,
        events=events,
        not_evaluated=tuple(mask_runs(scored.anomalous & ~scored.evaluated)),
        false_alarms=_false_alarms(scored, slice(None)),
        neighbours={} if used is None else _neighbours(used, events),
    )


def _events(scored: ScoredRecording, look_ahead: int, causes: Sequence[Cause]) -> tuple[ExplainedEvent, ...]:
    events = recording_events(scored)
    delays = delays_of(events, scored.recording.n_rows, scored.recording.time, look_ahead)
    explained, previous = [], 0
    for event, delay in zip(events, delays, strict=True):
        rows = slice(event.start, event.stop)
        scores = scored.scores[rows]
        blamed = [one.sensors for one in causes if one.start < event.stop and event.start < one.stop]
        one = ExplainedEvent(
            start=event.start,
            stop=event.stop,
            onset_seen=event.onset_seen,
            already_on=event.already_on,
            start_seconds=_seconds(scored, event.start),
            flagged_rows=int(scored.flagged[rows].sum()),
            first_alarm=None if event.first_flagged is None else _moment(scored, event.first_flagged),
            delay_rows=None if delay is None else delay.rows,
            delay_seconds=None if delay is None else delay.seconds,
            highest=None if np.isnan(scores).all() else _moment(scored, event.start + int(np.nanargmax(scores))),
            before=_false_alarms(scored, slice(previous, event.start)),
            early_rows=_early_rows(scored, max(previous, event.start - look_ahead), event.start),
            to_blame=tuple(dict.fromkeys(sensor for sensors in blamed for sensor in sensors)),
            sensors=_shares(scored, rows),
        )
        explained.append(one)
        previous = event.stop
    return tuple(explained)


def _early_rows(scored: ScoredRecording, first: int, start: int) -> int:
    """Return the length of the run of flagged rows that ends before ``start``, counted from ``first`` on."""
    left_alone = ~(scored.flagged & scored.evaluated)[first:start]
    return int(np.argmax(left_alone[::-1])) if left_alone.any() else start - first


def _moment(scored: ScoredRecording, row: int) -> Moment:
    score = float(scored.scores[row])
    ratio = score / scored.threshold if scored.threshold > 0 else None
    sensors = _shares(scored, slice(row, row + 1))
    return Moment(row=row, seconds=_seconds(scored, row), score=score, ratio=ratio, sensors=sensors)


def _shares(scored: ScoredRecording, rows: slice) -> dict[str, float]:
    if scored.contributions is None:
        return {}
    raising = np.maximum(summed_contributions(scored.contributions[rows]), 0.0)
    total, order = float(raising.sum()), np.argsort(-raising, kind="stable")
    return {scored.recording.sensors[i]: float(raising[i]) / total for i in order} if total else {}


def _false_alarms(scored: ScoredRecording, rows: slice) -> FalseAlarms:
    normal: BoolArray = (~scored.anomalous & scored.evaluated)[rows]
    wrong = scored.flagged[rows] & normal
    return FalseAlarms(alarms=len(mask_runs(wrong)), rows=int(wrong.sum()), normal_rows=int(normal.sum()))


def _seconds(scored: ScoredRecording, row: int) -> float | None:
    time = scored.recording.time
    return None if time is None else float(time[row] - time[0])


def _neighbours(prior: Prior, events: Sequence[ExplainedEvent]) -> dict[str, tuple[Edge, ...]]:
    """Return the edges of the sensors that contributed most, those of the first event first."""
    moments = [moment for event in events if (moment := event.first_alarm or event.highest)]
    sensors = [name for moment in moments for name, share in list(moment["sensors"].items())[:TOP] if share > 0]
    return {name: tuple(edge for edge in prior.edges if name in (edge.source, edge.target)) for name in sensors}
