"""What the protocols share: the rule for thresholds, and how the scores of fits are judged."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from pydantic import TypeAdapter, ValidationError

from tsadbench import ContractError, DataError, UsageError
from tsadbench.base import (
    ALL,
    BoolArray,
    EpisodeThreshold,
    FloatArray,
    Judgement,
    Labels,
    Protocol,
    Scored,
    SplitJudgement,
    Threshold,
)
from tsadbench_protocols import pot
from tsadbench_protocols.metrics import METRICS, evaluate

# Share of the calibration rows that need a score: a detector must not choose the rows that set its threshold.
_LEAST_PERCENT = 95


class Rows(NamedTuple):
    """Rows that count: their scores [n_rows], NaN where the detector gave none, and the truth [n_rows]."""

    scores: FloatArray
    anomalous: BoolArray

    @classmethod
    def pooled(cls, parts: Sequence[Rows]) -> Rows:
        """Return the rows of all parts."""
        truth = np.concatenate([np.empty(0, dtype=np.bool_), *(part.anomalous for part in parts)])
        return cls(_pooled(part.scores for part in parts), truth)

    def judgement(self, metrics: Mapping[str, float | None]) -> SplitJudgement:
        """Return the judgement of a split that consists of these rows."""
        n_rows, n_anomalous = len(self.scores), int(np.count_nonzero(self.anomalous))
        return SplitJudgement(metrics, n_rows, n_anomalous, float(np.mean(~np.isnan(self.scores))) if n_rows else 0.0)


class PotProtocol(Protocol):
    """A protocol whose thresholds come from Peaks-over-Threshold on training scores; its parameters are fields.

    Parameters
    ----------
    level
        Quantile level of the initial threshold.
    q
        Risk: the share of normal rows that the threshold lets be flagged.
    """

    level: float
    q: float

    def check(self) -> None:
        """Raise a UsageError if a parameter is out of range."""
        try:
            TypeAdapter(type(self)).validate_python(vars(self))
        except ValidationError as error:
            wrong = error.errors()[0]
            name = f"{type(self).__name__.lower()}: {wrong['loc'][0]}"
            expected = wrong["msg"].removeprefix("Input should be ")
            raise UsageError(f"{name} must be {expected}, found {wrong['input']!r}") from error
        pot.check_options(self.level, self.q)

    def threshold(self, scored: Scored) -> Threshold:
        """Return a floor's own threshold, or that of the pooled `calibration_scores`.

        Raises
        ------
        ContractError
            If fewer than 95 % of these rows have a score.
        """
        if scored.fixed_threshold is not None:
            return Threshold(value=scored.fixed_threshold, method="fixed", status="fixed")
        rows = _pooled(self.calibration_scores(scored))
        present = rows[~np.isnan(rows)]
        if len(present) == 0 or 100 * len(present) < _LEAST_PERCENT * len(rows):
            raise ContractError(
                f"expected scores for at least {_LEAST_PERCENT} % of the {len(rows):,} "
                f"{'calibration' if scored.calibration else 'training'} rows that set the threshold, found "
                f"{len(present):,}: score every row of a recording, its first ones included"
            )
        return pot.fit(present, level=self.level, q=self.q)

    def evaluated(self, fit: Scored, labels: Labels) -> dict[str, Rows]:
        """Return the rows of every test recording that count, by its id.

        Raises
        ------
        ContractError
            If none of them has a score.
        DataError
            If the labels are not those of the scored rows.
        """
        n_rows = {name: len(anomalous) for name, anomalous in labels.rows.items()}
        places = list(self.places(fit.episode, n_rows))
        for number, scores in enumerate(fit.test):
            n_labels = sum(n_rows.get(place.recording, 0) for place in places if place.scored == number)
            if n_labels != len(scores):
                name = fit.episode.test[number].id
                raise DataError(f"expected a label for each of the {len(scores)} rows of {name!r}, found {n_labels}")
        rows = {}
        for place in places:
            anomalous = labels.rows[place.recording]
            scores = fit.test[place.scored][place.start : place.start + len(anomalous)]
            rows[place.recording] = Rows(scores[place.evaluated], anomalous[place.evaluated])
        scores = _pooled(one.scores for one in rows.values())
        if len(scores) and np.isnan(scores).all():
            raise ContractError(f"not one of the {len(scores)} evaluated test rows of {fit.episode.id!r} has a score")
        return rows


class PooledProtocol(PotProtocol):
    """A protocol whose metrics are over all evaluated rows of one fitted detector; means over entities if several are.

    Each episode is one fit with one threshold.
    """

    metrics = METRICS

    def judge(self, scored: Sequence[Scored], labels: Labels) -> Judgement:
        """Return the threshold of each fit, and the metrics of every split.

        A ContractError if no evaluated row of a fit has a score, or too few of the rows that set its threshold. A
        DataError if the labels are not those of the scored rows, or a split names a recording that was not scored.
        """
        rows = {fit.episode.id: self.evaluated(fit, labels) for fit in scored}
        thresholds = {fit.episode.id: self.threshold(fit) for fit in scored}
        unknown = set().union(labels.rows, *labels.splits.values()).difference(*rows.values())
        if unknown:
            raise DataError(f"expected scores of every labelled recording, found none of {', '.join(sorted(unknown))}")
        splits = {name: _judge_split(ids, rows, thresholds) for name, ids in labels.splits.items()}
        notes = [
            f"no row of recording {name!r} ({len(labels.rows[name])} rows) is evaluated: it is too short"
            for recordings in rows.values()
            for name, evaluated in recordings.items()
            if len(evaluated.scores) == 0
        ]
        return Judgement(
            thresholds=tuple(EpisodeThreshold(*one) for one in thresholds.items()),
            splits=splits,
            notes=(*notes, *_notes_on_means(splits)),
        )


def mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values that are defined; None if there are none."""
    defined = [value for value in values if value is not None]
    return statistics.fmean(defined) if defined else None


def _pooled(scores: Iterable[FloatArray]) -> FloatArray:
    pooled = np.concatenate([np.empty(0), *scores])
    if np.isinf(pooled).any():
        raise ContractError("scores must not be infinite; a row that cannot be scored is NaN")
    return pooled


def _judge_split(
    ids: Sequence[str], rows: Mapping[str, Mapping[str, Rows]], thresholds: Mapping[str, Threshold]
) -> SplitJudgement:
    """Judge each entity's rows by themselves: scores of two fits share no scale."""
    judged = {}
    for entity, recordings in rows.items():
        if members := [recordings[name] for name in ids if name in recordings]:
            pooled = Rows.pooled(members)
            lengths = [len(member.scores) for member in members]
            judged[entity] = pooled.judgement(evaluate(*pooled, thresholds[entity].value, lengths))
    if rows.keys() == judged.keys() == {ALL}:
        return judged[ALL]
    n_rows = sum(one.n_rows for one in judged.values())
    n_scored = sum(round(one.coverage * one.n_rows) for one in judged.values())
    return SplitJudgement(
        metrics={metric.name: mean(one.metrics[metric.name] for one in judged.values()) for metric in METRICS},
        n_rows=n_rows,
        n_anomalous=sum(one.n_anomalous for one in judged.values()),
        coverage=n_scored / n_rows if n_rows else 0.0,
        entities={entity: one.metrics for entity, one in judged.items()},
    )


def _notes_on_means(splits: Mapping[str, SplitJudgement]) -> Iterator[str]:
    """Yield which entities take no part in some of a split's means."""
    for split, judged in splits.items():
        left_out = [name for name, metrics in judged.entities.items() if None in metrics.values()]
        if 0 < len(left_out) < len(judged.entities):
            yield (
                f"split {split!r}: the evaluated rows of {', '.join(left_out)} are not of both classes, so means of "
                f"metrics that need both are over the other {len(judged.entities) - len(left_out)} entities"
            )
