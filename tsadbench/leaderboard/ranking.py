"""One row of a leaderboard: a detector on a split, mean and spread over its seeds, held against the floors."""

from __future__ import annotations

import math
import statistics
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tsadbench.base.protocol import Threshold
from tsadbench.execution.record import Record
from tsadbench.utils.markdown import number
from tsadbench.utils.parameters import JsonValue

# A detector that is not above the best floor in these has shown nothing.
FLOOR_METRICS = ("auroc", "auprc", "prac_f1")
_THRESHOLD_FIELDS = ("value", "method", "t", "level", "q", "n", "excesses", "gamma", "sigma", "status")


@dataclass(frozen=True, slots=True)
class Summary:
    """A number over seeds: its mean, and its standard deviation (ddof 1; None for one seed)."""

    mean: float | None
    std: float | None

    @classmethod
    def of(cls, values: Iterable[float | None]) -> Summary:
        """Summarise one value per seed; if one is undefined, so are the mean and the deviation."""
        seeds = list(values)
        defined = [value for value in seeds if value is not None]
        if not defined or len(defined) < len(seeds):
            return cls(None, None)
        return cls(statistics.fmean(defined), statistics.stdev(defined) if len(defined) > 1 else None)

    def text(self, decimals: int = 4) -> str:
        """Return what tables show, ``.7414(.0042)``; a dash if undefined, no brackets for one seed."""
        if self.mean is None:
            return "-"
        return number(self.mean, decimals) + ("" if self.std is None else f"({number(self.std, decimals)})")


UNDEFINED = Summary(None, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One detector on one split, over its seeds: what ``design.md`` calls a row of the machine-readable output.

    Parameters
    ----------
    floor
        Whether it is a floor.
    status
        "ok", or the first bad one; metrics are None then, for a mean over the seeds that survived is another number.
    failed
        Seed, status and reason of each trial that failed.
    below_floor
        Those of AUROC, AUPRC and Prac-F1 in which it is not above the best floor; None where no floor took part.
    leaky
        What the detector learns that it must not: a published leak, switched on to compare; empty where nothing.
    stored
        Whether it was made earlier, and comes from a leaderboard that ships with the package.
    records
        The trials behind the row.
    diagnostics
        By name, where they were asked for (`tsadbench.analysis.diagnostics`); they take no part in the ranking.
    """

    detector: str
    label: str
    family: str
    parameters: Mapping[str, JsonValue]
    floor: bool
    dataset: str
    protocol: str
    split: str
    seeds: tuple[int, ...]
    status: str
    failed: tuple[dict[str, JsonValue], ...]
    n_rows: int | None
    n_anomalous: int | None
    coverage: float | None
    look_ahead: int
    below_floor: tuple[str, ...] | None
    metrics: Mapping[str, Summary]
    records: tuple[Record, ...]
    leaky: str = ""
    stored: bool = False
    diagnostics: Mapping[str, Summary] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether all of its trials are."""
        return self.status == "ok"

    @property
    def fit_seconds(self) -> float | None:
        """Mean wall-clock seconds of a fit."""
        return _mean([record.fit_seconds for record in self.records])

    @property
    def score_seconds(self) -> float | None:
        """Mean wall-clock seconds of scoring training and test recordings."""
        return _mean([record.score_seconds for record in self.records])

    @property
    def peak_memory_mib(self) -> float | None:
        """Largest resident size of the process that held the detector."""
        return max((r.peak_memory_mib for r in self.records if r.peak_memory_mib is not None), default=None)

    def to_json(self) -> dict[str, JsonValue]:
        """Return the row as ``design.md`` lays it down.

        One that is leaky says of what in ``leaky``; one that is stored has ``stored`` and its first trial's
        ``manifest``; one with ``diagnostics`` has them as it has metrics.
        """
        below: JsonValue = None if self.below_floor is None else list(self.below_floor)
        return {
            "detector": self.detector,
            "label": self.label,
            "family": self.family,
            "parameters": dict(self.parameters),
            "dataset": self.dataset,
            "protocol": self.protocol,
            "split": self.split,
            "seeds": list(self.seeds),
            "status": self.status,
            "failed": list(self.failed),
            "n_rows": self.n_rows,
            "n_anomalous": self.n_anomalous,
            "coverage": self.coverage,
            "look_ahead": self.look_ahead,
            "below_floor": below,
            "metrics": _summaries_json(self.metrics),
            "threshold": [
                {"seed": record.seed, "episode": one.episode, **_threshold_json(one.threshold)}
                for record in self.records
                for one in record.thresholds
            ],
            "seconds": {"fit": self.fit_seconds, "score": self.score_seconds},
            "peak_memory_mib": self.peak_memory_mib,
            **({"diagnostics": _summaries_json(self.diagnostics)} if self.diagnostics else {}),
            **({"leaky": self.leaky} if self.leaky else {}),
            **({"stored": True, "manifest": dict(self.records[0].manifest)} if self.stored else {}),
        }


def ranked_rows(records: Sequence[Record], split: str, stored: Container[str] = ()) -> list[Row]:
    """Return the rows of one table: by mean AUPRC, floors after the detectors, failures last.

    Parameters
    ----------
    records
        Of one data set and protocol, one a trial.
    split
        The split that the rows show.
    stored
        Trials that were made earlier, and ship with the package.
    """
    by_label: dict[str, list[Record]] = {}
    for record in records:
        by_label.setdefault(record.label, []).append(record)
    rows = [_row(sorted(of_label, key=lambda record: record.seed), split, stored) for of_label in by_label.values()]
    return sorted(_with_floors(rows), key=lambda row: (not row.ok, row.floor, -_value(row, "auprc"), row.label))


def _row(records: Sequence[Record], split: str, stored: Container[str]) -> Row:
    first = records[0]
    bad = [record for record in records if record.status != "ok"]
    judged = [record.splits[split] for record in records if split in record.splits]
    return Row(
        detector=first.detector,
        label=first.label,
        family=first.family,
        parameters=first.parameters,
        floor=first.floor,
        dataset=first.dataset,
        protocol=first.protocol,
        split=split,
        seeds=tuple(record.seed for record in records),
        status=bad[0].status if bad else "ok",
        failed=tuple({"seed": one.seed, "status": one.status, "reason": one.reason} for one in bad),
        n_rows=None if bad else judged[0].n_rows,
        n_anomalous=None if bad else judged[0].n_anomalous,
        coverage=None if bad else min(one.coverage for one in judged),
        look_ahead=first.look_ahead,
        below_floor=None,
        metrics={} if bad else summaries([one.metrics for one in judged]),
        records=tuple(records),
        leaky=first.leaky,
        stored=first.trial in stored,
    )


def summaries(seeds: Sequence[Mapping[str, float | None]]) -> dict[str, Summary]:
    """Return each number over seeds, by name; one that is undefined for a seed is undefined."""
    return {name: Summary.of(values[name] for values in seeds) for name in seeds[0]}


def _with_floors(rows: list[Row]) -> list[Row]:
    floors = [row for row in rows if row.floor and row.ok]
    if not floors:
        return rows
    best = {name: max(_value(floor, name) for floor in floors) for name in FLOOR_METRICS}
    return [replace(row, below_floor=_below(row, best)) for row in rows]


def _below(row: Row, best: Mapping[str, float]) -> tuple[str, ...]:
    if row.floor or not row.ok:
        return ()
    return tuple(name for name in FLOOR_METRICS if _value(row, name) <= best[name] > -math.inf)


def _value(row: Row, metric: str) -> float:
    summary = row.metrics.get(metric)
    return -math.inf if summary is None or summary.mean is None else summary.mean


def _summaries_json(found: Mapping[str, Summary]) -> dict[str, JsonValue]:
    return {name: {"mean": one.mean, "std": one.std} for name, one in found.items()}


def _threshold_json(threshold: Threshold) -> dict[str, JsonValue]:
    return {name: getattr(threshold, name) for name in _THRESHOLD_FIELDS}


def _mean(values: Sequence[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return statistics.fmean(present) if present else None
