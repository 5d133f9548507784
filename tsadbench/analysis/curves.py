"""Ranking curves and score distributions of stored trials, as numbers for figures and pages.

Rows are those that the protocol evaluates. Only scores of one fit share a scale: if a protocol fits more than once,
curves are means over its fits, and scores are divided by their fit's threshold.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from sklearn.metrics import average_precision_score, precision_recall_curve, roc_curve

from tsadbench.base.scores import flagged_rows, worst_case
from tsadbench.results.trial_result import TrialResult
from tsadbench.utils.arrays import BoolArray, FloatArray, mean_defined
from tsadbench.utils.grouping import grouped
from tsadbench.utils.parameters import require_known

CurveKind: TypeAlias = Literal["roc", "precision_recall"]

# The x values at which the curves of several fits are averaged.
GRID = np.linspace(0.0, 1.0, 501)


class FitRows(NamedTuple):
    """The evaluated rows of a split that one fit, ``episode``, has scored; arrays are [n_rows].

    ``scores`` are NaN where missing. ``flagged`` are scores above the threshold, and normal rows without a score.
    ``threshold`` is NaN if it moves from row to row.
    """

    episode: str
    threshold: float
    scores: FloatArray
    anomalous: BoolArray
    flagged: BoolArray

    @property
    def both_classes(self) -> bool:
        """Whether there are both normal and anomalous rows; otherwise there is no curve."""
        return bool(self.anomalous.any() and not self.anomalous.all())


class Curve(NamedTuple):
    """A curve in the unit square, [n_points] with x ascending.

    With ``steps`` a height holds from the previous point's x up to its own; otherwise points are joined by lines.
    Precision is not linear in recall, and interpolating it is optimistic, so average precision sums these steps.
    """

    x: FloatArray
    y: FloatArray
    steps: bool

    def heights(self, x: FloatArray) -> FloatArray:
        """Return y at some x; in steps, the y at which x is first reached."""
        found: FloatArray = self.y[np.searchsorted(self.x, x)] if self.steps else np.interp(x, self.x, self.y)
        return found


class ScoreGroups(NamedTuple):
    """Scores of calibration, normal and anomalous rows without NaN, and the threshold in the same unit.

    If ``relative``, scores are divided by their fit's threshold, which is then 1.
    """

    training: FloatArray
    normal: FloatArray
    anomalous: FloatArray
    threshold: float
    relative: bool


def fits_of(result: TrialResult, split: str) -> list[FitRows]:
    """Return a split's evaluated rows by the fit that scored them; one under most protocols.

    Raises a UsageError if the data set has no such split.
    """
    splits = result.data.labels.splits
    require_known([split], splits, f"data set {result.record.dataset!r} has no split")
    recordings = [result.recordings[name] for name in splits[split] if name in result.recordings]
    found = []
    for episode, of_fit in grouped(recordings, lambda scored: scored.episode).items():
        limits = np.concatenate([scored.limits[scored.evaluated] for scored in of_fit])
        scores = np.concatenate([scored.scores[scored.evaluated] for scored in of_fit])
        anomalous = np.concatenate([scored.anomalous[scored.evaluated] for scored in of_fit])
        threshold = float(limits[0]) if len(set(limits.tolist())) == 1 else np.nan
        found.append(FitRows(episode, threshold, scores, anomalous, flagged_rows(scores, anomalous, limits)))
    return found


def curve_of(rows: FitRows, kind: CurveKind) -> Curve:
    """Return recall against the share of normal rows flagged ("roc"), or precision against recall.

    A row without a score counts as the worst case, as for the metrics: no threshold flags a miss, so precision is 0 at
    recalls that are not reached. The rows must have both classes.
    """
    scores = worst_case(rows.scores, rows.anomalous)
    if kind == "roc":
        false_alarm_rate, recall, _ = roc_curve(rows.anomalous, scores, drop_intermediate=False)
        return Curve(false_alarm_rate, recall, steps=False)
    precision, recall, _ = precision_recall_curve(rows.anomalous, scores)
    if np.isnan(rows.scores[rows.anomalous]).any():
        precision[0] = 0.0
    return Curve(recall[::-1], precision[::-1], steps=True)


def average_precision(scores: FloatArray, anomalous: BoolArray) -> float | None:
    """Return the AUPRC of rows [n_rows] as defined by the protocols; None if they have only one class."""
    if anomalous.all() or not anomalous.any():
        return None
    # Misses are never flagged, but scikit-learn's lowest threshold flags them; subtract its share.
    missed = float(np.mean(np.isnan(scores) & anomalous))
    return float(average_precision_score(anomalous, worst_case(scores, anomalous))) - missed


def mean_curve(curves: Sequence[Curve]) -> Curve:
    """Return the mean over the curves of several fits, on `GRID`; a single curve as it is.

    Precision by steps, 1 up to a recall of .5 and .8 beyond it, and constant .6:

    >>> steps = Curve(np.array([0.0, 0.5, 1.0]), np.array([1.0, 1.0, 0.8]), steps=True)
    >>> constant = Curve(np.array([0.0, 1.0]), np.array([0.6, 0.6]), steps=True)
    >>> mean_curve([steps, constant]).heights(np.array([0.5, 0.6, 1.0])).round(2).tolist()
    [0.8, 0.7, 0.7]
    """
    if len(curves) == 1:
        return curves[0]
    return Curve(GRID, np.mean([curve.heights(GRID) for curve in curves], axis=0), steps=curves[0].steps)


def operating_point(fits: Sequence[FitRows], *, of_entities: bool = False) -> tuple[float | None, ...]:
    """Return false alarm rate, recall and precision at the fits' thresholds, None if undefined.

    They are computed on the pooled rows of all fits or, ``of_entities``, are means over the fits with both classes, as
    for curves; then precision is 0 without a flagged row.
    """
    if of_entities:
        points = [operating_point([fit]) for fit in fits if fit.both_classes]
        rates, recalls, precisions = ([point[i] for point in points] for i in range(3))
        return mean_defined(rates), mean_defined(recalls), mean_defined(one or 0.0 for one in precisions)
    flagged, anomalous = (np.concatenate([getattr(fit, what) for fit in fits]) for what in ("flagged", "anomalous"))
    parts = flagged[~anomalous], flagged[anomalous], anomalous[flagged]
    return tuple(float(part.mean()) if len(part) else None for part in parts)


def score_groups(result: TrialResult, split: str) -> ScoreGroups | None:
    """Return a trial's scores by group; None if the fits' scores have no common scale.

    Scores of several fits are divided by their thresholds if these are all positive; else the thresholds must be equal.
    None also if a threshold moves from row to row. Raises a UsageError if the data set has no such split.
    """
    fits = fits_of(result, split)
    thresholds = [fit.threshold for fit in fits]
    relative = len(fits) > 1 and min(thresholds) > 0
    if not fits or np.isnan(thresholds).any() or (not relative and len(set(thresholds)) > 1):
        return None
    units = thresholds if relative else [1.0] * len(fits)

    def pooled(parts: Iterable[FloatArray]) -> FloatArray:
        scores: FloatArray = np.concatenate([part / unit for part, unit in zip(parts, units, strict=True)])
        return scores[~np.isnan(scores)]

    training = pooled(result.calibration_scores(fit.episode) for fit in fits)
    normal, anomalous = (pooled(fit.scores[fit.anomalous == label] for fit in fits) for label in (False, True))
    return ScoreGroups(training, normal, anomalous, 1.0 if relative else thresholds[0], relative)
