"""Combine the replay audits of several episodes or trials into the weakest result."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import get_args

from tsadbench.base.replay import Copy, Replay


def combined(replays: Sequence[Replay]) -> Replay | None:
    """Return the audit of a trial of several episodes: the weakest copy, the worst of each number, all rows."""
    found = weakest(replays)
    return None if found is None else replace(found, rows=sum(one.rows for one in replays))


def weakest(replays: Iterable[Replay | None]) -> Replay | None:
    """Return the weakest copy, fewest rows, smallest correlation and most extreme ratios of a row's trials.

    Trials without an audit (None) are ignored; without any audit, the result is None.
    """
    audited = [replay for replay in replays if replay is not None]
    if not audited:
        return None
    correlations = [replay.correlation for replay in audited if replay.correlation is not None]
    return Replay(
        copy=max((replay.copy for replay in audited), key=get_args(Copy).index),
        rows=min(replay.rows for replay in audited),
        correlation=min(correlations, default=None),
        median_ratio=_most_extreme(replay.median_ratio for replay in audited),
        tail_ratio=_most_extreme(replay.tail_ratio for replay in audited),
        unbounded=any(replay.unbounded for replay in audited),
    )


def _most_extreme(ratios: Iterable[float | None]) -> float | None:
    known = [ratio for ratio in ratios if ratio is not None]
    return max(known, key=lambda ratio: max(ratio, 1.0 / ratio) if ratio > 0.0 else math.inf, default=None)
