"""One metric of a trial over many resamples of its recordings, without judging each resample from scratch.

A resample says how often each recording was drawn. Counts of rows add up over recordings, so a metric of all resamples
is one of matrix products: the counts of each recording [.., n_recordings] times the draws [n_recordings, n_resamples].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

import numpy as np

from tsadbench.base.scores import flagged_rows, worst_case
from tsadbench.results.trial_result import ScoredRecording, TrialResult
from tsadbench.utils.arrays import BoolArray, FloatArray
from tsadbench.utils.grouping import grouped

# Two ways to a metric agree if they differ by rounding alone, also to float32.
_CLOSE = 1e-6
# So many resamples at once fit the processor's cache beside the counts.
_CHUNK = 64
_FLOAT32 = 2.0**24

_RANKINGS = ("auroc", "auprc", "bf_f1")


def draw(sessions: Sequence[Sequence[int]], n_resamples: int, seed: int = 0) -> FloatArray:
    """Draw sessions with replacement, and within each drawn one as many recordings as it has, with replacement.

    Parameters
    ----------
    sessions
        The places of each session's recordings, 0 to n_recordings - 1; each in one session.

    Returns
    -------
    ndarray
        [n_recordings, n_resamples], how often each recording was drawn.
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

    If each entity has a model of its own, it is the mean over the entities on which it is defined, as the protocol's
    is. An entity counts as often as its recordings were drawn on average; one that was not drawn takes no part.

    Which way leads to the metric, over the pooled rows or by the mean over recordings, is tried on the recordings
    themselves: it must give what the protocol's own judge gives. If none does, the judge takes every resample.

    Parameters
    ----------
    names
        Ids of recordings that the protocol scores.
    drawn
        [n_recordings, n_resamples], how often each was drawn.

    Returns
    -------
    ndarray
        [1 + n_resamples], the recordings themselves first; NaN where undefined.
    """
    weights = np.hstack([np.ones((len(names), 1)), drawn])
    (whole,) = result.judge({"": names}).values()
    expected = _or_nan(whole.metrics[metric])
    if len(whole.entities) > 1:
        places = grouped(range(len(names)), lambda i: result.recordings[names[i]].episode).values()
        each = np.stack([resampled(result, metric, [names[i] for i in of_one], drawn[[*of_one]]) for of_one in places])
        times = np.stack([weights[[*of_one]].mean(axis=0) for of_one in places]) * ~np.isnan(each)
        with np.errstate(invalid="ignore"):
            means: FloatArray = (np.nan_to_num(each) * times).sum(axis=0) / times.sum(axis=0)
        means[0] = expected
        return means
    scored = [result.recordings[name] for name in names]
    ways: tuple[Callable[[FloatArray], FloatArray | None], ...] = (
        lambda some: _pooled(metric, scored, some),
        lambda some: _mean([_or_nan(result.judged[name].metrics[metric]) for name in names], some),
    )
    for way in ways:
        found = way(weights[:, :1])
        if found is not None and np.allclose(found[0], expected, rtol=0.0, atol=_CLOSE, equal_nan=True):
            values = way(weights)
            if values is not None:
                values[0] = expected
                return values
    groups = {str(i): list(chain.from_iterable(_repeated(names, column))) for i, column in enumerate(weights.T)}
    judged = result.judge(groups)
    return np.array([_or_nan(judged[i].metrics[metric]) if i in judged else np.nan for i in groups])


def _repeated(names: Sequence[str], column: FloatArray) -> list[list[str]]:
    return [[name] * int(times) for name, times in zip(names, column, strict=True)]


def _or_nan(value: float | None) -> float:
    return np.nan if value is None else value


def _mean(values: Sequence[float], weights: FloatArray) -> FloatArray:
    """Return the weighted means of the recordings' own values, [n_resamples]; undefined ones are left out."""
    each = np.array(values)
    counts = weights[~np.isnan(each)]
    with np.errstate(invalid="ignore"):
        mean: FloatArray = (each[~np.isnan(each)] @ counts) / counts.sum(axis=0)
    return mean


def _pooled(metric: str, scored: Sequence[ScoredRecording], weights: FloatArray) -> FloatArray | None:
    """Return a metric over the pooled rows of each resample, [n_resamples]; None if this module does not know it."""
    rows = [(one.scores[one.evaluated], one.anomalous[one.evaluated]) for one in scored]
    if metric in _RANKINGS:
        return _ranking(metric, rows, weights)
    counts = np.zeros((4, len(scored)))
    for i, (one, (scores, anomalous)) in enumerate(zip(scored, rows, strict=True)):
        flagged = flagged_rows(scores, anomalous, one.threshold)
        counts[:, i] = [np.count_nonzero(some) for some in (
            flagged & anomalous, flagged & ~anomalous, ~flagged & anomalous, ~flagged & ~anomalous,
        )]  # fmt: skip
    return _at_threshold(metric, *(counts @ weights))


def _at_threshold(metric: str, tp: FloatArray, fp: FloatArray, fn: FloatArray, tn: FloatArray) -> FloatArray | None:
    margins = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    one_class = (tp + fn == 0) | (tn + fp == 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        f1 = 2 * tp / np.where(tp + fn, 2 * tp + fp + fn, np.nan)
        ratio = {
            "precision": tp / np.maximum(tp + fp, 1),
            "recall": tp / (tp + fn),
            "prac_f1": f1,
            "f1": f1,
            "mcc": np.where(one_class, np.nan, (tp * tn - fp * fn) / np.sqrt(np.where(margins, margins, 1.0))),
            "far": fp / (fp + tn),
            "mar": fn / (tp + fn),
            "flagged": (tp + fp) / (tp + fp + fn + tn),
        }
    return ratio.get(metric)


def _ranking(metric: str, rows: Sequence[tuple[FloatArray, BoolArray]], weights: FloatArray) -> FloatArray:
    """Return AUROC, average precision or the best F1 over all thresholds, [n_resamples]; NaN for one class.

    All three are sums, or a maximum, over the anomalous rows that a threshold can flag: of how many anomalous and
    how many normal rows score at least as high.
    """
    anomalous = np.concatenate([labels for _, labels in rows])
    given = np.concatenate([scores for scores, _ in rows])
    scores = np.split(worst_case(given, anomalous), np.cumsum([len(one) for one, _ in rows])[:-1])
    found = [np.sort(one[labels & ~np.isnan(raw)]) for one, (raw, labels) in zip(scores, rows, strict=True)]
    normal = [np.sort(one[~labels]) for one, (_, labels) in zip(scores, rows, strict=True)]
    positives = np.array([float(np.count_nonzero(labels)) for _, labels in rows]) @ weights
    negatives = np.array([float(len(one)) for one in normal]) @ weights
    # The rows that count, by recording; how many of each recording score at least as high: [n_rows, n_recordings].
    limits = np.concatenate(found)
    own = np.repeat(np.arange(len(rows)), [len(one) for one in found])
    above = np.stack([_at_least(one, limits) for one in found], axis=1)
    alarms = np.stack([_at_least(one, limits) for one in normal], axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        if metric == "auroc":
            higher = np.stack([len(one) - np.searchsorted(one, limits, side="right") for one in normal], axis=1)
            # Pairs of an anomalous and a normal row in the wrong order, by their recordings; a tie counts half.
            wrong = np.zeros((len(rows), len(rows)))
            np.add.at(wrong, own, (alarms + higher) / 2)
            missed = (np.array([float(len(one)) for one in found]) @ weights - positives) * -negatives
            pairs: FloatArray = ((wrong.T @ weights) * weights).sum(axis=0) + missed
            return 1.0 - pairs / (positives * negatives)
        found_at = [i for i, one in enumerate(found) if len(one)]
        starts = np.searchsorted(own, found_at)
        # Counts of drawn rows are whole numbers, which float32 holds exactly below 2^24: it is twice as fast.
        exact: type[np.floating] = np.float32 if (positives + negatives).max() < _FLOAT32 else np.float64
        above, taken, drawn = above.astype(exact), (above + alarms).astype(exact), weights.astype(exact)
        parts = []
        for chunk in (slice(start, start + _CHUNK) for start in range(0, weights.shape[1], _CHUNK)):
            hits, flagged = above @ drawn[:, chunk], taken @ drawn[:, chunk]
            if metric == "bf_f1":
                parts.append((2 * hits / (flagged + positives[chunk])).max(axis=0, initial=0.0))
            else:
                np.divide(hits, np.maximum(flagged, 1, out=flagged), out=hits)
                precisions = np.add.reduceat(hits, starts, axis=0, dtype=np.float64)
                parts.append((precisions * weights[found_at, chunk]).sum(axis=0) / positives[chunk])
        return np.where((positives > 0) & (negatives > 0), np.concatenate(parts), np.nan)


def _at_least(ordered: FloatArray, limits: FloatArray) -> FloatArray:
    """Return how many values are at least as high as each limit."""
    return (len(ordered) - np.searchsorted(ordered, limits, side="left")).astype(np.float64)
