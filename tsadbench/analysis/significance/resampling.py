"""A metric of a trial over many resamples of its recordings, without judging each resample from scratch.

Weights, [n_recordings, n_resamples], say how often each recording was drawn.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tsadbench.base.scores import flagged_rows, worst_case
from tsadbench.results.trial_result import ScoredRecording, TrialResult
from tsadbench.utils.arrays import FloatArray
from tsadbench.utils.grouping import grouped

# Two ways to a metric agree if they differ by rounding alone, also to float32.
_CLOSE = 1e-6
# Cells of an array of rows by resamples.
_CELLS = 2**20


def draw(sessions: Sequence[Sequence[int]], n_resamples: int, seed: int = 0) -> FloatArray:
    """Draw sessions with replacement, and within each drawn one as many recordings as it has, with replacement.

    Sessions are places of recordings, 0 to n_recordings - 1. Return how often each was drawn.
    """
    generator = np.random.default_rng(seed)
    drawn = np.zeros((sum(map(len, sessions)), n_resamples))
    times = generator.multinomial(len(sessions), np.full(len(sessions), 1 / len(sessions)), size=n_resamples)
    for members, of_session in zip(sessions, times.T, strict=True):
        # Draws of a session that was drawn twice add up to one draw of twice as many recordings.
        share = np.full(len(members), 1 / len(members))
        drawn[list(members)] = generator.multinomial(of_session * len(members), share).T
    return drawn


def resampled(result: TrialResult, metric: str, names: Sequence[str], drawn: FloatArray) -> FloatArray:
    """Return a metric of a trial over some recordings, and over resamples of them.

    If each entity has a model of its own, it is the mean over the entities on which it is defined. An entity counts as
    often as its recordings were drawn on average; one that was not drawn takes no part.

    Whether the metric is one of the pooled rows or the mean over recordings is tried on the recordings themselves: it
    must equal what the protocol's judge gives. If neither does, the judge takes every resample. Return [1 +
    n_resamples], the recordings themselves first; NaN where undefined.
    """
    weights = np.hstack([np.ones((len(names), 1)), drawn])
    (whole,) = result.judge({"": names}).values()
    expected = _or_nan(whole.metrics[metric])
    if len(whole.entities) > 1:
        places = grouped(range(len(names)), lambda i: result.recordings[names[i]].episode).values()
        each = np.stack([resampled(result, metric, [names[i] for i in of_one], drawn[[*of_one]]) for of_one in places])
        times = np.stack([weights[[*of_one]].mean(axis=0) for of_one in places])
        values = _mean(each, times)
        values[0] = expected
        return values
    for way in (_pooled, _mean_over_recordings):
        if np.isclose(way(result, metric, names, weights[:, :1])[0], expected, rtol=0, atol=_CLOSE, equal_nan=True):
            values = way(result, metric, names, weights)
            values[0] = expected
            return values
    groups = {str(i): [*np.repeat(names, column.astype(int))] for i, column in enumerate(weights.T)}
    judged = result.judge(groups)
    return np.array([_or_nan(judged[i].metrics[metric]) if i in judged else np.nan for i in groups])


def _or_nan(value: float | None) -> float:
    return np.nan if value is None else value


def _mean(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Return weighted means along the first axis, of what is defined."""
    weights = weights * ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        mean: FloatArray = (np.nan_to_num(values) * weights).sum(axis=0) / weights.sum(axis=0)
    return mean


def _mean_over_recordings(result: TrialResult, metric: str, names: Sequence[str], weights: FloatArray) -> FloatArray:
    return _mean(np.array([[_or_nan(result.judged[name].metrics[metric])] for name in names]), weights)


def _pooled(result: TrialResult, metric: str, names: Sequence[str], weights: FloatArray) -> FloatArray:
    """Return a metric over the pooled rows of each resample, [n_resamples]; NaN if it is not known here."""
    scored = [result.recordings[name] for name in names]
    if metric in ("auroc", "auprc", "bf_f1"):
        return _ranking(metric, scored, weights)
    counts = np.zeros((4, len(scored)))
    for i, one in enumerate(scored):
        anomalous = one.anomalous[one.evaluated]
        flagged = flagged_rows(one.scores[one.evaluated], anomalous, one.threshold)
        counts[:, i] = np.bincount(2 * anomalous + flagged, minlength=4)
    tn, fp, fn, tp = counts @ weights
    one_class = (tp + fn == 0) | (tn + fp == 0)
    margins = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    with np.errstate(invalid="ignore", divide="ignore"):
        f1 = np.where(tp + fn == 0, np.nan, 2 * tp / (2 * tp + fp + fn))
        known: dict[str, FloatArray] = {
            "precision": tp / np.maximum(tp + fp, 1),
            "recall": tp / (tp + fn),
            "prac_f1": f1,
            "f1": f1,
            "mcc": np.where(one_class, np.nan, (tp * tn - fp * fn) / np.sqrt(np.where(margins, margins, 1.0))),
            "far": fp / (fp + tn),
            "mar": fn / (tp + fn),
            "flagged": (tp + fp) / (tp + fp + fn + tn),
        }
    return known.get(metric, np.full(weights.shape[1], np.nan))


def _ranking(metric: str, scored: Sequence[ScoredRecording], weights: FloatArray) -> FloatArray:
    """Return AUROC, average precision or the best F1 over all thresholds, [n_resamples]; NaN for one class.

    Rows are sorted once; weights of the rows above each threshold are cumulated in all resamples. Anomalous rows
    without a score are missed at every threshold.
    """
    raw = np.concatenate([one.scores[one.evaluated] for one in scored])
    anomalous = np.concatenate([one.anomalous[one.evaluated] for one in scored])
    recording = np.repeat(np.arange(len(scored)), [np.count_nonzero(one.evaluated) for one in scored])
    scores = worst_case(raw, anomalous)
    order = np.argsort(-scores, kind="stable")
    order = order[~(np.isnan(raw) & anomalous)[order]]
    last = np.flatnonzero(np.append(scores[order][1:] != scores[order][:-1], True))  # of the rows with equal scores
    totals = np.zeros((2, len(scored)))
    np.add.at(totals, (anomalous.astype(int), recording), 1.0)
    found = []
    step = max(1, _CELLS // max(len(order), 1))
    for chosen in (weights[:, start : start + step] for start in range(0, weights.shape[1], step)):
        of_rows, (negatives, positives) = chosen[recording[order]], totals @ chosen
        hits, alarms = (np.cumsum(of_rows * mask[order, None], axis=0)[last] for mask in (anomalous, ~anomalous))
        with np.errstate(invalid="ignore", divide="ignore"):
            if metric == "auroc":
                steps = np.diff(alarms, axis=0, prepend=0.0) * (hits - np.diff(hits, axis=0, prepend=0.0) / 2)
                values = steps.sum(axis=0) / (positives * negatives)
            elif metric == "bf_f1":
                values = (2 * hits / (hits + alarms + positives)).max(axis=0, initial=0.0)
            else:
                precisions = hits / np.maximum(hits + alarms, 1.0)
                values = (np.diff(hits, axis=0, prepend=0.0) * precisions).sum(axis=0) / positives
        found.append(np.where((positives > 0) & (negatives > 0), values, np.nan))
    return np.concatenate(found)
