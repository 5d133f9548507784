"""Rows of a leaderboard: a detector on a split, mean and spread over its seeds, compared with the floors."""

from __future__ import annotations

import math
import statistics
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, cast

from tsadbench.base.protocol import SplitJudgement
from tsadbench.base.replay import Replay
from tsadbench.base.status import Seal
from tsadbench.errors import UsageError
from tsadbench.execution.record import Record
from tsadbench.execution.replays import weakest
from tsadbench.leaderboard.checks import CheckReports, Verdict
from tsadbench.leaderboard.formatting import number
from tsadbench.utils.arrays import mean_defined
from tsadbench.utils.grouping import grouped
from tsadbench.utils.parameters import JsonValue, nearest

# A detector that is not above the best floor in these has shown nothing. F1 is not among them: where many rows are
# anomalous, the F1 of a floor that flags every row is out of reach for a threshold that keeps to its false alarms.
FLOOR_METRICS = ("auroc", "auprc", "mcc")


@dataclass(frozen=True, slots=True)
class Summary:
    """Mean and standard deviation (ddof 1) over seeds; None if undefined, the second also for one seed."""

    mean: float | None
    std: float | None

    @classmethod
    def of(cls, values: Iterable[float | None]) -> Summary:
        """Summarise one value per seed; if one is undefined, so are the mean and the deviation."""
        seeds = list(values)
        if not seeds or None in seeds:
            return UNDEFINED
        defined = cast("list[float]", seeds)
        return cls(statistics.fmean(defined), statistics.stdev(defined) if len(defined) > 1 else None)

    def text(self, decimals: int = 4) -> str:
        """Return what tables show, ``.7414(.0042)``; a dash if undefined, no brackets for one seed."""
        if self.mean is None:
            return "-"
        return number(self.mean, decimals) + ("" if self.std is None else f"({number(self.std, decimals)})")


UNDEFINED = Summary(None, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One detector on one split, over its seeds.

    Parameters
    ----------
    records
        The trials behind the row, by seed: of one label, data set and protocol.
    split
        The split.
    metrics
        By name, over seeds. Empty if a trial failed: a mean over the seeds that survived is another number.
    below_floor
        Those of `FLOOR_METRICS` in which it is not above the best floor; None if no floor took part.
    stored
        Whether it was made earlier, and comes from a leaderboard that ships with the package.
    verdict
        What reports of ``tsadbench check`` say of its detector.
    diagnostics
        By name, if they were asked for (`tsadbench.analysis.diagnostics`); they take no part in the ranking.
    """

    records: tuple[Record, ...]
    split: str
    metrics: Mapping[str, Summary]
    below_floor: tuple[str, ...] | None = None
    stored: bool = False
    verdict: Verdict = field(default_factory=Verdict)
    diagnostics: Mapping[str, Summary] = field(default_factory=dict)
    # Whether no trial failed, whether those that did not have a score for every evaluated row, and what the replay
    # audits of all trials found at worst. As properties they would look at all trials whenever a large table is sorted
    # or shown.
    ok: bool = field(init=False, compare=False)
    complete: bool = field(init=False, compare=False)
    replay: Replay | None = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ok", not failed(self.records))
        object.__setattr__(self, "complete", not any(judged.coverage < 1 for judged in self._judged if judged.n_rows))
        object.__setattr__(self, "replay", weakest(record.replay for record in self.records))

    @property
    def first(self) -> Record:
        """The trial of the lowest seed: all trials have detector, parameters, data set and protocol in common."""
        return self.records[0]

    @property
    def label(self) -> str:
        """The detector with its parameters."""
        return self.first.label

    @property
    def dataset(self) -> str:
        """Name of the data set."""
        return self.first.dataset

    @property
    def protocol(self) -> str:
        """Name of the protocol, with its parameters."""
        return self.first.protocol

    @property
    def rules(self) -> str:
        """The protocol with the version of its rules, ``strict 2``: a table's rows have them in common."""
        return self.first.rules

    @property
    def floor(self) -> bool:
        """Whether it is a floor."""
        return self.first.floor

    @property
    def leaky(self) -> str:
        """What the detector learns that it must not: a published leak, switched on to compare; else empty."""
        return self.first.leaky

    @property
    def forgets(self) -> bool:
        """Whether its scores were shown not to hang on how a recording began, or were never tried."""
        return self.replay is None or self.replay.forgets

    @property
    def calibrated(self) -> bool:
        """Whether its own scores of training rows are of the size of fresh ones, as far as that was compared."""
        return self.replay is None or self.replay.calibrated

    @property
    def sound(self) -> bool:
        """Whether it may be the best in anything: it scored every row, uses no leak, and forgets."""
        return self.complete and self.comparable

    @property
    def comparable(self) -> bool:
        """Whether it may be compared with others: it uses no leak, and forgets."""
        return not self.leaky and self.forgets

    @property
    def pretrained_on(self) -> tuple[str, ...]:
        """What its detector was trained on before its fit."""
        return tuple(dict.fromkeys(name for record in self.records for name in record.pretrained_on))

    @property
    def seal(self) -> Seal:
        """Seal "sealed" if the kernel sealed the boxes of all its trials, else "guarded"."""
        return "sealed" if all(record.seal == "sealed" for record in self.records) else "guarded"

    @property
    def seal_reasons(self) -> tuple[str, ...]:
        """Why it is guarded; empty if no record says."""
        reasons = (record.seal_reason for record in self.records if record.seal == self.seal)
        return tuple(dict.fromkeys(reason for reason in reasons if reason))

    @property
    def smoothing(self) -> int:
        """Over how many rows its scores were averaged before they were judged."""
        return self.first.smoothing

    @property
    def seeds(self) -> tuple[int, ...]:
        """The trials' seeds, in order."""
        return tuple(record.seed for record in self.records)

    @property
    def failed(self) -> tuple[Record, ...]:
        """The trials that failed."""
        return failed(self.records)

    @property
    def status(self) -> str:
        """Status "ok", or that of the first trial that failed."""
        return "ok" if self.ok else self.failed[0].status

    @property
    def failure_count(self) -> str:
        """How many trials failed and how, ``timeout in 1 of 5``."""
        return f"{self.status} in {len(self.failed)} of {len(self.records)}"

    @property
    def n_rows(self) -> int | None:
        """How many rows of the data are evaluated; None if a trial failed."""
        return self._judged[0].n_rows if self.ok else None

    @property
    def n_anomalous(self) -> int | None:
        """How many of these are anomalous; None if a trial failed."""
        return self._judged[0].n_anomalous if self.ok else None

    @property
    def coverage(self) -> float | None:
        """Smallest share of evaluated rows that have a score; None if a trial failed."""
        return min(judged.coverage for judged in self._judged) if self.ok else None

    @property
    def _judged(self) -> list[SplitJudgement]:
        return _judged(self.records, self.split)

    @property
    def entities(self) -> dict[str, dict[str, Summary]]:
        """Metrics of each entity over seeds, by its name; empty if one model scored all rows, or a trial failed."""
        first, *others = [judged.entities for judged in self._judged if self.ok] or [{}]
        return {name: summaries([metrics, *(one.get(name, {}) for one in others)]) for name, metrics in first.items()}

    @property
    def entity_spread(self) -> dict[str, float | None]:
        """Standard deviation (ddof 1) of each metric over the entities for which it is defined; None for only one.

        It is that of each entity's mean over seeds. Empty if one model scored all rows.
        """
        entities = self.entities.values()
        names = self.metrics if entities else ()
        means = {name: [one[name].mean for one in entities if name in one] for name in names}
        return {name: Summary.of(mean for mean in found if mean is not None).std for name, found in means.items()}

    @property
    def fit_seconds(self) -> float | None:
        """Mean wall-clock seconds of a fit."""
        return mean_defined(record.fit_seconds for record in self.records)

    @property
    def score_seconds(self) -> float | None:
        """Mean wall-clock seconds of scoring training and test recordings."""
        return mean_defined(record.score_seconds for record in self.records)

    @property
    def peak_memory_mib(self) -> float | None:
        """Largest resident size of the process that held the detector."""
        return max((r.peak_memory_mib for r in self.records if r.peak_memory_mib is not None), default=None)

    @property
    def rows_per_second(self) -> float | None:
        """Training and test rows scored per second of wall clock: the mean over seeds."""
        return Summary.of(record.rows_per_second for record in self.records).mean

    @property
    def threads(self) -> tuple[int, ...]:
        """The numbers of threads that its trials ran with, in order: one, unless seeds were run differently."""
        return tuple(sorted({record.threads for record in self.records}))

    @classmethod
    def of_frame(cls, row: Mapping[str, Any]) -> Row:
        """Return a row of `tsadbench.leaderboard.frame.rows` as an object."""
        names = [
            name.removesuffix("_std") for name in row if name.endswith("_std") and not name.endswith("_entity_std")
        ]
        numbers = {name: Summary(*(_known(row[f"{name}_{what}"]) for what in ("mean", "std"))) for name in names}
        reports = tuple({one.identity: one for found in row["reports"] for one in found}.values())
        own = [name for name in numbers if not name.startswith("diagnostic_")] if row["ok"] else []
        return cls(
            records=tuple(row["records"]),
            split=row["split"],
            metrics={name: numbers[name] for name in own if name in row["records"][0].splits[row["split"]].metrics},
            below_floor=row["below_floor"],
            stored=row["stored"],
            verdict=Verdict(row["checked"], row["failed_checks"], reports),
            diagnostics={
                name.removeprefix("diagnostic_"): one
                for name, one in numbers.items()
                if name.startswith("diagnostic_") and one.mean is not None
            },
        )


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def failed(records: Iterable[Record]) -> tuple[Record, ...]:
    """Return the trials that failed."""
    return tuple([record for record in records if record.status != "ok"])


def failures_json(records: Iterable[Record]) -> list[JsonValue]:
    """Return seed, status and reason of each trial that failed."""
    return [{"seed": record.seed, "status": record.status, "reason": record.reason} for record in failed(records)]


def replay_json(replay: Replay | None) -> JsonValue:
    """Return what a replay audit found, and the marks that it gives a row; None if there was none."""
    if replay is None:
        return None
    found = {name: _finite(value) for name, value in asdict(replay).items()}
    return {**found, "marks": list(replay.marks)}


def ranked_rows(
    records: Sequence[Record], split: str, stored: Container[str] = (), reports: CheckReports | None = None
) -> list[Row]:
    """Return the rows of one table: by mean AUPRC, then floors, failures last.

    Parameters
    ----------
    records
        Of one data set and protocol, one per trial.
    split
        The split that the rows show.
    stored
        Trials that were made earlier, and ship with the package.
    reports
        Of checks of their detectors; None: there are none.
    """
    measured = [
        (trials, {} if failed(trials) else summaries([judged.metrics for judged in _judged(trials, split)]))
        for trials in by_label(records).values()
        if failed(trials) or _judged(trials, split)  # a card may have got its splits between two trials
    ]
    known = CheckReports() if reports is None else reports
    best = _best_of_floors([metrics for trials, metrics in measured if trials[0].floor and metrics])
    rows = [
        Row(
            records=trials,
            split=split,
            metrics=metrics,
            below_floor=None if best is None else () if trials[0].floor else _below(metrics, best),
            stored=trials[0].trial in stored,
            verdict=known.verdict(trials),
        )
        for trials, metrics in measured
    ]
    return sorted(
        rows,
        key=lambda row: (not row.ok, row.floor, -_value(row.metrics, "auprc"), row.label),
    )


def splits_of(records: Iterable[Record]) -> tuple[str, ...]:
    """Return the splits that records have metrics of, in their order."""
    return tuple(dict.fromkeys(split for record in records for split in record.splits))


def check_split(split: str, records: Iterable[Record]) -> None:
    """Raise a UsageError if records have metrics, but none of this split."""
    splits = splits_of(records)
    if splits and split not in splits:
        raise UsageError(f"there is no split {split!r} in these records{nearest(split, splits)}")


def by_label(records: Iterable[Record]) -> dict[str, tuple[Record, ...]]:
    """Return the trials of each label, by seed."""
    return grouped(sorted(records, key=lambda record: record.seed), lambda record: record.label)


def by_table(rows: Iterable[Row]) -> dict[tuple[str, str, str], tuple[Row, ...]]:
    """Return the rows of each (data set, protocol with its version, split), in the order of their first."""
    return grouped(rows, lambda row: (row.dataset, row.rules, row.split))


def _judged(records: Iterable[Record], split: str) -> list[SplitJudgement]:
    return [record.splits[split] for record in records if split in record.splits]


def summaries(seeds: Sequence[Mapping[str, float | None]]) -> dict[str, Summary]:
    """Return each number over seeds, by name; one that is undefined for a seed is undefined."""
    return {name: Summary.of(values.get(name) for values in seeds) for name in seeds[0]}


def _best_of_floors(floors: Sequence[Mapping[str, Summary]]) -> dict[str, float] | None:
    return {name: max(_value(metrics, name) for metrics in floors) for name in FLOOR_METRICS} if floors else None


def _below(metrics: Mapping[str, Summary], best: Mapping[str, float]) -> tuple[str, ...]:
    """Return the metrics in which a detector is not above the best floor; none if it failed."""
    if not metrics:
        return ()
    return tuple(name for name in FLOOR_METRICS if _value(metrics, name) <= best[name] > -math.inf)


def _value(metrics: Mapping[str, Summary], metric: str) -> float:
    summary = metrics.get(metric)
    return -math.inf if summary is None or summary.mean is None else summary.mean


def summaries_json(values: Mapping[str, Summary]) -> dict[str, JsonValue]:
    """Return means and deviations by name."""
    return {name: {"mean": summary.mean, "std": summary.std} for name, summary in values.items()}


def _finite(value: JsonValue) -> JsonValue:
    """Return None for a number that JSON does not have."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
