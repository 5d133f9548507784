"""What a page draws of a trial's scores: how well they rank, how they are spread, how the threshold was found."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import genpareto
from sklearn.metrics import precision_recall_curve, roc_curve

from tsadbench.base.protocol import Threshold
from tsadbench.base.scores import comparable
from tsadbench.reporting.html.compact import packed, thinned
from tsadbench.results.trial_result import ScoredRecording, TrialResult
from tsadbench.utils.arrays import BoolArray, FloatArray
from tsadbench.utils.parameters import JsonValue

_CURVE_POINTS = 80
_BINS = 60
_TAIL_POINTS = 60
# A grid on which the curves of several fits are averaged.
_GRID = np.linspace(0.0, 1.0, 101)


def ranking_curves(result: TrialResult, members: Sequence[str]) -> dict[str, JsonValue] | None:
    """Return the ROC and the precision-recall curve over a split's evaluated rows, and where the threshold lies.

    Rows without a score rank last, as for the metrics. Where each recording has a fit of its own, the scores of
    different recordings cannot be compared: the curves are means over the recordings that hold both classes.

    Parameters
    ----------
    result
        A trial.
    members
        Ids of the split's recordings.

    Returns
    -------
    dict or None
        None where only one class occurs.
    """
    by_fit: dict[str, list[ScoredRecording]] = {}
    for member in members:
        if member in result.recordings:
            by_fit.setdefault(result.recordings[member].episode, []).append(result.recordings[member])
    groups = [_pooled(group) for group in by_fit.values()]
    both = [(scores, truth) for scores, truth in groups if truth.any() and not truth.all()]
    if not both:
        return None
    roc = _mean_curve([_roc(scores, truth) for scores, truth in both])
    precision_recall = _mean_curve([_precision_recall(scores, truth) for scores, truth in both])
    return {
        "roc": [packed(axis) for axis in thinned(*roc, _CURVE_POINTS)],
        "precision_recall": [packed(axis) for axis in thinned(*precision_recall, _CURVE_POINTS)],
        "point": _operating_point([one for group in by_fit.values() for one in group]),
        "averaged": len(by_fit) > 1,
    }


def densities(result: TrialResult, members: Sequence[str]) -> dict[str, JsonValue] | None:
    """Return how training scores and those of normal and anomalous test rows are spread.

    The axis is ``asinh(score / scale)`` with the threshold's size as the scale: near it almost linear, far from it
    logarithmic, for any sign. Scores of different fits are divided by their thresholds first.

    Returns
    -------
    dict or None
        None where no row of the split has a score, or several fits' thresholds are not all above 0.
    """
    chosen = [result.recordings[member] for member in members if member in result.recordings]
    fits = {one.episode: one.threshold for one in chosen}
    several = len(fits) > 1
    if several and min(fits.values()) <= 0:
        return None
    units = fits if several else dict.fromkeys(fits, 1.0)
    groups = {
        "training": [result.calibration_scores(fit) / unit for fit, unit in units.items()],
        "normal": [one.scores[one.evaluated & ~one.anomalous] / units[one.episode] for one in chosen],
        "anomalous": [one.scores[one.evaluated & one.anomalous] / units[one.episode] for one in chosen],
    }
    pooled = {name: _finite(np.concatenate([np.empty(0), *parts])) for name, parts in groups.items()}
    everything = np.concatenate(list(pooled.values()))
    if len(everything) == 0:
        return None
    threshold = 1.0 if several else next(iter(fits.values()))
    scale = abs(threshold) or float(np.median(np.abs(everything))) or 1.0
    low, high = np.arcsinh(np.array([everything.min(), everything.max()]) / scale)
    margin = 0.02 * (high - low) or 0.5
    edges = np.linspace(low - margin, high + margin, _BINS + 1)
    return {
        "scale": scale,
        "threshold": threshold,
        "relative": several,
        "edges": packed(edges),
        "shares": {name: packed(_shares(scores, scale, edges)) for name, scores in pooled.items()},
        "n": {name: len(scores) for name, scores in pooled.items()},
    }


def tail(scores: FloatArray, threshold: Threshold) -> dict[str, JsonValue] | None:
    """Return the calibration scores above the initial threshold and the tail that was fitted to them.

    Parameters
    ----------
    scores
        [n], all calibration scores of one fit.
    threshold
        What Peaks-over-Threshold made of them.

    Returns
    -------
    dict or None
        Scores and the share of rows above each, as measured and as fitted; None where no tail was fitted.
    """
    if threshold.t is None or threshold.gamma is None or threshold.sigma is None or not threshold.excesses:
        return None
    above = np.sort(scores[scores > threshold.t])
    if len(above) == 0:
        return None
    exceeding = 1.0 - (np.arange(1, len(above) + 1) - 0.5) / len(above)
    chosen = np.unique(np.linspace(0, len(above) - 1, _TAIL_POINTS).round().astype(int))
    grid = np.linspace(threshold.t, max(above[-1], threshold.value), _TAIL_POINTS)
    share = len(above) / len(scores)
    fitted = genpareto.sf(grid - threshold.t, threshold.gamma, scale=threshold.sigma)
    return {
        "measured": [packed(above[chosen]), packed(share * exceeding[chosen])],
        "fitted": [packed(grid), packed(share * fitted)],
    }


def _pooled(group: Sequence[ScoredRecording]) -> tuple[FloatArray, BoolArray]:
    scores = np.concatenate([one.scores[one.evaluated] for one in group])
    truth = np.concatenate([one.anomalous[one.evaluated] for one in group])
    return comparable(scores), truth


def _roc(scores: FloatArray, truth: BoolArray) -> tuple[FloatArray, FloatArray]:
    false_alarms, found, _ = roc_curve(truth, scores)
    return false_alarms, found


def _precision_recall(scores: FloatArray, truth: BoolArray) -> tuple[FloatArray, FloatArray]:
    precision, recall, _ = precision_recall_curve(truth, scores)
    return recall[::-1], precision[::-1]


def _mean_curve(curves: Sequence[tuple[FloatArray, FloatArray]]) -> tuple[FloatArray, FloatArray]:
    if len(curves) == 1:
        return curves[0]
    return _GRID, np.mean([np.interp(_GRID, x, y) for x, y in curves], axis=0)


def _operating_point(recordings: Sequence[ScoredRecording]) -> dict[str, JsonValue]:
    """Return false alarm rate, recall and precision at the thresholds, over all rows; None where undefined."""
    flagged = np.concatenate([one.flagged[one.evaluated] for one in recordings])
    truth = np.concatenate([one.anomalous[one.evaluated] for one in recordings])
    hits = int(np.count_nonzero(flagged & truth))
    return {
        "false_alarm_rate": _share(int(np.count_nonzero(flagged & ~truth)), int(np.count_nonzero(~truth))),
        "recall": _share(hits, int(np.count_nonzero(truth))),
        "precision": _share(hits, int(np.count_nonzero(flagged))),
    }


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _finite(scores: FloatArray) -> FloatArray:
    return scores[~np.isnan(scores)]


def _shares(scores: FloatArray, scale: float, edges: FloatArray) -> FloatArray:
    counts, _ = np.histogram(np.arcsinh(scores / scale), edges)
    shares: FloatArray = counts / max(1, len(scores))
    return shares
