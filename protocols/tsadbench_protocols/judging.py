"""What the protocols share: the rule for thresholds, and how the scores of one fit are judged."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tsadbench import ContractError, DataError, UsageError
from tsadbench.base import (
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
        return self.threshold_from(present)

    def threshold_from(self, scores: FloatArray) -> Threshold:
        """Return the threshold by Peaks-over-Threshold."""
        return pot.fit(scores, level=self.level, q=self.q)

    def _require_integer(self, parameter: str, least: int) -> None:
        """Raise a UsageError unless the parameter is an integer of at least ``least``."""
        value = getattr(self, parameter)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            protocol = type(self).__name__.lower()
            raise UsageError(f"{protocol}: {parameter} must be an integer of at least {least}, found {value!r}")


class OneFitProtocol(PotProtocol):
    """A protocol with one episode: one fitted detector, one threshold."""

    metrics = METRICS

    @abstractmethod
    def _check_labels(self, scored: Scored, labels: Labels) -> None:
        """Raise a DataError unless there is one label for each scored test row."""

    def judge(self, scored: Sequence[Scored], labels: Labels) -> Judgement:
        """Return the threshold, and the metrics of every split.

        Raises
        ------
        ContractError
            If no evaluated row has a score, or too few of the training rows that the threshold needs.
        DataError
            If the labels are not those of the scored rows, or a split names a recording that was not scored.
        """
        self.check()
        if len(scored) != 1:
            raise DataError(f"this protocol has one episode: expected the scores of one, found {len(scored)}")
        (fit,) = scored
        require_whole(fit)
        self._check_labels(fit, labels)
        evaluated = self._evaluated(fit, labels)
        test_rows = _pooled(rows.scores for rows in evaluated.values())
        if len(test_rows) and np.isnan(test_rows).all():
            raise ContractError(
                f"not one of the {len(test_rows)} evaluated test rows has a score: there is nothing to judge"
            )
        threshold = self.threshold(fit)
        splits = {name: _judge_split(name, ids, evaluated, threshold.value) for name, ids in labels.splits.items()}
        notes = tuple(
            f"no row of recording {name!r} ({len(labels.rows[name])} rows) is evaluated: it is too short"
            for name, rows in evaluated.items()
            if len(rows.scores) == 0
        )
        return Judgement(thresholds=(EpisodeThreshold(fit.episode.id, threshold),), splits=splits, notes=notes)

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


def _judge_split(
    split: str, ids: Sequence[str], evaluated: Mapping[str, Evaluated], threshold: float
) -> SplitJudgement:
    unknown = sorted(set(ids) - set(evaluated))
    if unknown:
        raise DataError(f"split {split!r} names recordings that were not scored: {unknown}")
    scores = _pooled(evaluated[member].scores for member in ids)
    anomalous = np.concatenate([np.empty(0, dtype=np.bool_), *(evaluated[member].anomalous for member in ids)])
    if len(scores) == 0:
        return nothing_judged(METRICS)
    return SplitJudgement(
        metrics=evaluate(scores, anomalous, threshold),
        n_rows=len(scores),
        n_anomalous=int(np.count_nonzero(anomalous)),
        coverage=float(np.mean(~np.isnan(scores))),
    )
