"""The events of an entity: how many and how long, and how many a threshold on one sensor finds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean, median

import numpy as np

from tsadbench.analysis.audit.parts import Part
from tsadbench.utils.arrays import BoolArray, FloatArray, IntArray, mask_runs

_KINDS = ("high", "low", "jumps")


@dataclass(frozen=True, slots=True)
class EventFacts:
    """The events of an entity's test recordings; one is a run of anomalous rows.

    A *one-liner* is a threshold on one sensor, from above or from below, or on the size of its jumps from row to row,
    beyond all normal test rows of the entity: it has no false alarm. It finds an event of which it flags a row. Its
    threshold is chosen by the labels; it tells how easy events are to see, it is no detector (Wu and Keogh, "Current
    Time Series Anomaly Detection Benchmarks are Flawed and are Creating the Illusion of Progress", TKDE 2021).

    Parameters
    ----------
    entity
        Its name; empty if the data set has at most one.
    n_rows, n_anomalous
        Of its test recordings.
    n_events
        How many there are.
    shortest, median, longest
        Their lengths in rows; None without events.
    trivial
        Share of the events that one-liners find, each of them one of its own; None without events or normal rows.
    by_chance
        The share that they would find of stretches as long, anywhere among the normal rows.
    best
        The one-liner that finds the most events; empty if none finds any.
    best_share, best_by_chance
        The share of the events that it finds, and would find by chance.
    """

    entity: str
    n_rows: int
    n_anomalous: int
    n_events: int
    shortest: int | None
    median: float | None
    longest: int | None
    trivial: float | None
    by_chance: float | None
    best: str
    best_share: float | None
    best_by_chance: float | None


def event_facts(part: Part) -> EventFacts:
    """Return the facts about an entity's events."""
    lengths = [stop - start for recording in part.test for start, stop in mask_runs(part.labels[recording.id])]
    trivial = by_chance = best_share = best_by_chance = None
    best = ""
    if lengths and not part.anomalous.all():
        found, places, n_normal = _found(part)
        trivial = float(found.any(axis=1).mean())
        by_chance = fmean(_by_chance(places, n_normal, length) for length in lengths)
        most = int(found.mean(axis=0).argmax())
        best_share = float(found[:, most].mean())
        best_by_chance = fmean(_by_chance(places[:, [most]], n_normal, length) for length in lengths)
        kind, sensor = divmod(most, len(part.sensors))
        best = f"{part.sensors[sensor]} {_KINDS[kind]}" if best_share else ""
    return EventFacts(
        entity=part.entity,
        n_rows=len(part.anomalous),
        n_anomalous=int(part.anomalous.sum()),
        n_events=len(lengths),
        shortest=min(lengths, default=None),
        median=median(lengths) if lengths else None,
        longest=max(lengths, default=None),
        trivial=trivial,
        by_chance=by_chance,
        best=best,
        best_share=best_share,
        best_by_chance=best_by_chance,
    )


def _found(part: Part) -> tuple[BoolArray, IntArray, int]:
    """Return which one-liner finds which event, [n_events, n_one_liners].

    And the places of the first and the last of its highest scores among the normal rows, [2, n_one_liners], and the
    number of these rows.
    """
    borders = np.cumsum([0, *(recording.n_rows for recording in part.test)])
    events = np.array(
        [
            (first + start, first + stop)
            for recording, first in zip(part.test, borders.tolist(), strict=False)
            for start, stop in mask_runs(part.labels[recording.id])
        ]
    )
    normal = ~part.anomalous
    found, places = [], []
    for scores in _one_liners(part.test_rows, borders[:-1], np.setdiff1d(events[:, 1], borders)):
        of_normal = scores[normal]
        highest = of_normal.max()
        of_events = np.maximum.reduceat(np.append(scores, -np.inf), events.ravel())[::2]
        found.append(of_events > (highest if np.isfinite(highest) else np.inf))
        places.append((of_normal.argmax(), len(of_normal) - 1 - of_normal[::-1].argmax()))
    return np.stack(found, axis=1), np.array(places).T, int(normal.sum())


def _one_liners(rows: FloatArray, begins: IntArray, ended: IntArray) -> Iterator[FloatArray]:
    """Yield the scores [n_rows] of each: of all sensors from above, from below, and of their jumps to each row.

    Nothing jumps to the first row of a recording, ``begins``. What jumps to the row after an event, ``ended``, only
    jumps back: no false alarm.
    """
    yield from rows.T
    yield from (-column for column in rows.T)
    for column in rows.T:
        jumps = np.abs(np.diff(column, prepend=column[:1]))
        jumps[begins] = 0.0
        jumps[ended] = -np.inf
        yield jumps


def _by_chance(places: IntArray, n_normal: int, length: int) -> float:
    """Return the share of the stretches of this length that hold all the highest normal rows of some one-liner."""
    n_stretches = n_normal - length + 1
    if n_stretches < 1:
        return 1.0
    first, last = places
    begins = np.maximum(last - length + 1, 0)
    ends = np.minimum(first, n_stretches - 1) + 1
    some = begins < ends
    changes = np.zeros(n_stretches + 1, dtype=np.int64)
    np.add.at(changes, begins[some], 1)
    np.add.at(changes, ends[some], -1)
    return float((np.cumsum(changes)[:-1] > 0).mean())
