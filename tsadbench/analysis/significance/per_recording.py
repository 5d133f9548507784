"""Every selected trial judged on each recording by itself, by its protocol's own judge."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tsadbench.analysis.significance.comparison import Entrant
from tsadbench.analysis.significance.matrix import Clusters, Matrix
from tsadbench.analysis.significance.selection import Selection
from tsadbench.base.protocol import SplitJudgement
from tsadbench.errors import UsageError
from tsadbench.execution.record import Record
from tsadbench.results.trial_result import TrialResult


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """Metrics of detectors by recording.

    Parameters
    ----------
    means
        By label, recording and metric: the mean over seeds; None where one of them is undefined. A detector with a
        failed trial is not among them.
    rows
        By recording: how many rows are evaluated, and how many of these are anomalous.
    """

    means: Mapping[str, Mapping[str, Mapping[str, float | None]]]
    rows: Mapping[str, tuple[int, int]]

    def matrix(self, metric: str, recordings: Sequence[str]) -> Matrix:
        """Return one metric, [n_recordings, n_detectors]; NaN where undefined, or the protocol does not score it."""
        values = [
            [_or_nan(of_detector.get(recording, {}).get(metric)) for of_detector in self.means.values()]
            for recording in recordings
        ]
        shape = (len(recordings), len(self.means))
        return Matrix(tuple(recordings), tuple(self.means), np.array(values, dtype=np.float64).reshape(shape))

    def why_undefined(self, recording: str) -> str:
        """Say why a metric that needs rows of both classes is undefined on a recording."""
        n_rows, n_anomalous = self.rows.get(recording, (0, 0))
        if n_rows == 0:
            return "none of its rows is evaluated"
        if n_anomalous in (0, n_rows):
            return f"none of its evaluated rows is {'anomalous' if n_anomalous == 0 else 'normal'}"
        return "the metric is undefined on it"

    def entrant(self, label: str, records: Sequence[Record], metrics: Sequence[str], clusters: Clusters) -> Entrant:
        """Return a detector's row: its trials, and its mean over clusters of every metric."""
        bad = [record for record in records if record.status != "ok"]
        recordings = [recording for members in clusters for recording in members]
        means = {} if bad else {name: self.matrix(name, recordings).clustered(clusters) for name in metrics}
        return Entrant(
            label=label,
            seeds=tuple(record.seed for record in records),
            status=bad[0].status if bad else "ok",
            failed=tuple({"seed": one.seed, "status": one.status, "reason": one.reason} for one in bad),
            metrics={name: _or_none(float(matrix.column(label).mean())) for name, matrix in means.items()},
        )


def judge(selection: Selection) -> Judged:
    """Judge the trials of a selection.

    Raises
    ------
    UsageError
        If fewer than two detectors are left, for the others have trials that failed.
    DataError, StoreError
        As `tsadbench.results.trial_result.TrialResult`'s.
    """
    failures = selection.failures
    if len(selection.records) - len(failures) < 2:
        raise UsageError(f"fewer than two detectors can be compared. {' '.join(failures.values())}")
    means = {}
    rows: dict[str, tuple[int, int]] = {}
    for label, records in selection.records.items():
        if label in failures:
            continue
        per_seed = [TrialResult(record, selection.store, selection.data).judged for record in records]
        means[label] = {recording: _means([judged[recording] for judged in per_seed]) for recording in per_seed[0]}
        rows |= {recording: (one.n_rows, one.n_anomalous) for recording, one in per_seed[0].items()}
    return Judged(means, rows)


def _means(per_seed: Sequence[SplitJudgement]) -> dict[str, float | None]:
    means: dict[str, float | None] = {}
    for name in per_seed[0].metrics:
        defined = [value for one in per_seed if (value := one.metrics[name]) is not None]
        means[name] = statistics.fmean(defined) if len(defined) == len(per_seed) else None
    return means


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else value


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else value
