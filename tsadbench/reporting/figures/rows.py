"""From results to the rows that figures show: those that a protocol evaluates, by split and by fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tsadbench.errors import UsageError
from tsadbench.results.trial_result import ScoredRecording, TrialResult
from tsadbench.utils.arrays import BoolArray, FloatArray
from tsadbench.utils.parameters import nearest

# From here on a linear axis shows nothing but the largest scores.
_ORDERS = 20.0
_MOSTLY = 0.9


@dataclass(frozen=True, slots=True, eq=False)
class FitRows:
    """The evaluated rows of a split that one fit has scored: only their scores share a scale.

    Parameters
    ----------
    scores
        [n_rows], NaN where the detector could not score.
    anomalous, flagged
        [n_rows], the truth, and whether the score lies above the fit's threshold.
    threshold
        That fit's.
    """

    scores: FloatArray
    anomalous: BoolArray
    flagged: BoolArray
    threshold: float


def fits_of(result: TrialResult, split: str) -> list[FitRows]:
    """Return a split's evaluated rows by the fit that scored them; one under most protocols.

    Raises
    ------
    UsageError
        If the data set has no such split.
    """
    by_episode: dict[str, list[ScoredRecording]] = {}
    for one in recordings_of(result, split):
        by_episode.setdefault(one.episode, []).append(one)
    return [
        FitRows(
            scores=np.concatenate([one.scores[one.evaluated] for one in ones]),
            anomalous=np.concatenate([one.anomalous[one.evaluated] for one in ones]),
            flagged=np.concatenate([one.flagged[one.evaluated] for one in ones]),
            threshold=ones[0].threshold,
        )
        for ones in by_episode.values()
    ]


def recordings_of(result: TrialResult, split: str) -> list[ScoredRecording]:
    """Return a split's recordings that the protocol scores; a UsageError where there is no such split."""
    splits = result.data.labels.splits
    if split not in splits:
        raise UsageError(f"data set {result.record.dataset!r} has no split {split!r}{nearest(split, splits)}")
    return [result.recordings[name] for name in splits[split] if name in result.recordings]


def by_label(results: Sequence[TrialResult]) -> dict[str, list[TrialResult]]:
    """Return the results of each detector, in the order of its first."""
    if not results:
        raise UsageError("expected at least one result, found none: there is nothing to draw")
    found: dict[str, list[TrialResult]] = {}
    for result in results:
        found.setdefault(result.record.label, []).append(result)
    return found


def about(result: TrialResult, split: str) -> str:
    """Return what a figure's title says of its data."""
    record = result.record
    judged = record.splits.get(split)
    rows = f" · {judged.n_rows:,} rows" if judged else ""
    share = f", {judged.n_anomalous / judged.n_rows:.1%} anomalous" if judged and judged.n_rows else ""
    return f"{record.dataset} · {split} · protocol {record.protocol}{rows}{share}"


def spans_orders(scores: FloatArray, threshold: float) -> bool:
    """Return whether scores, [n], and their threshold call for a logarithmic axis; a few that are not positive are cut.

    Parameters
    ----------
    scores
        Not NaN.
    threshold
        In the same unit.
    """
    positive = scores[scores > 0]
    if threshold <= 0 or len(positive) < 2 or len(positive) < _MOSTLY * len(scores):
        return False
    low, high = np.quantile(positive, [0.05, 0.999])
    return bool(max(high, threshold) > _ORDERS * min(low, threshold))
