"""Computes a trial's metric over many resamples of its recordings without judging each from scratch.

Weights, [n_recordings, n_resamples], say how often each recording was drawn.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tsadbench.base.scores import flagged_rows, worst_case
from tsadbench.results.trial_result import ScoredRecording, TrialResult
from tsadbench.utils.arrays import FloatArray
from tsadbench.utils.grouping import grouped

# Tolerance for two computations of a metric, including rounding to float32.
_CLOSE = 1e-6
# The largest number of cells of an array [rows, resamples].
_CELLS = 2**20


def draw(sessions: Sequence[Sequence[int]], n_resamples: int, seed: int = 0) -> FloatArray:
    """Return weights: draw sessions and, within each, as many recordings as it has, both with replacement."""
    generator = np.random.default_rng(seed)
    drawn = np.zeros((sum(map(len, sessions)), n_resamples))
    times = generator.multinomial(len(sessions), np.full(len(sessions), 1 / len(sessions)), size=n_resamples)
    for members, of_session in zip(sessions, times.T, strict=True):
        # For a session drawn twice, draw twice as many recordings at once.
        share = np.full(len(members), 1 / len(members))
        drawn[list(members)] = generator.multinomial(of_session * len(members), share).T
    return drawn


def resampled(result: TrialResult, metric: str, names: Sequence[str], drawn: FloatArray) -> FloatArray:
    """Return a trial's metric over recordings and their resamples, [1 + n_resamples]; NaN if undefined.

    The metric is computed on pooled rows or as a mean over recordings, whichever agrees with the protocol's judge on
    the original recordings. If neither does, the judge judges every resample. With one model per entity, it is a mean
    over the entities, weighted by how often their recordings were drawn on average.
    """
    weights = np.hstack([np.ones((len(names), 1)), drawn])
    (whole,) = result.judge({"": names}).values()
    expected = np.array(whole.metrics[metric], dtype=np.float64)
    scored = [result.recordings[name] for name in names]
    places = range(len(names))
    entities = grouped(places, lambda i: scored[i].episode)
    for groups in [entities.values()] if len(whole.entities) > 1 else [(places,), [(i,) for i in places]]:
        each = np.stack([_pooled(metric, [scored[i] for i in some], weights[[*some]]) for some in groups])
        times = np.stack([weights[[*some]].mean(axis=0) for some in groups]) * ~np.isnan(each)
        with np.errstate(invalid="ignore"):
            means: FloatArray = (np.nan_to_num(each) * times).sum(axis=0) / times.sum(axis=0)
        if np.isclose(means[0], expected, rtol=0, atol=_CLOSE, equal_nan=True):
            means[0] = expected
            return means
    judged = result.judge({str(i): [*np.repeat(names, column.astype(int))] for i, column in enumerate(weights.T)})
    means = np.full(weights.shape[1], np.nan)
    for i, one in judged.items():
        parts = {name: of[metric] for name, of in (one.entities or {"": one.metrics}).items() if of[metric] is not None}
        n_drawn = [weights[[*entities.get(name, places)], int(i)].mean() for name in parts]
        if parts:
            means[int(i)] = np.average([*parts.values()], weights=n_drawn)
    return means


def _pooled(metric: str, scored: Sequence[ScoredRecording], weights: FloatArray) -> FloatArray:
    """Return a metric over the pooled rows of each resample, [n_resamples]; NaN if it is not implemented here."""
    if metric in ("auroc", "auprc", "bf_f1"):
        return _ranking(metric, scored, weights)
    counts = np.zeros((4, len(scored)))
    for i, one in enumerate(scored):
        anomalous = one.anomalous[one.evaluated]
        flagged = flagged_rows(one.scores[one.evaluated], anomalous, one.limits[one.evaluated])
        counts[:, i] = np.bincount(2 * anomalous + flagged, minlength=4)
    tn, fp, fn, tp = counts @ weights
    margins = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    with np.errstate(invalid="ignore", divide="ignore"):
        f1 = np.where(tp + fn == 0, np.nan, 2 * tp / (2 * tp + fp + fn))
        mcc = np.where(margins, (tp * tn - fp * fn) / np.sqrt(margins), 0.0)
        known: dict[str, FloatArray] = {
            "precision": tp / np.maximum(tp + fp, 1),
            "recall": tp / (tp + fn),
            **{"prac_f1": f1, "f1": f1, "mcc": np.where((tp + fn == 0) | (tn + fp == 0), np.nan, mcc)},
            "far": fp / (fp + tn),
            "mar": fn / (tp + fn),
            "flagged": (tp + fp) / (tp + fp + fn + tn),
        }
    return known.get(metric, np.full(weights.shape[1], np.nan))


def _ranking(metric: str, scored: Sequence[ScoredRecording], weights: FloatArray) -> FloatArray:
    """Return AUROC, average precision or the best F1 over all thresholds, [n_resamples]; NaN for one class.

    Rows are sorted once, and weights of the rows above each threshold are accumulated for all resamples. Anomalous rows
    without a score are misses at every threshold.
    """
    raw = np.concatenate([one.scores[one.evaluated] for one in scored])
    anomalous = np.concatenate([one.anomalous[one.evaluated] for one in scored])
    recording = np.repeat(np.arange(len(scored)), [np.count_nonzero(one.evaluated) for one in scored])
    scores = worst_case(raw, anomalous)
    order = np.argsort(-scores, kind="stable")
    order = order[~(np.isnan(raw) & anomalous)[order]]
    # The last rows of groups with equal scores.
    last = np.flatnonzero(np.append(scores[order][1:] != scores[order][:-1], True)[: len(order)])
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
