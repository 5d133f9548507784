"""Every selected trial judged on each recording, and on each session, by itself, by its protocol's own judge."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

from tsadbench.base.dataset import LabelledDataset
from tsadbench.base.protocol import Episode, SplitJudgement
from tsadbench.errors import UsageError
from tsadbench.execution.record import Record
from tsadbench.execution.store import Store
from tsadbench.leaderboard.ranking import Row, failures_json, summaries
from tsadbench.leaderboard.shipped import UnitValues, rounded
from tsadbench.results.trial_result import TrialResult, protocol_of
from tsadbench.utils.parameters import JsonValue

# Values that differ by rounding alone are ties.
_DECIMALS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedDetector:
    """One detector of a comparison.

    Parameters
    ----------
    label
        The detector with its parameters.
    seeds
        Of its trials.
    status
        "ok", or the first bad one; it takes no part then.
    failed
        Seed, status and reason of each trial that failed.
    metrics
        By name: the mean over the sessions of the mean over seeds, to describe; None if undefined on one of them.
        Empty if a trial failed.
    stored
        Whether it was made earlier, and ships with the package.
    """

    label: str
    seeds: tuple[int, ...]
    status: str
    failed: tuple[JsonValue, ...]
    metrics: Mapping[str, float | None]
    stored: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """Metrics of detectors by unit: by recording, or by session.

    Parameters
    ----------
    means
        By label, unit and metric: the mean over seeds; None if one of them is undefined. A detector with a failed
        trial is not among them.
    rows
        By unit: how many rows are evaluated, and how many of these are anomalous.
    """

    means: dict[str, Mapping[str, Mapping[str, float | None]]]
    rows: dict[str, tuple[int, int]]

    def values(self, metric: str, units: Sequence[str]) -> pd.DataFrame:
        """Return one metric, [n_units, n_detectors]; NaN where undefined, or the protocol does not score it."""
        columns = {label: [means.get(unit, {}).get(metric) for unit in units] for label, means in self.means.items()}
        return pd.DataFrame(columns, index=list(units), dtype=np.float64).round(_DECIMALS)

    def why_undefined(self, unit: str) -> str:
        """Say why a metric that needs rows of both classes is undefined on a unit."""
        n_rows, n_anomalous = self.rows.get(unit, (0, 0))
        if n_rows == 0:
            return "none of its rows is evaluated"
        if n_anomalous in (0, n_rows):
            return f"none of its evaluated rows is {'anomalous' if n_anomalous == 0 else 'normal'}"
        return "the metric is undefined on it"

    def contender(self, row: Row, metrics: Sequence[str], units: Sequence[str]) -> ComparedDetector:
        """Return a detector of the comparison: its trials, and its mean over units of every metric."""
        means = {name: self.values(name, units)[row.label].to_numpy().mean() for name in metrics} if row.ok else {}
        return ComparedDetector(
            label=row.label,
            seeds=row.seeds,
            status=row.status,
            failed=tuple(failures_json(row.records)),
            metrics={name: None if np.isnan(mean) else float(mean) for name, mean in means.items()},
            stored=row.stored,
        )


def judge_each(
    rows: Sequence[Row],
    store: Store,
    data: LabelledDataset,
    *units: Mapping[str, Sequence[str]],
    shipped: UnitValues | None = None,
) -> tuple[Judged, ...]:
    """Judge the trials of rows on each unit by itself, as if it were a split.

    A UsageError if fewer than two detectors are left, because trials of the others failed. A DataError or a StoreError
    as `tsadbench.results.trial_result.TrialResult`'s.
    """
    if sum(row.ok for row in rows) < 2:
        reasons = " ".join(takes_no_part(row) for row in rows if not row.ok)
        raise UsageError(f"fewer than two detectors can be compared. {reasons}")
    episodes = tuple(protocol_of(rows[0].first).episodes(data.dataset))
    found = tuple(Judged({}, {}) for _ in units)
    for row in rows:
        if row.ok:
            judges = [_judge(record, store, data, episodes, shipped if row.stored else None) for record in row.records]
            for kind, judged in zip(units, found, strict=True):
                per_seed = [judge(kind) for judge in judges]
                if shipped is not None:
                    per_seed = [{name: rounded(one) for name, one in seed.items()} for seed in per_seed]
                judged.means[row.label] = {name: _means([seed[name] for seed in per_seed]) for name in per_seed[0]}
                judged.rows.update({name: (one.n_rows, one.n_anomalous) for name, one in per_seed[0].items()})
    return found


def _judge(
    record: Record, store: Store, data: LabelledDataset, episodes: Sequence[Episode], shipped: UnitValues | None
) -> Callable[[Mapping[str, Sequence[str]]], Mapping[str, SplitJudgement]]:
    if shipped is None:
        return TrialResult(record, store, data, episodes).judge
    return partial(shipped.judge, record)


def takes_no_part(row: Row) -> str:
    """Say what went wrong with a detector whose trials do not all have status "ok"."""
    first = row.failed[0]
    return (
        f"{row.label} takes no part: {first.status} in {len(row.failed)} of {len(row.seeds)} trials (seed "
        f"{first.seed}: {first.reason}); a mean over the seeds that survived is another number. Run it again."
    )


def _means(per_seed: Sequence[SplitJudgement]) -> dict[str, float | None]:
    return {name: summary.mean for name, summary in summaries([judged.metrics for judged in per_seed]).items()}
