"""Root cause: whether the sensors that contributed most to an event's scores are to blame for it.

An event whose sensors are known (`tsadbench.base.dataset.Cause`) is one, found or missed. Sensors are ranked by their
contributions, summed over the event's evaluated rows; the event is *hit at k* if one of the first k is to blame.
Sensors of equal sums share their places: what counts is the chance that a random order of them puts one that is to
blame among the first k. So a detector that blames all sensors alike gets what chance gets: with N sensors, b of them
to blame, ``1 - C(N - b, k) / C(N, k)``, the hypergeometric distribution's probability of at least one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import comb

import numpy as np
import pandas as pd

from tsadbench.analysis.events import summed_contributions
from tsadbench.base.dataset import Cause
from tsadbench.results.trial_result import ScoredRecording
from tsadbench.utils.arrays import BoolArray, FloatArray

# How many of the first sensors are looked at.
RANKS = (1, 3, 5)
NAMES = (*(f"hit_at_{k}" for k in RANKS), *(f"chance_at_{k}" for k in RANKS))


def root_cause(events: Sequence[Mapping[str, float | str]]) -> dict[str, float | None]:
    """Return hit rates and chance levels, means over each entity's events, then over entities; None without events.

    ``events`` are those of `blamed_events`. The hit rates are None if one of the events has none.
    """
    if not events:
        return dict.fromkeys(NAMES)
    values = pd.DataFrame(events)
    means = values.groupby("entity").mean().mean()
    return {name: None if values[name].hasnans else float(means[name]) for name in NAMES}


def blamed_events(
    scored: ScoredRecording, causes: Sequence[Cause], entity: str = ""
) -> Iterator[dict[str, float | str]]:
    """Yield a recording's events whose sensors are known; those without an evaluated row are left out.

    The chances of a hit at each of `RANKS` are 0 or 1 without ties, NaN if contributions were not kept; ``chance_at``
    are those of a random order of all sensors.
    """
    for cause in causes:
        rows = slice(cause.start, cause.stop)
        evaluated = scored.evaluated[rows]
        if evaluated.any():
            to_blame = np.isin(scored.recording.sensors, cause.sensors)
            hits: Sequence[float] = [np.nan] * len(RANKS)
            if scored.contributions is not None:
                hits = hit_chances(summed_contributions(scored.contributions[rows][evaluated]), to_blame)
            chances = hit_chances(np.zeros(len(to_blame)), to_blame)
            yield {"entity": entity, **dict(zip(NAMES, (*hits, *chances), strict=True))}


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
