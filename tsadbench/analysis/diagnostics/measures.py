"""Two measures of flags and scores over time: affiliation and VUS-PR.

Affiliation precision and recall: how close the flagged rows are to the events, compared with chance.

Source: Huet, Navarro and Rossi, "Local Evaluation of Time Series Anomaly Detection Algorithms", KDD 2022. Row i is the
interval [i, i + 1). Each event A owns a *zone* Z, the part of the series that is closer to it
than to any other event. With X uniform over Z, and the flagged part F of the zone::

    precision(A) = mean over x in F of P(dist(X, A) >= dist(x, A))
    recall(A)    = mean over y in A of P(|X - y| >= dist(y, F))

The probability is 1 for x inside the event and for y inside the flagged part. In a zone without a flagged row,
precision is undefined and recall is 0. Over several zones, both are means where defined; F1 is their harmonic mean.

VUS-PR: the volume under the surface of precision and recall over all thresholds and all buffers around the events.

Source: Paparrizos et al., "Volume Under the Surface: A New Accuracy Evaluation Measure for Time-Series Anomaly
Detection", PVLDB 15(11), 2022. For a buffer of l rows, a normal row at distance d from an event gets the label
``sqrt(1 - d / l)`` (d up to l / 2), so that an alarm close to an event counts partly as correct. With these labels L,
the binary ones B, and the rows F whose score is at least t::

    TP         = sum of L over F
    precision  = TP / |F|
    recall     = min(1, TP / mean(sum of B, sum of L)) * (share of the widened events in which F has a row)

VUS-PR is the area under precision over recall, averaged over l = 0, 1, ..., L.

The two implementations in use disagree. The surface is aeon's (1.6, ``range_pr_vus_score``): the ramp reaches l // 2
rows before an event and l // 2 - 1 rows after it, recall counts all ramps, thresholds are the scores of 250
evenly spaced ranks. The area is TSB-AD's: steps, ``sum (R_k - R_{k-1}) P_k``, as in average precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from scipy.ndimage import distance_transform_edt

from tsadbench.utils.arrays import BoolArray, FloatArray, IntArray, mask_runs, mean_defined

# The integrands are piecewise linear with kinks only at quarters of a row: zones end at halves, and distances turn
# halfway between the ends of a zone and a row. So the value at the middle of a quarter gives its exact integral.
_CELLS = 4


Zone: TypeAlias = tuple[float | None, float]  # precision and recall of one event: None and 0 without a flagged row


def affiliation(zones: Sequence[Zone]) -> tuple[float | None, float | None, float | None]:
    """Return precision, recall and F1 over the zones of one recording or of several; None where undefined.

    >>> affiliation([(1.0, 0.5), (None, 0.0)])
    (1.0, 0.25, 0.4)
    """
    precision, recall = (mean_defined(zone[i] for zone in zones) for i in (0, 1))
    if precision is None or recall is None:
        return precision, recall, None
    both = precision + recall
    return precision, recall, 2 * precision * recall / both if both else 0.0


def zones_of(flagged: BoolArray, anomalous: BoolArray) -> list[Zone]:
    """Return precision and recall of each event of one recording, whose flags and truth are [n_rows].

    The event covers rows 2 and 3 of 6; row 3 is flagged. Points in row 2 are 0 to 1 row away from the flagged row; on
    average, a random point is no nearer with probability 5/6, so recall is (5/6 + 1) / 2.

    >>> flagged = np.array([0, 0, 0, 1, 0, 0], dtype=bool)
    >>> ((precision, recall),) = zones_of(flagged, np.array([0, 0, 1, 1, 0, 0], dtype=bool))
    >>> precision, round(recall, 4)
    (1.0, 0.9167)
    """
    cells, events = np.repeat(flagged, _CELLS), _CELLS * np.array(mask_runs(anomalous), dtype=np.int64).reshape(-1, 2)
    # Zones meet halfway between two events: at a multiple of half a row, so between two cells.
    borders = [0, *((events[:-1, 1] + events[1:, 0]) // 2).tolist(), len(cells)]
    return [
        _zone(cells[first:last], start - first, stop - first)
        for first, last, (start, stop) in zip(borders, borders[1:], events.tolist(), strict=False)
    ]


def _zone(flagged: BoolArray, start: int, stop: int) -> Zone:
    """Return precision and recall of the event in the cells ``start`` to ``stop - 1`` of its zone, [n_cells]."""
    n = len(flagged)
    if not flagged.any():
        return None, 0.0
    middles = np.arange(n) + 0.5
    to_event = np.maximum(np.maximum(start - middles, middles - stop), 0.0)[flagged]
    nearer = stop - start + np.minimum(to_event, start) + np.minimum(to_event, n - stop)
    precision = np.where(to_event > 0, 1 - nearer / n, 1.0)
    # From each cell's middle to the border of the nearest flagged cell, in cells; 0 inside.
    inside, to_flag = middles[start:stop], np.maximum(distance_transform_edt(~flagged) - 0.5, 0.0)[start:stop]
    nearer = np.minimum(to_flag, inside) + np.minimum(to_flag, n - inside)
    return float(precision.mean()), float((1 - nearer / n).mean())


# The largest buffer, fixed for all data sets. Other tools use the period of the scored series or the length of
# its events, which are unknown before the test.
VUS_BUFFER = 100
_THRESHOLDS = 250


def vus_pr(scores: FloatArray, anomalous: BoolArray, buffer: int = VUS_BUFFER) -> float | None:
    """Return the VUS-PR of one recording with buffers up to ``buffer`` rows; scores and truth are [n_rows].

    None if the rows have only one class, or a score is missing.

    Without a buffer and with one event, it equals average precision:

    >>> round(vus_pr(np.array([0.1, 0.9, 0.8, 0.2]), np.array([False, False, True, True]), buffer=0), 4)
    0.5833
    """
    if anomalous.all() or not anomalous.any() or np.isnan(scores).any():
        return None
    thresholds = np.sort(scores)[::-1][np.linspace(0, len(scores) - 1, _THRESHOLDS, dtype=np.int64)]
    # The first (highest) threshold that flags each row.
    ranks = np.searchsorted(-thresholds, -scores)
    events, n_flagged, reach = np.array(mask_runs(anomalous)), _n_flagged(ranks), buffer // 2
    areas = []
    for size in range(buffer + 1):
        # The ramp after an event is one row shorter than before it. A row between two events has two ramps.
        steps = np.arange(1, size // 2 + 1)
        rows = np.concatenate([events[:, :1] - steps, events[:, 1:] - 1 + steps[:-1]], axis=1)
        heights = np.tile(np.sqrt(1 - np.concatenate([steps, steps[:-1]]) / max(size, 1)), len(events))
        ramps = np.bincount(reach + rows.ravel(), heights, len(scores) + 2 * reach)
        labels = np.where(anomalous, 1.0, np.minimum(ramps[reach : reach + len(scores)], 1.0))
        hits = np.cumsum(np.bincount(ranks, labels, _THRESHOLDS))
        expected = (np.count_nonzero(anomalous) + hits[-1]) / 2
        recall = np.minimum(hits / expected, 1.0) * _existence(ranks, events, size // 2)
        areas.append((np.diff(recall, prepend=0.0) * hits / n_flagged).sum())
    return float(np.mean(areas))


def _existence(ranks: IntArray, events: IntArray, width: int) -> FloatArray:
    """Return, per threshold, the share of widened and joined events with a flagged row."""
    first, stop = np.maximum(events[:, 0] - width, 0), np.minimum(events[:, 1] + max(width - 1, 0), len(ranks))
    apart = first[1:] > stop[:-1]
    widened = np.stack([first[np.append(True, apart)], stop[np.append(apart, True)]], axis=1)
    # reduceat needs an entry after the last row
    first_flagged = np.minimum.reduceat(np.append(ranks, _THRESHOLDS), widened.ravel())[::2]
    return _n_flagged(first_flagged) / len(widened)


def _n_flagged(ranks: IntArray) -> IntArray:
    """Return how many of these rows each threshold flags, [n_thresholds]."""
    return np.cumsum(np.bincount(ranks, minlength=_THRESHOLDS))
