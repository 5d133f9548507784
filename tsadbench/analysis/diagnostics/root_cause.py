"""Root cause: whether the sensors that contributed most to an event's scores are to blame for it.

An event whose sensors are known (`tsadbench.base.dataset.Cause`) is one, found or missed. Sensors are ranked by their
contributions, summed over the event's evaluated rows; the event is *hit at k* if one of the first k is to blame.
Sensors of equal sums share their places: what counts is the chance that a random order of them puts one that is to
blame among the first k. So a detector that blames all sensors alike gets what chance gets: with N sensors, b of them
to blame, ``1 - C(N - b, k) / C(N, k)``, the hypergeometric distribution's probability of at least one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tsadbench.analysis.events import summed_contributions
from tsadbench.base.dataset import Cause
from tsadbench.results.trial_result import ScoredRecording
from tsadbench.utils.arrays import BoolArray, FloatArray
from tsadbench.utils.grouping import grouped

# How many of the first sensors are looked at.
RANKS = (1, 3, 5)


@dataclass(frozen=True, slots=True)
class BlamedEvent:
    """One event whose sensors are known.

    Parameters
    ----------
    entity
        The machine that it happened to.
    hits
        The chance of a hit at each of `RANKS`, 0 or 1 without ties; None if contributions were not kept.
    chances
        The same for a random order of all sensors.
    """

    entity: str
    hits: tuple[float, ...] | None
    chances: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class RootCause:
    """Hit rates and chance levels at each of `RANKS`: means over each entity's events, then over entities."""

    hits: tuple[float | None, ...]
    chances: tuple[float | None, ...]

    @classmethod
    def of(cls, events: Sequence[BlamedEvent]) -> RootCause:
        """Return the means; the hits are None if an event has none, and so are the chances without events."""
        entities = list(grouped(events, lambda event: event.entity).values())
        chances = _means([[event.chances for event in of_entity] for of_entity in entities])
        hits = [[event.hits for event in of_entity if event.hits is not None] for of_entity in entities]
        complete = sum(map(len, hits)) == len(events)
        return cls(_means(hits if complete else []), chances)


def blamed_events(scored: ScoredRecording, causes: Sequence[Cause], entity: str = "") -> Iterator[BlamedEvent]:
    """Yield a recording's events whose sensors are known; those without an evaluated row are left out.

    A contribution that is not a number counts as none.
    """
    for cause in causes:
        rows = slice(cause.start, cause.stop)
        evaluated = scored.evaluated[rows]
        if not evaluated.any():
            continue
        to_blame = np.isin(scored.recording.sensors, cause.sensors)
        hits = None
        if scored.contributions is not None:
            hits = hit_chances(summed_contributions(scored.contributions[rows][evaluated]), to_blame)
        yield BlamedEvent(entity, hits, hit_chances(np.zeros(len(to_blame)), to_blame))


def hit_chances(sums: FloatArray, to_blame: BoolArray, ranks: Sequence[int] = RANKS) -> tuple[float, ...]:
    """Return the chance that one of the first sensors is to blame.

    Parameters
    ----------
    sums
        [n_sensors] what each has contributed; the largest is the first, equal ones come in random order.
    to_blame
        [n_sensors] whether each is to blame.
    ranks
        How many of the first sensors to look at.

    Examples
    --------
    The second of three sensors is to blame, and ties with the third for the first place:

    >>> hit_chances(np.array([1.0, 5.0, 5.0]), np.array([False, True, False]), (1, 2))
    (0.5, 1.0)
    """
    descending = np.sort(sums)[::-1]
    return tuple(_hit_chance(sums, to_blame, float(descending[min(k, len(sums)) - 1]), k) for k in ranks)


def _hit_chance(sums: FloatArray, to_blame: BoolArray, last: float, k: int) -> float:
    """Return the chance at k; ``last`` is the k-th largest sum."""
    before, tied = sums > last, sums == last
    if (before & to_blame).any():
        return 1.0
    n_tied, places = int(tied.sum()), min(k, len(sums)) - int(before.sum())
    return 1 - math.comb(int((tied & ~to_blame).sum()), places) / math.comb(n_tied, places)


def _means(entities: Sequence[Sequence[tuple[float, ...]]]) -> tuple[float | None, ...]:
    """Return the means over the events of each entity, then over entities; None without events."""
    if not entities:
        return (None,) * len(RANKS)
    means = [np.mean(events, axis=0) for events in entities]
    return tuple(map(float, np.mean(means, axis=0)))
