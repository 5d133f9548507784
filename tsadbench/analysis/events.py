"""Events, delays and false alarms: the one definition that diagnostics, explanations and figures share.

An *event* is a run of anomalous rows that are evaluated; it is *found* if at least one of its rows is flagged. A
*false alarm* is a run of flagged normal rows that are evaluated: an alarm that outlasts its event, or comes before it,
is one as well. Neither crosses a recording's border. There is no point adjustment: a found event makes no other row
count as flagged.

Sources: event-wise recall as in Hundman et al., "Detecting Spacecraft Anomalies Using LSTMs and Nonparametric Dynamic
Thresholding", KDD 2018 (an event is found if a flagged stretch overlaps it); the delay of a detection
as in Lavin and Ahmad, "Evaluating Real-Time Anomaly Detection Algorithms: the Numenta Anomaly Benchmark", ICMLA 2015
(the first detection in the anomaly's window counts).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tsadbench.base.recording import Recording
from tsadbench.errors import DataError
from tsadbench.results.trial_result import ScoredRecording
from tsadbench.utils.arrays import BoolArray, Float32Array, FloatArray, IntArray, mask_runs


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a recording; rows are the recording's, counted from 0.

    Parameters
    ----------
    start, stop
        Its first evaluated row, and the row after its last.
    onset_seen
        Whether a normal row of the recording precedes it and its first row is evaluated. An event that began before
        the evaluated rows has no known onset, so no alarm can be said to be late.
    already_on
        Whether the row before its onset is flagged: an alarm that was already on can hardly be a detection. False if
        the onset was not seen.
    first_flagged
        The first of its rows that is flagged; None if it is missed.
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


@dataclass(frozen=True, slots=True)
class Delay:
    """Time from an event's onset to its alarm; seconds are None if the recording's time is missing or runs back."""

    rows: int
    seconds: float | None


def events_of(anomalous: BoolArray, evaluated: BoolArray, flagged: BoolArray) -> tuple[Event, ...]:
    """Return a recording's events in order.

    Parameters
    ----------
    anomalous, evaluated, flagged
        [n_rows] each: the truth, the rows that count, the rows whose score lies above the threshold.

    Raises
    ------
    DataError
        If the arrays are not of the same rows.

    Examples
    --------
    >>> anomalous = np.array([0, 0, 1, 1, 1, 0, 1], dtype=bool)
    >>> flagged = np.array([0, 1, 0, 0, 1, 0, 0], dtype=bool)
    >>> for event in events_of(anomalous, np.ones(7, dtype=bool), flagged):
    ...     print(event.start, event.stop, event.first_flagged)
    2 5 4
    6 7 None
    """
    check_rows(anomalous, evaluated, flagged)
    return tuple(_event(start, stop, anomalous, flagged) for start, stop in runs(anomalous & evaluated).tolist())


def _event(start: int, stop: int, anomalous: BoolArray, flagged: BoolArray) -> Event:
    onset_seen = start > 0 and not anomalous[start - 1]
    rows = np.flatnonzero(flagged[start:stop])
    return Event(
        start=start,
        stop=stop,
        onset_seen=onset_seen,
        already_on=onset_seen and bool(flagged[start - 1]),
        first_flagged=start + int(rows[0]) if len(rows) else None,
    )


def false_alarms_of(anomalous: BoolArray, evaluated: BoolArray, flagged: BoolArray) -> IntArray:
    """Return a recording's false alarms, [n, 2]: first row, and the row after the last.

    Parameters and errors as for `events_of`.

    Examples
    --------
    >>> anomalous = np.array([0, 0, 0, 1, 1, 0, 0], dtype=bool)
    >>> flagged = np.array([1, 0, 1, 1, 1, 1, 0], dtype=bool)
    >>> false_alarms_of(anomalous, np.ones(7, dtype=bool), flagged).tolist()
    [[0, 1], [2, 3], [5, 6]]
    """
    check_rows(anomalous, evaluated, flagged)
    return runs(flagged & ~anomalous & evaluated)


def recording_events(recording: ScoredRecording) -> tuple[Event, ...]:
    """Return a test recording's events, found or missed."""
    return events_of(recording.anomalous, recording.evaluated, recording.flagged)


def delays_of(
    events: Sequence[Event], n_rows: int, time: FloatArray | None = None, look_ahead: int = 0
) -> tuple[Delay | None, ...]:
    """Return how long after its onset each event's alarm is raised.

    A row's score is known ``look_ahead`` rows later, at the latest with the recording's last row: only then can an
    alarm be raised.

    Parameters
    ----------
    events
        Of one recording.
    n_rows, time
        The recording's; time [n_rows] in seconds. Gaps count, since they pass on the clock.
    look_ahead
        How many later rows a score depends on.

    Returns
    -------
    tuple
        One item per event: None if the event was missed or its onset was not seen.

    Examples
    --------
    >>> late = Event(2, 5, onset_seen=True, already_on=False, first_flagged=4)
    >>> delays_of([late], 7, time=np.arange(0.0, 70.0, 10.0), look_ahead=1)
    (Delay(rows=3, seconds=30.0),)
    """
    clock = time if row_seconds(time) is not None else None
    delays: list[Delay | None] = []
    for event in events:
        if event.first_flagged is None or not event.onset_seen:
            delays.append(None)
            continue
        alarm = min(event.first_flagged + look_ahead, n_rows - 1)
        seconds = None if clock is None else float(clock[alarm] - clock[event.start])
        delays.append(Delay(alarm - event.start, seconds))
    return tuple(delays)


def summed_contributions(contributions: Float32Array) -> FloatArray:
    """Return what each sensor contributed over some rows, [n_sensors]; what is no number counts as none.

    Parameters
    ----------
    contributions
        [n_rows, n_sensors].
    """
    summed: FloatArray = np.nan_to_num(contributions).sum(axis=0, dtype=np.float64)
    return summed


def row_seconds(time: FloatArray | None) -> float | None:
    """Return how long one row of a recording lasts: the median step of its time, in seconds.

    The median ignores gaps: no row was scored in a gap, so no alarm could be raised. None if the recording has no
    time, a single row, or time that does not advance.

    Examples
    --------
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


def check_rows(*arrays: BoolArray | FloatArray) -> None:
    """Raise a DataError unless all arrays are of the same rows, [n_rows]."""
    shapes = [list(array.shape) for array in arrays]
    if arrays[0].ndim != 1 or any(shape != shapes[0] for shape in shapes):
        raise DataError(f"expected arrays of the same rows, [n_rows] each, found {shapes}")
