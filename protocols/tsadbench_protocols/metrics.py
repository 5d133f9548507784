"""Point-wise metrics, without point adjustment.

At a threshold: precision, recall, F1 (`prac_f1`), Matthews correlation coefficient, the share of flagged rows. Over all
thresholds: area under the ROC curve, average precision (also after a trailing mean of ten scores), best F1, and the
share of events that are found where 1 % or .1 % of the normal rows are flagged.

=========== =========================== ================= =======================
metric      nothing flagged             no row anomalous  all rows anomalous
=========== =========================== ================= =======================
precision   0                           0                 1, or 0 if none flagged
recall      0                           undefined         as usual
prac_f1     0                           undefined         as usual
mcc         0, as for any constant      undefined         undefined
flagged     0                           as usual          as usual
all others  as usual                    undefined         undefined
=========== =========================== ================= =======================

Undefined is None. Without any row, all metrics are undefined.
A row without a score counts as the worst case. A normal one is flagged at every threshold; an anomalous one is flagged
at none, so recall stays below 1. Hence removing scores never improves a metric. (If the lowest threshold flagged the
misses, that would improve AUPRC where scores tie: the labels 0 1 1 1 with the scores 4 3 2 2 have .667, and .694 with
the second row's score below all others.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tsadbench.base import BoolArray, FloatArray, Metric, flagged_rows, worst_case

METRICS: tuple[Metric, ...] = (
    Metric("precision", "Precision"),
    Metric("recall", "Recall"),
    Metric("prac_f1", "Prac-F1"),
    Metric("mcc", "MCC"),
    Metric("auroc", "AUROC"),
    Metric("auprc", "AUPRC"),
    Metric("bf_f1", "BF-F1", oracle=True),
    Metric("flagged", "Flagged", better=None),
    Metric("events_at_1", "Events at 1 %", oracle=True),
    Metric("events_at_01", "Events at .1 %", oracle=True),
    Metric("auprc_mean10", "AUPRC, mean of 10"),
)
# Rows of the trailing mean in `auprc_mean10`, which shows what averaging alone gains.
AVERAGED_ROWS = 10
_ONE_IN = {"events_at_1": 100, "events_at_01": 1000}


def evaluate(
    scores: FloatArray,
    anomalous: BoolArray,
    limits: FloatArray | float,
    lengths: Sequence[int] = (),
    averaged: FloatArray | None = None,
) -> dict[str, float | None]:
    """Return every metric by name, in the order of `METRICS`; None if undefined.

    Scores and truth are [n_rows]; NaN counts as the worst case. A row is flagged if its score is above its limit.
    ``lengths`` are the rows of each recording, in order: no event crosses their borders. ``averaged`` [n_rows] are the
    scores' means; without them, `auprc_mean10` is undefined.

    Examples
    --------
    >>> found = evaluate(np.array([0.1, 0.4, 0.35, 0.8]), np.array([False, False, True, True]), 0.5)
    >>> found["precision"], found["recall"], found["auroc"], found["bf_f1"]
    (1.0, 0.5, 0.75, 0.8)
    """
    scores = scores.astype(np.float64, copy=False)  # a float32 array would round the limits
    found = rates(*counts(scores, anomalous, limits))
    found |= ranking(scores, anomalous) | events(scores, anomalous, lengths)
    found["auprc_mean10"] = None if averaged is None else ranking(averaged, anomalous)["auprc"]
    return {metric.name: found[metric.name] for metric in METRICS}


def counts(scores: FloatArray, anomalous: BoolArray, limits: FloatArray | float) -> tuple[int, int, int, int]:
    """Return the numbers of true positives, false positives, false negatives and true negatives."""
    flagged = flagged_rows(scores, anomalous, limits)
    tn, fn, fp, tp = np.bincount(2 * flagged + anomalous, minlength=4).tolist()
    return tp, fp, fn, tn


def rates(tp: int, fp: int, fn: int, tn: int) -> dict[str, float | None]:
    """Return the metrics at a threshold, the false alarm rate (`far`) and the missed alarm rate (`mar`)."""
    flagged, anomalous, normal = tp + fp, tp + fn, fp + tn
    # Python's integers do not overflow: the product passes 2**63 at some 10^5 rows.
    margins = flagged * anomalous * normal * (fn + tn)
    mcc = (tp * tn - fp * fn) / math.sqrt(margins) if margins else 0.0
    return {
        "precision": tp / max(flagged, 1) if anomalous + normal else None,
        "recall": tp / anomalous if anomalous else None,
        "prac_f1": 2 * tp / (2 * tp + fp + fn) if anomalous else None,
        "mcc": mcc if anomalous and normal else None,
        "flagged": flagged / (anomalous + normal) if anomalous + normal else None,
        "far": fp / normal if normal else None,
        "mar": fn / anomalous if anomalous else None,
    }


def ranking(scores: FloatArray, anomalous: BoolArray) -> dict[str, float | None]:
    """Return the metrics over all thresholds, by name; None if the rows are of one class.

    `auroc` counts a tie half. `auprc` is the average precision, the sum of (R_k - R_{k-1}) P_k over the distinct
    scores: interpolation would be optimistic if scores tie. `bf_f1` is an oracle: no user knows its threshold.
    """
    positives = int(np.count_nonzero(anomalous))
    negatives = len(anomalous) - positives
    if positives == 0 or negatives == 0:
        return dict.fromkeys(("auroc", "auprc", "bf_f1"))
    values = worst_case(scores, anomalous)
    order = np.argsort(values)[::-1]
    ranked = values[order]
    # Thresholds lie between different scores: rows that tie are flagged together.
    last = np.append(np.flatnonzero(ranked[1:] != ranked[:-1]), len(ranked) - 1)
    tp = np.cumsum(anomalous[order], dtype=np.int64)[last]
    taken = last + 1
    fp = taken - tp
    new_tp, new_fp = np.diff(tp, prepend=0), np.diff(fp, prepend=0)
    precision, f1 = tp / taken, 2 * tp / (taken + positives)
    if np.isnan(scores[anomalous]).any():
        precision[-1] = f1[-1] = 0.0  # the last rows are those that no threshold flags
    return {
        "auroc": float(np.sum(new_fp * (2 * tp - new_tp))) / (2 * positives * negatives),
        "auprc": float(np.sum(new_tp * precision)) / positives,
        "bf_f1": float(np.max(f1)),
    }


def events(scores: FloatArray, anomalous: BoolArray, lengths: Sequence[int] = ()) -> dict[str, float | None]:
    """Return the share of the events that is found where 1 % and .1 % of the normal rows are flagged.

    An event is a run of anomalous rows of one recording, found if one of them lies above the threshold. The threshold
    is an oracle: the lowest one that flags at most this share of the normal rows.
    """
    if anomalous.all() or not anomalous.any():
        return dict.fromkeys(_ONE_IN)
    values = worst_case(scores, anomalous)
    first = np.isin(np.arange(len(values)), np.cumsum([0, *lengths]))
    starts = np.flatnonzero(anomalous & (first | ~np.append(False, anomalous[:-1])))
    highest = np.maximum.reduceat(np.where(anomalous, values, -np.inf), starts)
    normal = np.sort(values[~anomalous])[::-1]
    return {name: float(np.mean(highest > normal[len(normal) // one_in])) for name, one_in in _ONE_IN.items()}
