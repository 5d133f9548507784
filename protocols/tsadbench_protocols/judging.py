"""What the protocols share: the rule for thresholds, and how the scores of fits are judged."""

from __future__ import annotations

import statistics
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tsadbench import ContractError, DataError, UsageError
from tsadbench.base import (
    ALL,
    BoolArray,
    EpisodeThreshold,
    FloatArray,
    Judgement,
    Labels,
    Metric,
    Protocol,
    Scored,
    SplitJudgement,
    Threshold,
)
from tsadbench_protocols import pot
from tsadbench_protocols.metrics import METRICS, evaluate

# Of the calibration rows, so many need a score: a detector must not choose the rows that set its threshold.
_LEAST_PERCENT = 95


class PotProtocol(Protocol):
    """A protocol whose thresholds come from Peaks-over-Threshold on training scores.

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
        kind = "calibration" if scored.calibration else "training"
        if len(present) == 0:
            raise ContractError(f"not one of the {len(rows)} {kind} rows that set the threshold has a score")
        if 100 * len(present) < _LEAST_PERCENT * len(rows):
            raise ContractError(
                f"expected scores for at least {_LEAST_PERCENT} % of the {len(rows):,} {kind} rows that set the "
                f"threshold, found {len(present):,}: score every row of a recording, its first ones included"
            )
        return self._threshold_from(present)

    def _threshold_from(self, scores: FloatArray) -> Threshold:
        """Return the threshold by Peaks-over-Threshold."""
        return pot.fit(scores, level=self.level, q=self.q)

    def _require_integer(self, parameter: str, least: int) -> None:
        """Raise a UsageError unless the parameter is an integer of at least ``least``."""
        value = getattr(self, parameter)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            protocol = type(self).__name__.lower()
            raise UsageError(f"{protocol}: {parameter} must be an integer of at least {least}, found {value!r}")


class PooledProtocol(PotProtocol):
    """A protocol whose metrics are over all evaluated rows of one fitted detector; means over entities if several are.

    Each episode is one fit with one threshold.
    """

    metrics = METRICS

    @abstractmethod
    def _check_labels(self, scored: Sequence[Scored], labels: Labels) -> None:
        """Raise a DataError unless there is one label for each scored test row."""

    def judge(self, scored: Sequence[Scored], labels: Labels) -> Judgement:
        """Return the threshold of each fit, and the metrics of every split.

        Raises
        ------
        ContractError
            If no evaluated row of a fit has a score, or too few of the training rows that its threshold needs.
        DataError
            If the labels are not those of the scored rows, or a split names a recording that was not scored.
        """
        self.check()
        copies = max(Counter(fit.episode.id for fit in scored).values(), default=0)
        if copies != 1:
            raise DataError(f"an episode is scored once: expected the scores of one, found {copies}")
        for fit in scored:
            require_whole(fit)
        self._check_labels(scored, labels)
        fits = [self._judged_fit(fit, labels) for fit in scored]
        splits = {name: _judge_split(name, ids, fits) for name, ids in labels.splits.items()}
        notes = [
            f"no row of recording {name!r} ({len(labels.rows[name])} rows) is evaluated: it is too short"
            for fit in fits
            for name, rows in fit.evaluated.items()
            if len(rows.scores) == 0
        ]
        return Judgement(
            thresholds=tuple(EpisodeThreshold(fit.entity, fit.threshold) for fit in fits),
            splits=splits,
            notes=(*notes, *_notes_on_means(splits)),
        )

    def _judged_fit(self, fit: Scored, labels: Labels) -> _Fit:
        evaluated = self._evaluated(fit, labels)
        test_rows = _pooled(rows.scores for rows in evaluated.values())
        if len(test_rows) and np.isnan(test_rows).all():
            whose = "" if fit.episode.id == ALL else f" of {fit.episode.id!r}"
            raise ContractError(
                f"not one of the {len(test_rows)} evaluated test rows{whose} has a score: there is nothing to judge"
            )
        return _Fit(fit.episode.id, evaluated, self.threshold(fit))

    def _evaluated(self, fit: Scored, labels: Labels) -> dict[str, Evaluated]:
        """Return the rows of every test recording that count, by its id."""
        evaluated = {}
        n_rows = {name: len(anomalous) for name, anomalous in labels.rows.items()}
        for place in self.places(fit.episode, n_rows):
            anomalous = labels.rows[place.recording]
            scores = fit.test[place.scored][place.start : place.start + len(anomalous)]
            evaluated[place.recording] = Evaluated(scores[place.evaluated], anomalous[place.evaluated])
        return evaluated


@dataclass(frozen=True, slots=True, eq=False)
class Evaluated:
    """The rows of one test recording that count.

    Parameters
    ----------
    scores
        [n_evaluated], NaN if the detector did not score the row.
    anomalous
        [n_evaluated], the truth.
    """

    scores: FloatArray
    anomalous: BoolArray


def require_whole(scored: Scored) -> None:
    """Raise a DataError unless there is one score for each row of an episode's recordings."""
    for role, scores, recordings in (
        ("training", scored.train, scored.episode.train),
        ("calibration", scored.calibration, scored.episode.calibration),
        ("test", scored.test, scored.episode.test),
    ):
        n_scores, n_rows = [len(rows) for rows in scores], [recording.n_rows for recording in recordings]
        if n_scores != n_rows:
            raise DataError(f"expected one score for every {role} row, {n_rows} per recording, found {n_scores}")


def nothing_judged(metrics: Sequence[Metric]) -> SplitJudgement:
    """Return the judgement of a split without an evaluated row."""
    return SplitJudgement(dict.fromkeys((metric.name for metric in metrics), None), 0, 0, 0.0)


def _pooled(scores: Iterable[FloatArray]) -> FloatArray:
    pooled = np.concatenate([np.empty(0), *scores])
    if np.isinf(pooled).any():
        raise ContractError("scores must not be infinite; a row that cannot be scored is NaN")
    return pooled


@dataclass(frozen=True, slots=True)
class _Fit:
    """The judgement of one fit: the rows of every test recording that count, by id, and its threshold."""

    entity: str
    evaluated: Mapping[str, Evaluated]
    threshold: Threshold

    def judge(self, ids: Iterable[str]) -> SplitJudgement:
        """Return the metrics over the evaluated rows of those recordings that it scored."""
        members = [self.evaluated[member] for member in ids if member in self.evaluated]
        scores = _pooled(rows.scores for rows in members)
        anomalous = np.concatenate([np.empty(0, dtype=np.bool_), *(rows.anomalous for rows in members)])
        if len(scores) == 0:
            return nothing_judged(METRICS)
        return SplitJudgement(
            metrics=evaluate(scores, anomalous, self.threshold.value),
            n_rows=len(scores),
            n_anomalous=int(np.count_nonzero(anomalous)),
            coverage=float(np.mean(~np.isnan(scores))),
        )


def _judge_split(split: str, ids: Sequence[str], fits: Sequence[_Fit]) -> SplitJudgement:
    unknown = sorted(set(ids).difference(*(fit.evaluated for fit in fits)))
    if unknown:
        raise DataError(f"split {split!r} names recordings that were not scored: {unknown}")
    if [fit.entity for fit in fits] == [ALL]:
        return fits[0].judge(ids)
    return _mean_over_entities({fit.entity: fit.judge(ids) for fit in fits if not fit.evaluated.keys().isdisjoint(ids)})


def _mean_over_entities(judged: Mapping[str, SplitJudgement]) -> SplitJudgement:
    """Return one judgement of a split whose entities were judged by themselves: means where defined, counts summed."""
    n_rows = sum(one.n_rows for one in judged.values())
    n_scored = sum(round(one.coverage * one.n_rows) for one in judged.values())
    return SplitJudgement(
        metrics={metric.name: _mean([one.metrics[metric.name] for one in judged.values()]) for metric in METRICS},
        n_rows=n_rows,
        n_anomalous=sum(one.n_anomalous for one in judged.values()),
        coverage=n_scored / n_rows if n_rows else 0.0,
        entities={entity: one.metrics for entity, one in judged.items()},
    )


def _mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of those that are defined, whatever their order; None if none is."""
    defined = [value for value in values if value is not None]
    return statistics.fmean(defined) if defined else None


def _notes_on_means(splits: Mapping[str, SplitJudgement]) -> Iterator[str]:
    """Yield which entities take no part in some of a split's means."""
    for split, judged in splits.items():
        left_out = [name for name, metrics in judged.entities.items() if None in metrics.values()]
        if 0 < len(left_out) < len(judged.entities):
            yield (
                f"split {split!r}: the evaluated rows of {', '.join(left_out)} are not of both classes, so means of "
                f"metrics that need both are over the other {len(judged.entities) - len(left_out)} entities"
            )
