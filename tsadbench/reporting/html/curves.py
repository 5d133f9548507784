"""Curves, score distributions and tails (`tsadbench.analysis.curves`) as a page holds them: few points, packed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import genpareto

from tsadbench.analysis.curves import (
    CurveKind,
    FitRows,
    Tail,
    chance_level,
    curve_of,
    fits_of,
    mean_curve,
    operating_point,
    score_groups,
)
from tsadbench.reporting.html.compact import packed, thinned
from tsadbench.results.trial_result import TrialResult
from tsadbench.utils.arrays import FloatArray
from tsadbench.utils.parameters import JsonValue

_CURVE_POINTS = 80
_BINS = 60
_TAIL_POINTS = 60


def ranking_curves(result: TrialResult, split: str) -> dict[str, JsonValue] | None:
    """Return the ROC and the precision-recall curve over a split's evaluated rows, and the rates at the thresholds."""
    return curves_of_fits(fits_of(result, split), n_entities=len(result.record.splits[split].entities))


def curves_of_fits(
    fits: Sequence[FitRows], *, n_entities: int = 0, n_points: int = _CURVE_POINTS
) -> dict[str, JsonValue] | None:
    """Return the same for the rows of some fits, of as many entities, as curves of at most ``n_points`` points."""
    both = [fit for fit in fits if fit.both_classes]
    if not both:
        return None
    return {
        "roc": _points(both, "roc", n_points),
        "precision_recall": _points(both, "precision_recall", n_points),
        "point": operating_point(fits, of_entities=bool(n_entities))._asdict(),
        "chance": chance_level(fits),
        "averaged": len(fits) > 1,
        "entities": n_entities,
    }


def _points(fits: Sequence[FitRows], kind: CurveKind, n_points: int) -> list[JsonValue]:
    curve = mean_curve([curve_of(fit, kind) for fit in fits])
    return [packed(axis) for axis in thinned(curve.x, curve.y, n_points)]


def densities(result: TrialResult, split: str) -> dict[str, JsonValue] | None:
    """Return the distributions of the scores that set the threshold and of normal and anomalous test rows' scores.

    The axis is ``asinh(score / scale)`` with the threshold's size as the scale: nearly linear close to it, logarithmic
    far from it, for any sign.
    """
    groups = score_groups(result, split)
    if groups is None or not len(groups.pooled):
        return None
    scale = abs(groups.threshold) or float(np.median(np.abs(groups.pooled))) or 1.0
    low, high = np.arcsinh(np.array([groups.pooled.min(), groups.pooled.max()]) / scale)
    margin = 0.02 * (high - low) or 0.5
    edges = np.linspace(low - margin, high + margin, _BINS + 1)
    scores = {"training": groups.training, "normal": groups.normal, "anomalous": groups.anomalous}
    return {
        "scale": scale,
        "threshold": groups.threshold,
        "relative": groups.relative,
        "edges": packed(edges),
        "shares": {name: packed(_shares(of_group, scale, edges)) for name, of_group in scores.items()},
        "n": {name: len(of_group) for name, of_group in scores.items()},
    }


def _shares(scores: FloatArray, scale: float, edges: FloatArray) -> FloatArray:
    counts, _ = np.histogram(np.arcsinh(scores / scale), edges)
    shares: FloatArray = counts / max(1, len(scores))
    return shares


def tail(tail: Tail) -> dict[str, JsonValue] | None:
    """Return the scores above the initial threshold with the share of rows above each, as measured and as fitted."""
    excesses, start = tail.excesses, tail.threshold.t
    if start is None or tail.fitted is None or not len(excesses):
        return None
    chosen = np.unique(np.linspace(0, len(excesses) - 1, _TAIL_POINTS).round().astype(int))
    grid = np.linspace(0.0, max(excesses[-1], tail.threshold.value - start), _TAIL_POINTS)
    measured = tail.share * (1.0 - tail.positions)
    return {
        "measured": [packed(start + excesses[chosen]), packed(measured[chosen])],
        "fitted": [packed(start + grid), packed(tail.share * genpareto.sf(grid, *tail.fitted))],
    }
