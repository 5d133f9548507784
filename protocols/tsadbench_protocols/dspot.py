"""DSPOT: Peaks-over-Threshold on the excess of scores over their recent mean, for scores whose level drifts.

A row's log score, less the mean over the last 100 rows that were not flagged, is compared with one threshold, found
on training recordings that are treated alike [1]_ (section 4.3). Unlike in the paper, test rows do not update the tail:
they may be anomalous. The mean needs a beginning: a recording's first 60 rows are assumed normal and never flagged.

References
----------
.. [1] A. Siffer, P.-A. Fouque, A. Termier, C. Largouët, "Anomaly Detection in Streams with Extreme Value Theory",
   KDD 2017.
"""

from __future__ import annotations

import math
from collections import deque

import numpy as np

from tsadbench.base import FloatArray

DEPTH, BEGINNING = 100, 60

_TINY = float(np.finfo(np.float64).tiny)  # replaces scores that have no logarithm
_ROUNDING = 1e-9  # of a mean of equal logarithms


def excesses(scores: FloatArray) -> FloatArray:
    """Return the log scores of a normal recording [n_rows] less their means; NaN in its first 60 rows."""
    return _logarithms(scores) - _means(scores, math.inf)


def limits(scores: FloatArray, threshold: float) -> FloatArray:
    """Return which value each score of a recording [n_rows] must exceed to be flagged, infinite in its first 60 rows.

    ``threshold`` is that of `excesses`. Rows without a score have no part in any mean.
    """
    with np.errstate(over="ignore"):
        return np.nan_to_num(np.exp(_means(scores, threshold) + threshold + _ROUNDING), nan=np.inf, posinf=np.inf)


def _means(scores: FloatArray, threshold: float) -> FloatArray:
    """Return for each row the mean log score of the last 100 rows before it that are not flagged; NaN at first."""
    means, unflagged, total = np.full(len(scores), np.nan), deque[float](), 0.0
    for row, value in enumerate(_logarithms(scores).tolist()):
        mean = total / len(unflagged) if unflagged else math.nan
        if row >= BEGINNING:
            means[row] = mean
            if value > mean + threshold + _ROUNDING:
                continue
        if math.isnan(value):
            continue
        unflagged.append(value)
        total += value
        if len(unflagged) > DEPTH:
            total -= unflagged.popleft()
    return means


def _logarithms(scores: FloatArray) -> FloatArray:
    return np.log(np.maximum(scores, _TINY))
