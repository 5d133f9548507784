"""Root cause: whether the sensors that contributed most to an event's scores are to blame for it.

An event whose sensors are known (`tsadbench.base.dataset.Cause`) is one, found or missed. Sensors are ranked by their
contributions, summed over the event's evaluated rows; the event is *hit at k* if one of the first k is to blame.
Sensors of equal sums share their places: what counts is the chance that a random order of them puts one that is to
blame among the first k. So a detector that blames all sensors alike gets what chance gets: with N sensors, b of them
to blame, ``1 - C(N - b, k) / C(N, k)``, the hypergeometric distribution's probability of at least one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import comb
from typing import NamedTuple

import numpy as np
import pandas as pd

from tsadbench.analysis.events import summed_contributions
from tsadbench.base.dataset import Cause
from tsadbench.results.trial_result import ScoredRecording
from tsadbench.utils.arrays import BoolArray, FloatArray

# How many of the first sensors are looked at.
RANKS = (1, 3, 5)
NAMES = (*(f"hit_at_{k}" for k in RANKS), *(f"chance_at_{k}" for k in RANKS))


class BlamedEvent(NamedTuple):
    """One event of an entity whose sensors are known: the chances of a hit at each of `RANKS`, 0 or 1 without ties.

    The hits are None if contributions were not kept; ``chances`` are those of a random order of all sensors.
    """

    entity: str
    hits: tuple[float, ...] | None
    chances: tuple[float, ...]


def root_cause(events: Sequence[BlamedEvent]) -> dict[str, float | None]:
    """Return hit rates and chance levels, means over each entity's events, then over entities; None without events.

    The hit rates are None if one of the events has none.
    """
    if not events:
        return dict.fromkeys(NAMES)
    lacking = (np.nan,) * len(RANKS)
    values = pd.DataFrame([(*(event.hits or lacking), *event.chances) for event in events], columns=NAMES)
    means = values.groupby([event.entity for event in events]).mean().mean()
    return {name: None if values[name].hasnans else float(means[name]) for name in NAMES}


def blamed_events(scored: ScoredRecording, causes: Sequence[Cause], entity: str = "") -> Iterator[BlamedEvent]:
    """Yield a recording's events whose sensors are known; those without an evaluated row are left out."""
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
    """Return for each rank k the chance that one of the k sensors of the largest sums is to blame, [n_sensors] each.

    The second of three sensors is to blame, and ties with the third for the first place:

    >>> hit_chances(np.array([1.0, 5.0, 5.0]), np.array([False, True, False]), (1, 2))
    (0.5, 1.0)
    """
    return tuple(_hit_chance(sums, to_blame, min(k, len(sums))) for k in ranks)


def _hit_chance(sums: FloatArray, to_blame: BoolArray, k: int) -> float:
    last = np.sort(sums)[-k]
    before, tied = sums > last, sums == last
    if (before & to_blame).any():
        return 1.0
    places = k - int(before.sum())
    return 1 - comb(int((tied & ~to_blame).sum()), places) / comb(int(tied.sum()), places)
