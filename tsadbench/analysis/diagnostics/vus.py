"""VUS-PR: the volume under the surface of precision and recall over all thresholds and all buffers around the events.

Source: Paparrizos et al., "Volume Under the Surface: A New Accuracy Evaluation Measure for Time-Series Anomaly
Detection", PVLDB 15(11), 2022. For a buffer of l rows, a normal row at distance d from an event gets the label
``sqrt(1 - d / l)`` (d up to l / 2), so that an alarm close to an event is not wholly wrong. With these labels L,
the binary ones B, and the rows F whose score is at least t::

    TP         = sum of L over F
    precision  = TP / |F|
    recall     = min(1, TP / mean(sum of B, sum of L)) * (share of the widened events in which F has a row)

VUS-PR is the area under precision over recall, averaged over l = 0, 1, ..., L.

Of the two implementations in use, which disagree, the surface is aeon's (1.6, ``range_pr_vus_score``): the ramp reaches
l // 2 rows before an event and l // 2 - 1 rows after it, recall counts all ramps, thresholds are the scores of 250
evenly spaced ranks. The area is TSB-AD's: steps, ``sum (R_k - R_{k-1}) P_k``, as in average precision.
"""

from __future__ import annotations

import numpy as np

from tsadbench.analysis.events import runs
from tsadbench.utils.arrays import BoolArray, FloatArray, IntArray

# The largest buffer. It is fixed in advance, the same for all data sets: neither the period of the scored
# series nor the length of its events, which the tools of the field use, is known before the test.
VUS_BUFFER = 100
_THRESHOLDS = 250


def vus_pr(scores: FloatArray, anomalous: BoolArray, buffer: int = VUS_BUFFER) -> float | None:
    """Return the VUS-PR of one recording up to a buffer of so many rows; scores and truth are [n_rows].

    None if the rows are of one class, or one of them has no score.

    Without a buffer and with one event it is average precision:

    >>> round(vus_pr(np.array([0.1, 0.9, 0.8, 0.2]), np.array([False, False, True, True]), buffer=0), 4)
    0.5833
    """
    if anomalous.all() or not anomalous.any() or np.isnan(scores).any():
        return None
    thresholds = np.sort(scores)[::-1][np.linspace(0, len(scores) - 1, _THRESHOLDS, dtype=np.int64)]
    # For each row the first threshold that flags it; thresholds fall.
    ranks = np.searchsorted(-thresholds, -scores)
    events = runs(anomalous)
    n_flagged, n_hits = _n_flagged(ranks), _n_flagged(ranks[anomalous])
    rows, distances, after = _near(events, anomalous, buffer // 2)
    near, first = np.unique(rows, return_index=True)
    by_rank = np.argsort(ranks[near])
    n_near = _n_flagged(ranks[near])
    areas = []
    for size in range(buffer + 1):
        labels = np.zeros(0)
        if len(near):
            # The ramp is a row shorter after an event than before it. A row between two events has two ramps.
            ramps = np.sqrt(np.where(size >= 2 * (distances + after), 1 - distances / max(size, 1), 0.0))
            labels = np.minimum(np.add.reduceat(ramps, first), 1.0)[by_rank]
        hits = n_hits + np.concatenate([[0.0], np.cumsum(labels)])[n_near]
        recall = np.minimum(hits / (n_hits[-1] + labels.sum() / 2), 1.0) * _existence(ranks, events, size // 2)
        areas.append((np.diff(recall, prepend=0.0) * hits / n_flagged).sum())
    return float(np.mean(areas))


def _near(events: IntArray, anomalous: BoolArray, reach: int) -> tuple[IntArray, IntArray, BoolArray]:
    """Return normal rows up to ``reach`` from an event, ascending, their distance from it, and if they come after it.

    A row near two events stands twice.
    """
    distances = np.tile(np.arange(1, reach + 1), len(events))
    rows = np.concatenate([np.repeat(events[:, 0], reach) - distances, np.repeat(events[:, 1] - 1, reach) + distances])
    kept = np.flatnonzero((rows >= 0) & (rows < len(anomalous)))
    kept = kept[~anomalous[rows[kept]]]
    kept = kept[np.argsort(rows[kept], kind="stable")]
    return rows[kept], np.tile(distances, 2)[kept], kept >= len(distances)


def _existence(ranks: IntArray, events: IntArray, width: int) -> FloatArray:
    """Return the share of events, widened by some rows and joined, in which each threshold flags a row."""
    first, stop = np.maximum(events[:, 0] - width, 0), np.minimum(events[:, 1] + max(width - 1, 0), len(ranks))
    apart = first[1:] > stop[:-1]
    widened = np.stack([first[np.append(True, apart)], stop[np.append(apart, True)]], axis=1)
    # reduceat takes no end behind the last row
    first_flagged = np.minimum.reduceat(np.append(ranks, _THRESHOLDS), widened.ravel())[::2]
    return _n_flagged(first_flagged) / len(widened)


def _n_flagged(ranks: IntArray) -> IntArray:
    """Return how many of some rows each threshold flags, [n_thresholds]."""
    return np.cumsum(np.bincount(ranks, minlength=_THRESHOLDS))
