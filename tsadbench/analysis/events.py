"""Events, delays and false alarms: the definition that diagnostics, explanations and figures share.

An *event* is a run of anomalous evaluated rows; it is *found* if at least one of its rows is flagged. A *false alarm*
is a run of flagged normal evaluated rows: an alarm that outlasts its event, or comes before it, is one as well. Neither
crosses a recording's border. There is no point adjustment: a found event makes no other row count as flagged.

Sources: event-wise recall as in Hundman et al., "Detecting Spacecraft Anomalies Using LSTMs and Nonparametric Dynamic
Thresholding", KDD 2018 (an event is found if a flagged stretch overlaps it); the delay of a detection as in Lavin and
Ahmad, "Evaluating Real-Time Anomaly Detection Algorithms: the Numenta Anomaly Benchmark", ICMLA 2015 (the first
detection in the anomaly's window counts).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tsadbench.base.recording import Recording
from tsadbench.results.trial_result import ScoredRecording
from tsadbench.utils.arrays import BoolArray, Float32Array, FloatArray, IntArray, mask_runs


class Event(NamedTuple):
    """An event's evaluated rows ``start`` to ``stop - 1`` in its recording, and what its alarm was.

    ``onset_seen``: a normal row precedes it, and its first row is evaluated; without that no alarm can be called late.
    ``already_on``: its onset was seen, and the row before is flagged, so that alarm can hardly be a detection.
    ``first_flagged`` is the first of its rows that is flagged; None if it is missed.
    """

    start: int
    stop: int
    onset_seen: bool
    already_on: bool
    first_flagged: int | None

    @property
    def found(self) -> bool:
        """Whether one of its rows is flagged."""
        return self.first_flagged is not None


class Delay(NamedTuple):
    """Time from an event's onset to its alarm; seconds are None if the recording's time is missing or runs back."""

    rows: int
    seconds: float | None


def events_of(anomalous: BoolArray, evaluated: BoolArray, flagged: BoolArray) -> tuple[Event, ...]:
    """Return a recording's events in order; the arrays are [n_rows].

    >>> anomalous = np.array([0, 0, 1, 1, 1, 0, 1], dtype=bool)
    >>> flagged = np.array([0, 1, 0, 0, 1, 0, 0], dtype=bool)
    >>> for event in events_of(anomalous, np.ones(7, dtype=bool), flagged):
    ...     print(event.start, event.stop, event.first_flagged)
    2 5 4
    6 7 None
    """
    events = []
    for start, stop in mask_runs(anomalous & evaluated):
        seen = start > 0 and not anomalous[start - 1]
        rows = np.flatnonzero(flagged[start:stop])
        first = start + int(rows[0]) if len(rows) else None
        events.append(Event(start, stop, seen, seen and bool(flagged[start - 1]), first))
    return tuple(events)


def false_alarms_of(anomalous: BoolArray, evaluated: BoolArray, flagged: BoolArray) -> IntArray:
    """Return a recording's false alarms, [n, 2]: first row, and the row after the last.

    >>> anomalous = np.array([0, 0, 0, 1, 1, 0, 0], dtype=bool)
    >>> flagged = np.array([1, 0, 1, 1, 1, 1, 0], dtype=bool)
    >>> false_alarms_of(anomalous, np.ones(7, dtype=bool), flagged).tolist()
    [[0, 1], [2, 3], [5, 6]]
    """
    return runs(flagged & ~anomalous & evaluated)


def recording_events(recording: ScoredRecording) -> tuple[Event, ...]:
    """Return a test recording's events, found or missed."""
    return events_of(recording.anomalous, recording.evaluated, recording.flagged)


def delays_of(
    events: Sequence[Event], n_rows: int, time: FloatArray | None = None, look_ahead: int = 0
) -> tuple[Delay | None, ...]:
    """Return how long after its onset each event's alarm is raised; None if it was missed or its onset was not seen.

    ``n_rows`` and ``time``, [n_rows] in seconds, are the recording's. A score is known ``look_ahead`` rows later, at
    the latest with the recording's last row. Seconds are read off the clock, gaps included.

    >>> late = Event(2, 5, onset_seen=True, already_on=False, first_flagged=4)
    >>> delays_of([late], 7, time=np.arange(0.0, 70.0, 10.0), look_ahead=1)
    (Delay(rows=3, seconds=30.0),)
    """
    clock = time if row_seconds(time) is not None else None
    delays: list[Delay | None] = [None] * len(events)
    for place, event in enumerate(events):
        if event.first_flagged is not None and event.onset_seen:
            alarm = min(event.first_flagged + look_ahead, n_rows - 1)
            seconds = None if clock is None else float(clock[alarm] - clock[event.start])
            delays[place] = Delay(alarm - event.start, seconds)
    return tuple(delays)


def summed_contributions(contributions: Float32Array) -> FloatArray:
    """Return each sensor's sum over [n_rows, n_sensors] contributions, NaN counted as zero."""
    summed: FloatArray = np.nan_to_num(contributions).sum(axis=0, dtype=np.float64)
    return summed


def row_seconds(time: FloatArray | None) -> float | None:
    """Return the median step of a recording's time, which ignores gaps; None if the time is missing or runs back.

    >>> row_seconds(np.array([0.0, 2.0, 4.0, 104.0, 106.0]))
    2.0
    """
    if time is None or len(time) < 2:
        return None
    steps = np.diff(time)
    median = float(np.median(steps))
    return median if median > 0 and not (steps < 0).any() else None


def elapsed(recording: Recording) -> FloatArray:
    """Return the seconds since a recording's first row, [n_rows]; row numbers if it has no time."""
    if recording.time is None:
        return np.arange(recording.n_rows, dtype=np.float64)
    return np.asarray(recording.time - recording.time[0], dtype=np.float64)


def runs(mask: BoolArray) -> IntArray:
    """Return the runs of True, [n_runs, 2]: first row, and the row after the last."""
    return np.array(mask_runs(mask), dtype=np.int64).reshape(-1, 2)
