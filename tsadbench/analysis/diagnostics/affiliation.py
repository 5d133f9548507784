"""Affiliation precision and recall: how close the flagged rows are to the events, compared with chance.

Source: Huet, Navarro and Rossi, "Local Evaluation of Time Series Anomaly Detection Algorithms", KDD 2022. Row i is the
interval [i, i + 1). Each event A owns a *zone* Z, the part of the series that is closer to it
than to any other event. With X uniform over Z, and the flagged part F of the zone::

    precision(A) = mean over x in F of P(dist(X, A) >= dist(x, A))
    recall(A)    = mean over y in A of P(|X - y| >= dist(y, F))

1 for x inside the event and for y inside the flagged part. Precision is undefined in a zone without a flagged row, and
recall is 0 there. Of several zones: the mean over those in which it is defined; F1 is the harmonic mean of the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from scipy.ndimage import distance_transform_edt

from tsadbench.analysis.events import runs
from tsadbench.utils.arrays import BoolArray, mean_defined

# The integrands are piecewise linear with kinks at quarters of a row only: zones end at halves, and distances turn
# halfway between a zone's end and a row's. So the value in the middle of a quarter gives its integral exactly.
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

    The event covers the rows 2 and 3 of 6, row 3 is flagged. From row 2, half a row to one and a half away from the
    flag's border, the average chance to be no nearer is 5/6: recall is (5/6 + 1) / 2.

    >>> flagged = np.array([0, 0, 0, 1, 0, 0], dtype=bool)
    >>> ((precision, recall),) = zones_of(flagged, np.array([0, 0, 1, 1, 0, 0], dtype=bool))
    >>> precision, round(recall, 4)
    (1.0, 0.9167)
    """
    cells, events = np.repeat(flagged, _CELLS), runs(anomalous) * _CELLS
    # A border lies halfway between two events: a multiple of half a row, so a whole cell.
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
