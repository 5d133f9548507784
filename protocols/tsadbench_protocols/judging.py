"""What the protocols share: one threshold from training scores, metrics for every split."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tsadbench import ContractError, DataError, UsageError
from tsadbench.base import (
    BoolArray,
    EpisodeThreshold,
    FloatArray,
    Judgement,
    Labels,
    Place,
    Scored,
    SplitJudgement,
    Threshold,
)
from tsadbench_protocols import pot
from tsadbench_protocols.metrics import METRICS, evaluate


@dataclass(frozen=True, slots=True, eq=False)
class Evaluated:
    """The rows of one test recording that count.

    Parameters
    ----------
    scores
        [n_evaluated], NaN where the detector could not score.
    anomalous
        [n_evaluated], the truth.
    """

    scores: FloatArray
    anomalous: BoolArray


def judge(
    scored: Scored,
    evaluated: Mapping[str, Evaluated],
    labels: Labels,
    threshold_of: Callable[[Scored], Threshold],
) -> Judgement:
    """Return the threshold of the one fitted detector, and the metrics of every split.

    Parameters
    ----------
    scored
        The one episode.
    evaluated
        By test recording: the rows that the protocol evaluates.
    labels
        Its splits are judged.
    threshold_of
        The protocol's own rule.

    Raises
    ------
    ContractError
        If none of the evaluated rows has a score, or none of the training rows that the threshold needs.
    DataError
        If a split names a recording that was not scored.
    """
    test_rows = _pooled(rows.scores for rows in evaluated.values())
    if len(test_rows) and np.isnan(test_rows).all():
        raise ContractError(
            f"not one of the {len(test_rows)} evaluated test rows has a score: there is nothing to judge"
        )
    threshold = threshold_of(scored)
    splits = {name: _judge_split(name, ids, evaluated, threshold.value) for name, ids in labels.splits.items()}
    return Judgement(thresholds=(EpisodeThreshold(scored.episode.id, threshold),), splits=splits)


def evaluated_rows(places: Iterable[Place], one: Scored, labels: Labels) -> dict[str, Evaluated]:
    """Return the rows that count of every test recording, by its id."""
    evaluated = {}
    for place in places:
        anomalous = labels.rows[place.recording]
        scores = one.test[place.scored][place.start : place.start + len(anomalous)]
        evaluated[place.recording] = Evaluated(scores[place.evaluated], anomalous[place.evaluated])
    return evaluated


def only_episode(scored: Sequence[Scored]) -> Scored:
    """Return the scores of the one episode; raise a DataError where there is another number or a length is wrong."""
    if len(scored) != 1:
        raise DataError(f"this protocol has one episode: expected the scores of one, found {len(scored)}")
    (one,) = scored
    require_whole(one)
    return one


def require_whole(one: Scored) -> None:
    """Raise a DataError unless there is one score for each row of an episode's recordings."""
    for role, scores, recordings in (
        ("training", one.train, one.episode.train),
        ("test", one.test, one.episode.test),
    ):
        found, expected = [len(rows) for rows in scores], [recording.n_rows for recording in recordings]
        if found != expected:
            raise DataError(f"expected one score for every {role} row, {expected} a recording, found {found}")


def require_integer(protocol: str, parameter: str, value: object, least: int) -> None:
    """Raise a UsageError that names the parameter unless it is an integer of at least ``least``."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise UsageError(f"{protocol}: {parameter} must be an integer of at least {least}, found {value!r}")


def _pooled(scores: Iterable[FloatArray]) -> FloatArray:
    pooled = np.concatenate([np.empty(0), *scores])
    if np.isinf(pooled).any():
        raise ContractError("scores must not be infinite; a row that cannot be scored is NaN")
    return pooled


def find_threshold(scored: Scored, calibration: Callable[[int], slice], level: float, q: float) -> Threshold:
    """Return the threshold that the training scores give, or a floor's own.

    Parameters
    ----------
    scored
        One fit's scores; those of all training recordings are pooled.
    calibration
        The rows that count, of a training recording of so many rows.
    level, q
        Options of Peaks-over-Threshold (`pot.fit`).

    Raises
    ------
    ContractError
        If no calibration row has a score.
    """
    if scored.fixed_threshold is not None:
        return Threshold(value=scored.fixed_threshold, method="fixed", status="fixed")
    rows = _pooled(scores[calibration(len(scores))] for scores in scored.train)
    present = rows[~np.isnan(rows)]
    if len(present) == 0:
        raise ContractError(f"not one of the {len(rows)} training rows that set the threshold has a score")
    return pot.fit(present, level=level, q=q)


def _judge_split(
    split: str, ids: Sequence[str], evaluated: Mapping[str, Evaluated], threshold: float
) -> SplitJudgement:
    unknown = sorted(set(ids) - set(evaluated))
    if unknown:
        raise DataError(f"split {split!r} names recordings that were not scored: {unknown}")
    scores = _pooled(evaluated[member].scores for member in ids)
    anomalous = np.concatenate([np.empty(0, dtype=np.bool_), *(evaluated[member].anomalous for member in ids)])
    if len(scores) == 0:
        return SplitJudgement(dict.fromkeys((metric.name for metric in METRICS), None), 0, 0, 0.0)
    return SplitJudgement(
        metrics=evaluate(scores, anomalous, threshold),
        n_rows=len(scores),
        n_anomalous=int(np.count_nonzero(anomalous)),
        coverage=float(np.mean(~np.isnan(scores))),
    )
