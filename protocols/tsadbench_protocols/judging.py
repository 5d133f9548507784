"""What the protocols share: the rule for thresholds, and how the scores of fits are judged."""

# No postponed annotations: a subclass's constructor inherits them, and its module need not import `Literal`.
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

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
    trailing_mean,
)
from tsadbench_protocols import dspot, pot
from tsadbench_protocols.metrics import AVERAGED_ROWS, METRICS, evaluate

# Share of the calibration rows that need a score: a detector must not choose the rows that set its threshold.
_LEAST_PERCENT = 95


class Rows(NamedTuple):
    """Evaluated rows, [n_rows] each: scores, NaN if none; their means; what scores must exceed; the truth."""

    scores: FloatArray
    averaged: FloatArray
    limits: FloatArray
    anomalous: BoolArray


@dataclass(kw_only=True, eq=False)
class PotProtocol(Protocol):
    """A protocol with one Peaks-over-Threshold threshold a fit. Metrics of several fits are averaged.

    Parameters
    ----------
    level
        Quantile level of the initial threshold.
    q
        Risk: the share of normal rows that may be flagged.
    threshold
        "pot"; or "dspot": Peaks-over-Threshold on log scores less their mean over the last rows that were not flagged,
        which assumes that the first 60 rows of each recording are normal (`tsadbench_protocols.dspot`).
    """

    metrics = METRICS
    level: float = 0.98
    q: float = 1e-3
    threshold: Literal["pot", "dspot"] = "pot"

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

    def find_threshold(self, scored: Scored) -> Threshold:
        """Return a floor's own threshold, or that of the pooled `calibration_scores`.

        A ContractError if fewer than 95 % of these rows have a score.
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
        return replace(pot.fit(present, level=self.level, q=self.q), method=self.threshold)

    def calibration_scores(self, scored: Scored) -> tuple[FloatArray, ...]:
        """Return the scores that set the threshold of one fit, an array a recording; for DSPOT its excesses."""
        if self.threshold == "pot":
            return super().calibration_scores(scored)
        found = []
        for scores in scored.calibration or scored.train:
            rows = self.calibration_rows(len(scores))
            found.append(dspot.excesses(scores)[max(rows.start, dspot.BEGINNING) : rows.stop])
        return tuple(found)

    def limits(self, scored: Scored, threshold: Threshold) -> tuple[FloatArray, ...]:
        """Return which value each score must exceed for its row to be flagged, [n_rows] a test recording."""
        if threshold.method != "dspot":
            return super().limits(scored, threshold)
        return tuple(dspot.limits(scores, threshold.value) for scores in scored.test)

    def judge(self, scored: Sequence[Scored], labels: Labels) -> Judgement:
        """Return the threshold of each fit, and the metrics of every split.

        A ContractError if no evaluated row of a fit has a score, or too few of the rows that set its threshold. A
        DataError if the labels are not those of the scored rows, or a split names a recording that was not scored.
        """
        thresholds = {fit.episode.id: self.find_threshold(fit) for fit in scored}
        rows = {fit.episode.id: self._evaluated(fit, thresholds[fit.episode.id], labels) for fit in scored}
        of_all = {name: one for found in rows.values() for name, one in found.items()}
        if unknown := sorted(set(labels.rows).union(*labels.splits.values()) - of_all.keys()):
            raise DataError(f"expected scores of every labelled recording, found none of {', '.join(unknown)}")
        splits = {}
        for split, ids in labels.splits.items():
            members = {fit: [found[name] for name in ids if name in found] for fit, found in rows.items()}
            splits[split] = self._judge_split({fit: some for fit, some in members.items() if some}, [*thresholds])
        notes = [
            f"no row of recording {name!r} ({len(labels.rows[name])} rows) is evaluated: it is too short"
            for name, one in of_all.items()
            if len(one.scores) == 0
        ]
        if self.threshold == "dspot":
            notes.append(f"thresholds take the first {dspot.BEGINNING} rows of each recording for normal")
        entries = tuple(EpisodeThreshold(*one) for one in thresholds.items())
        return Judgement(entries, splits, (*notes, *_notes_on_means(splits)))

    def _evaluated(self, fit: Scored, threshold: Threshold, labels: Labels) -> dict[str, Rows]:
        """Return the evaluated rows of every test recording, by its id."""
        rows, n_labels, limits = {}, Counter[int](), self.limits(fit, threshold)
        # Leaving rows out could improve a mean: if a score is missing, no row of the recording has a mean.
        whole = [np.where(np.isnan(one).any(), np.nan, one) for one in fit.test]
        averaged = [trailing_mean(one, AVERAGED_ROWS) for one in whole]
        for place in self.places(fit.episode, {name: len(anomalous) for name, anomalous in labels.rows.items()}):
            anomalous = labels.rows.get(place.recording, np.empty(0, dtype=np.bool_))
            part = slice(place.start, place.start + len(anomalous))
            scores, mean, most = (one[place.scored][part][place.evaluated] for one in (fit.test, averaged, limits))
            rows[place.recording] = Rows(scores, mean, most, anomalous[place.evaluated])
            n_labels[place.scored] += len(anomalous)
        for number, (one, scores) in enumerate(zip(fit.episode.test, fit.test, strict=True)):
            if n_labels[number] != len(scores):
                raise DataError(
                    f"expected a label for each of the {len(scores)} rows of {one.id!r}, found {n_labels[number]}"
                )
        scores = _pooled(one.scores for one in rows.values())
        if len(scores) and np.isnan(scores).all():
            raise ContractError(f"not one of the {len(scores)} evaluated test rows of {fit.episode.id!r} has a score")
        return rows

    def _judge_split(self, members: Mapping[str, Sequence[Rows]], fits: Sequence[str]) -> SplitJudgement:
        """Judge the recordings of each fit separately, because scores of two fits share no scale."""
        entities = {}
        for fit, recordings in members.items():
            scores, averaged, limits, anomalous = map(np.concatenate, zip(*recordings, strict=True))
            lengths = [len(one.scores) for one in recordings]
            entities[fit] = evaluate(scores, anomalous, limits, lengths, averaged)
        n_anomalous = sum(int(np.count_nonzero(one.anomalous)) for some in members.values() for one in some)
        scores = _pooled(one.scores for some in members.values() for one in some)
        coverage = float(np.mean(~np.isnan(scores))) if len(scores) else 0.0
        if [*entities] == [*fits] == [ALL]:
            return SplitJudgement(entities[ALL], len(scores), n_anomalous, coverage)
        means = {metric.name: _mean(one[metric.name] for one in entities.values()) for metric in METRICS}
        return SplitJudgement(means, len(scores), n_anomalous, coverage, entities)


def _mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values that are defined; None if there are none."""
    defined = [value for value in values if value is not None]
    return statistics.fmean(defined) if defined else None


def _pooled(scores: Iterable[FloatArray]) -> FloatArray:
    pooled = np.concatenate([np.empty(0), *scores])
    if np.isinf(pooled).any():
        raise ContractError("scores must not be infinite; a row that cannot be scored is NaN")
    return pooled


def _notes_on_means(splits: Mapping[str, SplitJudgement]) -> Iterator[str]:
    """Yield which entities take no part in some of a split's means."""
    for split, judged in splits.items():
        left_out = [name for name, metrics in judged.entities.items() if None in metrics.values()]
        if 0 < len(left_out) < len(judged.entities):
            yield (
                f"split {split!r}: the evaluated rows of {', '.join(left_out)} are not of both classes, so means of "
                f"metrics that need both are over the other {len(judged.entities) - len(left_out)} entities"
            )
