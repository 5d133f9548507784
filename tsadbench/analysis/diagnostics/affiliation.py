"""Affiliation precision and recall: how close the flagged rows are to the events, compared with chance.

Source: Huet, Navarro and Rossi, "Local Evaluation of Time Series Anomaly Detection Algorithms", KDD 2022. Row i is the
interval [i, i + 1). Each event A owns a *zone* Z, the part of the series that is closer to it
than to any other event. With X uniform over Z, and the flagged part F of the zone::

    precision(A) = mean over x in F of P(dist(X, A) >= dist(x, A))
    recall(A)    = mean over y in A of P(|X - y| >= dist(y, F))

1 for x inside the event and for y inside the flagged part. Precision is undefined in a zone without a flagged row, and
recall is 0 there. Of several zones: the mean over those in which it is defined; F1 is the harmonic mean of the two.

Random flags get a precision of about 1/2 and, if there are many of them, a recall close to 1: compare values with the
floors'. Flags in a recording without events belong to no zone, so they cost nothing here; false alarms count them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tsadbench.analysis.events import check_rows, runs
from tsadbench.utils.arrays import BoolArray, FloatArray

# The integrands are piecewise linear with kinks at quarters of a row only: zones end at halves, and distances turn
# halfway between a zone's end and a row's. So the value in the middle of a quarter gives its integral exactly.
_CELLS = 4


@dataclass(frozen=True, slots=True)
class Zone:
    """Precision and recall of one event.

    Parameters
    ----------
    precision
        None if no row of its zone is flagged.
    recall
        0 in that case.
    """

    precision: float | None
    recall: float


@dataclass(frozen=True, slots=True)
class Affiliation:
    """Precision, recall and F1 over several events; None where undefined."""

    precision: float | None
    recall: float | None
    f1: float | None

    @classmethod
    def of(cls, zones: Iterable[Zone]) -> Affiliation:
        """Return the means over zones, of one recording or of several.

        Examples
        --------
        >>> Affiliation.of([Zone(1.0, 0.5), Zone(None, 0.0)])
        Affiliation(precision=1.0, recall=0.25, f1=0.4)
        """
        every = list(zones)
        precision = _mean([zone.precision for zone in every if zone.precision is not None])
        recall = _mean([zone.recall for zone in every])
        if precision is None or recall is None:
            return cls(precision, recall, None)
        both = precision + recall
        return cls(precision, recall, 2 * precision * recall / both if both else 0.0)


def zones_of(flagged: BoolArray, anomalous: BoolArray) -> tuple[Zone, ...]:
    """Return precision and recall of each event of one recording; empty without events.

    Parameters
    ----------
    flagged, anomalous
        [n_rows] each: the rows above the threshold, the truth.

    Raises
    ------
    DataError
        If the arrays are not of the same rows.

    Examples
    --------
    The event covers the rows 2 and 3 of 6, row 3 is flagged. From row 2, half a row to one and a half away from the
    flag's border, the average chance to be no nearer is 5/6: recall is (5/6 + 1) / 2.

    >>> flagged = np.array([0, 0, 0, 1, 0, 0], dtype=bool)
    >>> (zone,) = zones_of(flagged, np.array([0, 0, 1, 1, 0, 0], dtype=bool))
    >>> zone.precision, round(zone.recall, 4)
    (1.0, 0.9167)
    """
    check_rows(flagged, anomalous)
    cells = np.repeat(flagged, _CELLS)
    return tuple(
        _zone(cells[first:last], start - first, stop - first) for first, last, start, stop in _zone_bounds(anomalous)
    )


def affiliation(flagged: BoolArray, anomalous: BoolArray) -> Affiliation:
    """Return one recording's affiliation precision, recall and F1; parameters and errors as for `zones_of`."""
    return Affiliation.of(zones_of(flagged, anomalous))


def _zone_bounds(anomalous: BoolArray) -> Iterator[tuple[int, int, int, int]]:
    """Yield for each event its zone's and its own first cell, and the cells after their last."""
    events = runs(anomalous) * _CELLS
    # A border lies halfway between two events: a multiple of half a row, so a whole cell.
    borders = [0, *((events[:-1, 1] + events[1:, 0]) // 2).tolist(), len(anomalous) * _CELLS]
    for i, (start, stop) in enumerate(events.tolist()):
        yield borders[i], borders[i + 1], start, stop


def _zone(flagged: BoolArray, start: int, stop: int) -> Zone:
    """Return precision and recall of the event in the cells ``start`` to ``stop - 1`` of its zone, [n_cells]."""
    if not flagged.any():
        return Zone(None, 0.0)
    middles = np.arange(len(flagged)) + 0.5
    to_event = np.maximum(np.maximum(start - middles, middles - stop), 0.0)[flagged]
    left, right = float(start), float(len(flagged) - stop)
    nearer = stop - start + np.minimum(to_event, left) + np.minimum(to_event, right)
    precision = np.where(to_event > 0, 1 - nearer / len(flagged), 1.0)

    inside = middles[start:stop]
    to_flag = _distance(flagged)[start:stop]
    nearer = np.minimum(to_flag, inside) + np.minimum(to_flag, len(flagged) - inside)
    recall = 1 - nearer / len(flagged)
    return Zone(float(precision.mean()), float(recall.mean()))


def _distance(flagged: BoolArray) -> FloatArray:
    """Return the distance of each cell's middle from the nearest flagged cell's border, in cells; 0 inside."""
    cells = np.arange(len(flagged), dtype=np.float64)
    last = np.maximum.accumulate(np.where(flagged, cells, -np.inf))
    following = np.minimum.accumulate(np.where(flagged, cells, np.inf)[::-1])[::-1]
    distance: FloatArray = np.maximum(np.minimum(cells - last, following - cells) - 0.5, 0.0)
    return distance


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
