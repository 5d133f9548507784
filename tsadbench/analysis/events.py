"""Events, delays and false alarms: one definition for diagnostics, explanations and figures.

An *event* is a run of anomalous evaluated rows; it is *found* if at least one of its rows is flagged. A *false alarm*
is a run of flagged normal evaluated rows, including those directly before or after an event. Neither crosses a
recording's border. There is no point adjustment: in a found event, only flagged rows count as flagged.

Sources: event-wise recall as in Hundman et al., "Detecting Spacecraft Anomalies Using LSTMs and Nonparametric Dynamic
Thresholding", KDD 2018 (an event is found if a flagged stretch overlaps it); the delay of a detection as in Lavin and
Ahmad, "Evaluating Real-Time Anomaly Detection Algorithms: the Numenta Anomaly Benchmark", ICMLA 2015 (the first
detection in the anomaly's window counts).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tsadbench.results.trial_result import ScoredRecording
from tsadbench.utils.arrays import Float32Array, FloatArray, mask_runs


class Event(NamedTuple):
    """An event's evaluated rows ``start`` to ``stop - 1`` in its recording, and its alarm.

    ``onset_seen``: a normal row precedes it, and its first row is evaluated; otherwise no delay can be measured.
    ``already_on``: its onset was seen, and the row before is flagged, so the alarm is hardly a detection.
    ``first_flagged`` is the first of its rows that is flagged; None if it is missed. The alarm is raised ``delay_rows``
    after the onset; None if the event was missed or its onset was not seen. ``delay_seconds`` are clock time,
    including gaps; None also if the recording's time is missing or runs backwards.
    """

    start: int
    stop: int
    onset_seen: bool
    already_on: bool
    first_flagged: int | None
    delay_rows: int | None = None
    delay_seconds: float | None = None

    @property
    def found(self) -> bool:
        """Whether one of its rows is flagged."""
        return self.first_flagged is not None


def recording_events(scored: ScoredRecording, look_ahead: int = 0) -> list[Event]:
    """Return a test recording's events, found or missed, in order.

    Delays include ``look_ahead``, the rows until a score is known, but end with the recording.
    """
    time = scored.recording.time
    clock = time if row_seconds(time) is not None else None
    events = []
    for start, stop in mask_runs(scored.anomalous & scored.evaluated):
        seen = start > 0 and not scored.anomalous[start - 1]
        already_on = seen and bool(scored.flagged[start - 1])
        rows = np.flatnonzero(scored.flagged[start:stop])
        if not len(rows):
            events.append(Event(start, stop, seen, already_on, None))
            continue
        first = start + int(rows[0])
        alarm = min(first + look_ahead, len(scored.anomalous) - 1)
        seconds = None if clock is None else float(clock[alarm] - clock[start])
        delay = (alarm - start, seconds) if seen else (None, None)
        events.append(Event(start, stop, seen, already_on, first, *delay))
    return events


def summed_contributions(contributions: Float32Array) -> FloatArray:
    """Return each sensor's sum over [n_rows, n_sensors] contributions; NaN counts as zero, infinity as the largest."""
    summed: FloatArray = np.nan_to_num(contributions).sum(axis=0, dtype=np.float64)
    return summed


def row_seconds(time: FloatArray | None) -> float | None:
    """Return the median time step of a recording, so gaps do not matter; None without times, or if they decrease.

    >>> row_seconds(np.array([0.0, 2.0, 4.0, 104.0, 106.0]))
    2.0
    """
    if time is None or len(time) < 2:
        return None
    steps = np.diff(time)
    median = float(np.median(steps))
    return median if median > 0 and not (steps < 0).any() else None
