"""Point-wise metrics, without point adjustment.

Two groups. At a threshold: precision, recall, F1 (`prac_f1`), Matthews correlation coefficient, the share of flagged
rows. Over all thresholds: area under the ROC curve, area under the precision-recall curve, best F1.

=========== ============================================= ======================= =======================
metric      nothing flagged                               no row anomalous        all rows anomalous
=========== ============================================= ======================= =======================
precision   0, as scikit-learn's ``zero_division=0``      0                       1, or 0 if none flagged
recall      0                                             undefined (0 / 0)       as usual
prac_f1     0                                             undefined, as recall is as usual
mcc         0, as for every constant prediction           undefined               undefined
auroc       as usual                                      undefined               undefined
auprc       as usual                                      undefined               undefined
bf_f1       as usual                                      undefined               undefined
flagged     0                                             as usual                as usual
=========== ============================================= ======================= =======================

Undefined is None. With all rows anomalous, every score has an AUPRC and a best F1 of 1: they are called undefined
too, because they say nothing about the detector.

A row without a score counts as the worst case. A normal one is flagged at every threshold; an anomalous one is flagged
at none, so that recall stays below 1 and the row adds nothing to average precision or to the best F1. Hence taking
away scores improves no metric. (If the lowest threshold flagged the misses, it would improve AUPRC where scores tie:
the labels 0 1 1 1 with the scores 4 3 2 2 have .667, and .694 with the second row's score below all others.)
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tsadbench import DataError
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
)


def evaluate(scores: FloatArray, anomalous: BoolArray, threshold: float) -> dict[str, float | None]:
    """Return every metric by name, in the order of `METRICS`; None if undefined.

    Parameters
    ----------
    scores
        [n_rows] higher = more anomalous. A row with NaN counts as the worst case.
    anomalous
        [n_rows] the truth.
    threshold
        A row is flagged if its score is greater.

    Raises
    ------
    DataError
        If the two arrays differ in length or are empty.

    Examples
    --------
    >>> found = evaluate(np.array([0.1, 0.4, 0.35, 0.8]), np.array([False, False, True, True]), threshold=0.5)
    >>> found["precision"], found["recall"], found["auroc"], found["bf_f1"]
    (1.0, 0.5, 0.75, 0.8)
    """
    if scores.shape != anomalous.shape or scores.ndim != 1 or len(scores) == 0:
        raise DataError(
            f"expected scores and labels of the same rows, at least one, found {list(scores.shape)} scores and "
            f"{list(anomalous.shape)} labels"
        )
    scores = scores.astype(np.float64, copy=False)  # a float32 array would round the threshold
    confusion = Confusion.of(flagged_rows(scores, anomalous, threshold), anomalous)
    ranking = rank(scores, anomalous)
    return by_name(confusion, ranking)


def by_name(confusion: Confusion, ranking: Ranking) -> dict[str, float | None]:
    """Return every metric by name, in the order of `METRICS`."""
    at_threshold = (confusion.precision, confusion.recall, confusion.f1, confusion.mcc)
    over_all_thresholds = (ranking.auroc, ranking.auprc, ranking.bf_f1)
    values = (*at_threshold, *over_all_thresholds, confusion.flagged)
    return {metric.name: value for metric, value in zip(METRICS, values, strict=True)}


@dataclass(frozen=True, slots=True)
class Confusion:
    """Numbers of true positives, false positives, false negatives and true negatives."""

    tp: int
    fp: int
    fn: int
    tn: int

    @classmethod
    def of(cls, flagged: BoolArray, anomalous: BoolArray) -> Confusion:
        """Count the rows; both arrays are [n_rows]."""
        tp = int(np.count_nonzero(flagged & anomalous))
        fp = int(np.count_nonzero(flagged)) - tp
        fn = int(np.count_nonzero(anomalous)) - tp
        return cls(tp, fp, fn, len(anomalous) - tp - fp - fn)

    def __add__(self, other: Confusion) -> Confusion:
        """Return the counts over both sets of rows."""
        return Confusion(self.tp + other.tp, self.fp + other.fp, self.fn + other.fn, self.tn + other.tn)

    @property
    def n_rows(self) -> int:
        """All rows."""
        return self.tp + self.fp + self.fn + self.tn

    @property
    def precision(self) -> float:
        """Share of the flagged rows that are anomalous; 0 if none is flagged."""
        return self.tp / max(self.tp + self.fp, 1)

    @property
    def recall(self) -> float | None:
        """Share of the anomalous rows that are flagged; None if none is anomalous."""
        return self.tp / (self.tp + self.fn) if self.tp + self.fn else None

    @property
    def f1(self) -> float | None:
        """Harmonic mean of precision and recall; None if no row is anomalous."""
        return 2 * self.tp / (2 * self.tp + self.fp + self.fn) if self.tp + self.fn else None

    @property
    def mcc(self) -> float | None:
        """Matthews correlation coefficient; 0 if all rows are flagged or none, None if labels have one class."""
        if not (self.tp + self.fn and self.tn + self.fp):
            return None
        # Python's integers do not overflow: the product passes 2**63 at some 10^5 rows.
        margins = (self.tp + self.fp) * (self.tp + self.fn) * (self.tn + self.fp) * (self.tn + self.fn)
        return (self.tp * self.tn - self.fp * self.fn) / math.sqrt(margins) if margins else 0.0

    @property
    def flagged(self) -> float:
        """Share of all rows that are flagged."""
        return (self.tp + self.fp) / self.n_rows

    @property
    def false_alarm_rate(self) -> float | None:
        """Share of the normal rows that are flagged; None if no row is normal."""
        return self.fp / (self.fp + self.tn) if self.fp + self.tn else None

    @property
    def missed_alarm_rate(self) -> float | None:
        """Share of the anomalous rows that are not flagged; None if no row is anomalous."""
        return self.fn / (self.tp + self.fn) if self.tp + self.fn else None


@dataclass(frozen=True, slots=True)
class Ranking:
    """The metrics of a ranking of rows, over all thresholds.

    Parameters
    ----------
    auroc
        Area under the receiver operating characteristic; a tie counts half.
    auprc
        Average precision: sum of (R_k - R_{k-1}) P_k over the distinct scores. No interpolation, which would be
        optimistic if scores tie.
    bf_f1
        Best F1 over all thresholds: an oracle, because no user knows that threshold.
    """

    auroc: float | None
    auprc: float | None
    bf_f1: float | None

    @classmethod
    def mean(cls, rankings: Iterable[Ranking]) -> Ranking:
        """Return the mean over those that are defined; if none is, all are None."""
        defined = [(ranking.auroc, ranking.auprc, ranking.bf_f1) for ranking in rankings if ranking.auroc is not None]
        if not defined:
            return cls(None, None, None)
        return cls(*np.mean(np.array(defined, dtype=np.float64), axis=0).tolist())


def rank(scores: FloatArray, anomalous: BoolArray) -> Ranking:
    """Return the metrics over all thresholds, [n_rows] each; one sort gives them all.

    A row with NaN counts as the worst case. All are None if the rows are of one class.
    """
    positives = int(np.count_nonzero(anomalous))
    negatives = len(anomalous) - positives
    if positives == 0 or negatives == 0:
        return Ranking(None, None, None)
    values = worst_case(scores, anomalous)
    order = np.argsort(values)[::-1]
    ranked = values[order]
    # A threshold lies below the last of equal scores or not at all: rows that tie cannot be told apart.
    last = np.append(np.flatnonzero(ranked[1:] != ranked[:-1]), len(ranked) - 1)
    tp = np.cumsum(anomalous[order], dtype=np.int64)[last]
    taken = last + 1
    fp = taken - tp
    new_tp, new_fp = np.diff(tp, prepend=0), np.diff(fp, prepend=0)
    precision, f1 = tp / taken, 2 * tp / (taken + positives)
    if np.isnan(scores[anomalous]).any():
        precision[-1] = f1[-1] = 0.0  # the last rows are those that no threshold flags
    return Ranking(
        auroc=float(np.sum(new_fp * (2 * tp - new_tp))) / (2 * positives * negatives),
        auprc=float(np.sum(new_tp * precision)) / positives,
        bf_f1=float(np.max(f1)),
    )
