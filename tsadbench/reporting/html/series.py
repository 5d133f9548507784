"""Every test recording on one time axis: sensors, truth, scores, flags, contributions."""

from __future__ import annotations

import numpy as np

from tsadbench.analysis.events import delays_of, elapsed, false_alarms_of, recording_events
from tsadbench.base.dataset import LabelledDataset
from tsadbench.base.recording import Recording
from tsadbench.reporting.html.compact import Buckets, packed, packed_shares
from tsadbench.results.trial_result import ScoredRecording, TrialResult
from tsadbench.utils.arrays import FloatArray
from tsadbench.utils.parameters import JsonValue

# The most numbers that the series of one data set and protocol may take in a page, four bytes each, and the fewest
# points that a recording keeps; the most cells of its heat maps, a byte each.
_POINTS = 1_100_000
_FEWEST_POINTS = 200
_CELLS = 1_500_000
_FEWEST_BUCKETS = 20
_MOST_BUCKETS = 240
# Events of a recording that the page lists; all of them are shaded.
_EVENTS = 100
# Seconds since 1970 that a clock shows: smaller times, before 1973, count from a start.
_CLOCK = 1e8


class Series:
    """The test recordings as a page holds them; detectors are added one by one, so that one is in memory at a time.

    Parameters
    ----------
    data
        The data set.
    n_detectors, n_maps
        How many detectors will be added, and how many of them with contributions.
    share
        Of the page that they may take: how much of what a page with one data set and protocol may hold.
    """

    def __init__(self, data: LabelledDataset, n_detectors: int, n_maps: int, share: float = 1.0) -> None:
        test, n_sensors = data.dataset.test, len(data.dataset.sensors)
        n_values = sum(recording.n_rows for recording in test) * (1 + n_sensors + n_detectors)
        share_kept = min(1.0, share * _POINTS / max(1, n_values))
        n_cells = len(test) * n_sensors * max(1, n_maps)
        self._n_buckets = int(np.clip(share * _CELLS // n_cells, _FEWEST_BUCKETS, _MOST_BUCKETS))
        self._recordings = [_OneRecording(one, data, max(_FEWEST_POINTS, int(share_kept * one.n_rows))) for one in test]

    def add(self, label: str, result: TrialResult) -> None:
        """Add a detector's trial."""
        for one in self._recordings:
            if one.recording.id in result.recordings:
                one.add(label, result.recordings[one.recording.id], self._n_buckets, result.record.look_ahead)

    def content(self) -> list[JsonValue]:
        """Return every test recording as a page holds it."""
        return [one.content() for one in self._recordings]


class _OneRecording:
    def __init__(self, recording: Recording, data: LabelledDataset, n_points: int) -> None:
        self.recording = recording
        self._data = data
        self._buckets = Buckets.at_most(n_points, recording.n_rows)
        self._evaluated: list[JsonValue] = []
        self._events: list[JsonValue] = []
        self._n_events = 0
        self._detectors: dict[str, JsonValue] = {}
        self._maps: dict[str, JsonValue] = {}

    def add(self, label: str, scored: ScoredRecording, n_buckets: int, look_ahead: int) -> None:
        if not self._detectors:
            self._evaluated = _spans(self.recording, self._buckets.runs(scored.evaluated))
            events = recording_events(scored)
            self._n_events = len(events)
            self._events = _spans(self.recording, [[one.start, one.stop] for one in events[:_EVENTS]])
        self._detectors[label] = _detector(scored, self._buckets, look_ahead)
        if scored.contributions is not None:
            self._maps[label] = _heat_map(scored.contributions.astype(np.float64), self.recording, n_buckets)

    def content(self) -> JsonValue:
        recording, buckets, data = self.recording, self._buckets, self._data
        return {
            "id": recording.id,
            "n_rows": recording.n_rows,
            "thinned": not buckets.whole,
            "splits": [split for split, members in data.dataset.splits.items() if recording.id in members],
            **time_axis(recording),
            "rows": None if buckets.whole else packed(buckets.rows()),
            "time": packed(elapsed(recording)[buckets.rows()]),
            "anomalous": _spans(recording, buckets.runs(data.labels.rows[recording.id])),
            "evaluated": self._evaluated,
            "events": self._events,
            "n_events": self._n_events,
            "sensors": [packed(buckets.envelope(values)) for values in recording.values.T],
            "detectors": self._detectors,
            "maps": self._maps,
        }


def time_axis(recording: Recording) -> dict[str, JsonValue]:
    """Return whether a recording has times, and the seconds of its first row if they are those of a clock."""
    clock = None if recording.time is None or recording.time[0] < _CLOCK else float(recording.time[0])
    return {"timed": recording.time is not None, "clock": clock}


def _detector(scored: ScoredRecording, buckets: Buckets, look_ahead: int) -> JsonValue:
    events = recording_events(scored)[:_EVENTS]
    delays = delays_of(events, scored.recording.n_rows, scored.recording.time, look_ahead)
    return {
        "scores": packed(buckets.envelope(scored.scores)),
        "threshold": scored.threshold,
        "flagged": _spans(scored.recording, buckets.runs(scored.flagged & scored.evaluated)),
        "false_alarms": len(false_alarms_of(scored.anomalous, scored.evaluated, scored.flagged)),
        # Of each listed event: whether it was found, and how late if its onset was seen.
        "events": [
            {
                "found": event.found,
                "delay_rows": None if delay is None else delay.rows,
                "delay_seconds": None if delay is None else delay.seconds,
            }
            for event, delay in zip(events, delays, strict=True)
        ],
    }


def _heat_map(contributions: FloatArray, recording: Recording, n_buckets: int) -> JsonValue:
    """Return each sensor's largest contribution per bucket of rows, as the square root of its share of the maximum."""
    buckets = Buckets.at_most(n_buckets, recording.n_rows)
    highest = np.maximum(buckets.highest(contributions), 0.0)
    largest = float(highest.max())
    shares = np.sqrt(highest / largest) if largest > 0 else highest
    return {
        "time": packed(elapsed(recording)[buckets.starts]),
        "largest": largest,
        "shares": packed_shares(shares.T),
    }


def _spans(recording: Recording, runs: list[list[int]]) -> list[JsonValue]:
    """Return runs of rows as spans of the time axis, each from its first row to the one after its last."""
    seconds = elapsed(recording)
    step = float(np.median(np.diff(seconds))) if len(seconds) > 1 else 1.0
    ends = np.append(seconds, seconds[-1] + step)
    return [[float(ends[first]), float(min(ends[end], seconds[end - 1] + step))] for first, end in runs]
