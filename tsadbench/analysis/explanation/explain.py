"""What a detector made of one recording, event by event: when it alarmed, how late, by which sensors, how surely."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tsadbench.base.prior import Edge, Prior
from tsadbench.base.protocol import Threshold
from tsadbench.execution.record import Record
from tsadbench.registry import load_detector, parse_request
from tsadbench.results.trial_result import ScoredRecording, TrialResult
from tsadbench.utils.arrays import BoolArray
from tsadbench.utils.mask_runs import mask_runs
from tsadbench.utils.parameters import JsonValue, as_json

SCHEMA = 1
# Sensors whose neighbours are looked up in the prior.
TOP = 3


@dataclass(frozen=True, slots=True)
class Share:
    """A sensor's share of what all sensors contribute to a score; those that lower it count as nothing."""

    sensor: str
    share: float


@dataclass(frozen=True, slots=True)
class Moment:
    """A row of the recording with its score.

    Parameters
    ----------
    row, seconds
        The row, and the time since the first one; None where the recording has no time.
    score
        The detector's.
    ratio
        Score over threshold; None where the threshold is not positive.
    sensors
        What each sensor contributes there, the largest first; empty where contributions were not kept.
    """

    row: int
    seconds: float | None
    score: float
    ratio: float | None
    sensors: tuple[Share, ...]


@dataclass(frozen=True, slots=True)
class FalseAlarms:
    """Flagged normal rows: in how many runs without a break, how many rows, of how many that could be."""

    alarms: int
    rows: int
    normal_rows: int


@dataclass(frozen=True, slots=True)
class Event:
    """A run of anomalous rows.

    Parameters
    ----------
    start, stop
        Its first row, and the row after its last.
    start_seconds
        Since the recording's first row; None where it has no time.
    evaluated_rows, flagged_rows
        How many of its rows count under the protocol, and how many of these are flagged.
    first_alarm
        The first of these; None where there is none: the event was missed.
    delay_rows, delay_seconds
        From its start to there.
    highest
        The evaluated row with the largest score; None where none has a score.
    before
        False alarms since the event before it, or since the recording's beginning.
    early_rows
        Flagged rows directly before its start whose scores may have seen it, for they look ahead; false alarms too.
    """

    start: int
    stop: int
    start_seconds: float | None
    evaluated_rows: int
    flagged_rows: int
    first_alarm: Moment | None
    delay_rows: int | None
    delay_seconds: float | None
    highest: Moment | None
    before: FalseAlarms
    early_rows: int


@dataclass(frozen=True, slots=True)
class Neighbours:
    """What the prior says about a sensor: the couplings that drive it, and those by which it drives others."""

    sensor: str
    driven_by: tuple[Edge, ...]
    drives: tuple[Edge, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """A detector's alarms on one recording.

    Parameters
    ----------
    label, seed, dataset, protocol, recording
        The trial and the recording.
    n_rows, n_evaluated
        Of the recording.
    look_ahead
        How many rows after a row its score may depend on: so much later an alarm is raised.
    threshold
        Of the fit that scored it, with its diagnostics.
    contributions
        "kept"; "not kept": the detector offers them, the trial did not keep them; "not offered".
    events
        In order.
    false_alarms
        Over the whole recording.
    neighbours
        Of the sensors that contributed most to the first alarms, where an event was missed to its highest score; empty
        without a prior or contributions.
    """

    label: str
    seed: int
    dataset: str
    protocol: str
    recording: str
    n_rows: int
    n_evaluated: int
    look_ahead: int
    threshold: Threshold
    contributions: str
    events: tuple[Event, ...]
    false_alarms: FalseAlarms
    neighbours: tuple[Neighbours, ...]

    def to_json(self) -> dict[str, JsonValue]:
        """Return the explanation as JSON: its fields by name, ``schema`` before them."""
        return {"schema": SCHEMA, **_as_json(dataclasses.asdict(self))}


def explain(result: TrialResult, recording: str, prior: Prior | None = None) -> Explanation:
    """Explain what a trial's detector made of one test recording.

    Parameters
    ----------
    result
        The trial.
    recording
        The recording's id.
    prior
        The couplings among which neighbours are looked up; by default those that the trial's label names, else the
        data set's.

    Raises
    ------
    UsageError
        If there is no such recording among those that the protocol scores.
    DataError
        If the prior that the label names cannot be read.
    """
    scored = result.recording(recording)
    record = result.record
    (threshold,) = (one.threshold for one in record.thresholds if one.episode == scored.episode)
    spans = mask_runs(scored.anomalous)
    ends_before = [0, *(stop for _, stop in spans)]
    ahead = record.look_ahead
    events = tuple(_event(scored, *span, before, ahead) for span, before in zip(spans, ends_before, strict=False))
    used = _prior(result) if prior is None else prior
    return Explanation(
        label=record.label,
        seed=record.seed,
        dataset=record.dataset,
        protocol=record.protocol,
        recording=recording,
        n_rows=scored.recording.n_rows,
        n_evaluated=int(scored.evaluated.sum()),
        look_ahead=record.look_ahead,
        threshold=threshold,
        contributions=_state(record, scored),
        events=events,
        false_alarms=_false_alarms(scored, slice(None)),
        neighbours=() if used is None else tuple(_neighbours(used, name) for name in _top(events)),
    )


def _prior(result: TrialResult) -> Prior | None:
    named = parse_request(result.record.label).arguments.get("prior")
    return result.data.dataset.prior if named is None else Prior.load(named)


def _event(scored: ScoredRecording, start: int, stop: int, before: int, look_ahead: int) -> Event:
    rows = np.arange(start, stop)
    counted = rows[scored.evaluated[start:stop]]
    flagged = counted[scored.flagged[counted]]
    present = counted[~np.isnan(scored.scores[counted])]
    first = int(flagged[0]) if len(flagged) else None
    return Event(
        start=start,
        stop=stop,
        start_seconds=_seconds(scored, 0, start),
        evaluated_rows=len(counted),
        flagged_rows=len(flagged),
        first_alarm=None if first is None else _moment(scored, first),
        delay_rows=None if first is None else first - start,
        delay_seconds=None if first is None else _seconds(scored, start, first),
        highest=_moment(scored, int(present[scored.scores[present].argmax()])) if len(present) else None,
        before=_false_alarms(scored, slice(before, start)),
        early_rows=_early_rows(scored, max(before, start - look_ahead), start),
    )


def _early_rows(scored: ScoredRecording, first: int, start: int) -> int:
    """Return how many rows up to ``start`` are flagged without a break, from ``first`` on."""
    left_alone = ~(scored.flagged & scored.evaluated)[first:start]
    return int(np.argmax(left_alone[::-1])) if left_alone.any() else start - first


def _moment(scored: ScoredRecording, row: int) -> Moment:
    score = float(scored.scores[row])
    return Moment(
        row=row,
        seconds=_seconds(scored, 0, row),
        score=score,
        ratio=score / scored.threshold if scored.threshold > 0 else None,
        sensors=_shares(scored, row),
    )


def _shares(scored: ScoredRecording, row: int) -> tuple[Share, ...]:
    if scored.contributions is None:
        return ()
    raising = np.maximum(np.nan_to_num(scored.contributions[row]).astype(np.float64), 0.0)
    total = float(raising.sum())
    if total == 0:
        return ()
    names = scored.recording.sensors
    return tuple(Share(names[place], float(raising[place]) / total) for place in np.argsort(-raising, kind="stable"))


def _false_alarms(scored: ScoredRecording, rows: slice) -> FalseAlarms:
    normal: BoolArray = (~scored.anomalous & scored.evaluated)[rows]
    wrong = scored.flagged[rows] & normal
    return FalseAlarms(alarms=len(mask_runs(wrong)), rows=int(wrong.sum()), normal_rows=int(normal.sum()))


def _seconds(scored: ScoredRecording, start: int, row: int) -> float | None:
    time = scored.recording.time
    return None if time is None else float(time[row] - time[start])


def _state(record: Record, scored: ScoredRecording) -> str:
    if scored.contributions is not None:
        return "kept"
    return "not kept" if load_detector(parse_request(record.label).target).offers_contributions() else "not offered"


def _top(events: Sequence[Event]) -> list[str]:
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


def _as_json(value: Mapping[str, object]) -> dict[str, JsonValue]:
    return {name: _plain(one) for name, one in value.items()}


def _plain(value: object) -> JsonValue:
    if isinstance(value, dict):
        return _as_json(value)
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return as_json(value)
