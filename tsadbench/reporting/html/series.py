"""Every test recording on one time axis: sensors, truth, scores, flags, contributions."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tsadbench.analysis.events import elapsed
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


def recordings(results: Mapping[str, TrialResult], data: LabelledDataset, share: float = 1.0) -> list[JsonValue]:
    """Return every test recording as a page holds it.

    Parameters
    ----------
    results
        One trial per detector, by label.
    data
        Their data set.
    share
        Of the page that they may take: how much of what a page with one data set and protocol may hold.
    """
    n_rows = sum(recording.n_rows for recording in data.dataset.test)
    n_series = 1 + len(data.dataset.sensors) + len(results)
    share_kept = min(1.0, share * _POINTS / max(1, n_rows * n_series))
    n_maps = sum(
        any(scored.contributions is not None for scored in result.recordings.values()) for result in results.values()
    )
    n_cells = len(data.dataset.test) * len(data.dataset.sensors) * max(1, n_maps)
    n_buckets = int(np.clip(share * _CELLS // n_cells, _FEWEST_BUCKETS, _MOST_BUCKETS))
    return [
        _recording(recording, results, data, max(_FEWEST_POINTS, int(share_kept * recording.n_rows)), n_buckets)
        for recording in data.dataset.test
    ]


def _recording(
    recording: Recording, results: Mapping[str, TrialResult], data: LabelledDataset, n_points: int, n_buckets: int
) -> JsonValue:
    buckets = Buckets.at_most(n_points, recording.n_rows)
    scored = {
        label: result.recordings[recording.id] for label, result in results.items() if recording.id in result.recordings
    }
    return {
        "id": recording.id,
        "n_rows": recording.n_rows,
        "thinned": not buckets.whole,
        "splits": [split for split, members in data.dataset.splits.items() if recording.id in members],
        "timed": recording.time is not None,
        "time": packed(elapsed(recording)[buckets.rows()]),
        "anomalous": _spans(recording, buckets.runs(data.labels.rows[recording.id])),
        "evaluated": _spans(recording, buckets.runs(next(iter(scored.values())).evaluated)) if scored else [],
        "sensors": [packed(buckets.envelope(values)) for values in recording.values.T],
        "detectors": {label: _detector(of_label, buckets) for label, of_label in scored.items()},
        "maps": {
            label: _heat_map(of_label.contributions.astype(np.float64), recording, n_buckets)
            for label, of_label in scored.items()
            if of_label.contributions is not None
        },
    }


def _detector(scored: ScoredRecording, buckets: Buckets) -> JsonValue:
    return {
        "scores": packed(buckets.envelope(scored.scores)),
        "threshold": scored.threshold,
        "flagged": _spans(scored.recording, buckets.runs(scored.flagged & scored.evaluated)),
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
