"""VUS-PR: the volume under the surface of precision and recall over all thresholds and all buffers around the events.

Source: Paparrizos et al., "Volume Under the Surface: A New Accuracy Evaluation Measure for Time-Series Anomaly
Detection", PVLDB 15(11), 2022. For a buffer of l rows, a normal row at distance d from an event gets the label
``sqrt(1 - d / l)`` (d up to l / 2), so that an alarm close to an event is not wholly wrong. With these labels L,
the binary ones B, and the rows F whose score is at least t::

    TP         = sum of L over F
    precision  = TP / |F|
    recall     = min(1, TP / mean(sum of B, sum of L)) * (share of the widened events in which F has a row)

VUS-PR is the area under precision over recall, averaged over l = 0, 1, ..., L.

There are two implementations in use, and they disagree. Ours has aeon's surface (aeon 1.6,
``range_pr_vus_score``): the ramp reaches l // 2 rows before an event and l // 2 - 1 rows after it, where TSB-AD's
reaches l // 2 on both sides; recall counts all ramps, where TSB-AD's counts those of flagged rows only; thresholds are
the scores of 250 evenly spaced ranks, as with both. The area is TSB-AD's: steps, ``sum (R_k - R_{k-1}) P_k``, as in
average precision. aeon's trapezoids interpolate from the point (recall 0, precision 1), which gives a score that is the
same everywhere, and ranks nothing, (1 + P) / 2.

It is defined only if every row has a score.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tsadbench.analysis.events import check_rows, runs
from tsadbench.utils.arrays import BoolArray, FloatArray, IntArray

# The largest buffer. It is fixed in advance, the same for all data sets: neither the period of the scored
# series nor the length of its events, which the tools of the field use, is known before the test.
VUS_BUFFER = 100
_THRESHOLDS = 250
# How many labels (buffers x rows near an event) are in memory at a time; it does not change the result.
VALUES_AT_A_TIME = 4_000_000


def vus_pr(scores: FloatArray, anomalous: BoolArray, buffer: int = VUS_BUFFER) -> float | None:
    """Return the VUS-PR of one recording.

    Parameters
    ----------
    scores
        [n_rows] higher = more anomalous.
    anomalous
        [n_rows] the truth.
    buffer
        The largest buffer, in rows: L.

    Returns
    -------
    float or None
        Between 0 and 1; None if the rows are of one class, or one of them has no score.

    Raises
    ------
    DataError
        If the arrays are not of the same rows.

    Examples
    --------
    Without a buffer and with one event it is average precision:

    >>> round(vus_pr(np.array([0.1, 0.9, 0.8, 0.2]), np.array([False, False, True, True]), buffer=0), 4)
    0.5833
    """
    check_rows(scores, anomalous)
    if anomalous.all() or not anomalous.any() or np.isnan(scores).any():
        return None
    ranks = _ranks(scores)
    existence = _existence(ranks, anomalous, buffer // 2)
    areas = [_areas(ranks, anomalous, ramps, existence[ramps.buffers // 2]) for ramps in _ramps(anomalous, buffer)]
    return float(np.mean(np.concatenate(areas)))


@dataclass(frozen=True, slots=True, eq=False)
class _Ramps:
    """The labels of the normal rows near an event: [n_near] rows, [n_buffers, n_near] labels."""

    buffers: IntArray
    rows: IntArray
    labels: FloatArray


def _ramps(anomalous: BoolArray, largest: int) -> Iterator[_Ramps]:
    """Yield the ramps of all buffers, as many buffers at a time as memory allows."""
    starts, ends = runs(anomalous).T[:, :, np.newaxis]
    before, after = np.arange(1, largest // 2 + 1), np.arange(1, largest // 2)
    rows = np.concatenate([(starts - before).ravel(), (ends - 1 + after).ravel()])
    distances = np.concatenate([np.tile(before, len(starts)), np.tile(after, len(ends))])
    # The smallest buffer whose ramp reaches that far: one row less after an event than before it.
    reached_from = 2 * distances + 2 * (np.arange(len(rows)) >= before.size * len(starts))
    kept = (rows >= 0) & (rows < len(anomalous))
    kept[kept] = ~anomalous[rows[kept]]
    order = np.flatnonzero(kept)[np.argsort(rows[kept])]
    near, first = np.unique(rows[order], return_index=True)
    n_blocks = 1 + (largest + 1) * len(order) // VALUES_AT_A_TIME
    for buffers in np.array_split(np.arange(largest + 1), min(n_blocks, largest + 1)):
        size = np.maximum(buffers, 1)[:, np.newaxis]
        ramps = np.sqrt(np.where(size >= reached_from[order], 1 - distances[order] / size, 0.0))
        # A row between two events has two ramps.
        yield _Ramps(buffers, near, np.minimum(np.add.reduceat(ramps, first, axis=1), 1.0))


def _ranks(scores: FloatArray) -> IntArray:
    """Return for each row the first threshold that flags it, [n_rows]; thresholds fall."""
    descending = np.sort(scores)[::-1]
    thresholds = descending[np.linspace(0, len(scores) - 1, _THRESHOLDS, dtype=np.int64)]
    return np.searchsorted(-thresholds, -scores).astype(np.int64)


def _existence(ranks: IntArray, anomalous: BoolArray, largest: int) -> FloatArray:
    """Return the share of events, widened by 0 to ``largest`` rows, with a flagged row: [largest + 1, n_thresholds]."""
    starts, ends = runs(anomalous).T
    padded = np.append(ranks, _THRESHOLDS)  # reduceat takes no end behind the last row
    shares = []
    for width in range(largest + 1):
        first, stop = np.maximum(starts - width, 0), np.minimum(ends + max(width - 1, 0), len(ranks))
        apart = first[1:] > stop[:-1]
        widened = np.stack([first[np.append(True, apart)], stop[np.append(apart, True)]], axis=1)
        first_flagged = np.minimum.reduceat(padded, widened.ravel())[::2]
        shares.append(_n_flagged(first_flagged) / len(widened))
    return np.stack(shares)


def _areas(ranks: IntArray, anomalous: BoolArray, ramps: _Ramps, existence: FloatArray) -> FloatArray:
    """Return the area of each buffer, [n_buffers]."""
    order = np.argsort(ranks[ramps.rows])
    on_ramps = np.cumsum(np.pad(ramps.labels[:, order], ((0, 0), (1, 0))), axis=1)
    n_near = _n_flagged(ranks[ramps.rows]).astype(np.int64)
    tp = _n_flagged(ranks[anomalous]) + on_ramps[:, n_near]
    n_expected = np.count_nonzero(anomalous) + ramps.labels.sum(axis=1, keepdims=True) / 2
    recall = np.minimum(tp / n_expected, 1.0) * existence
    precision = tp / _n_flagged(ranks)
    areas: FloatArray = (np.diff(recall, axis=1, prepend=0.0) * precision).sum(axis=1)
    return areas


def _n_flagged(ranks: IntArray) -> FloatArray:
    """Return how many of some rows each threshold flags, [n_thresholds]."""
    return np.cumsum(np.bincount(ranks, minlength=_THRESHOLDS)).astype(np.float64)
