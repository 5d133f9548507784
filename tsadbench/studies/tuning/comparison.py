"""Defaults, tuned parameters, and an oracle's choice side by side, to see whether tuning without labels helps."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from scipy.stats import spearmanr

from tsadbench.base.dataset import LabelledDataset
from tsadbench.errors import UsageError
from tsadbench.execution.plan import Plan, make_plan
from tsadbench.execution.record import Record
from tsadbench.execution.request import RunRequest
from tsadbench.sandbox.describing import describe
from tsadbench.tuning.objective import OBJECTIVES, Objective
from tsadbench.tuning.storage import storage_of
from tsadbench.tuning.study import run_study
from tsadbench.tuning.study_result import StudyObserver, StudyResult
from tsadbench.tuning.task import Settings, Task, make_task
from tsadbench.tuning.tuned_file import label_at, provenance, write_tuned
from tsadbench.utils.grouping import grouped
from tsadbench.utils.parameters import parse_label

# Cheap ones: the whole page takes about an hour on one core.
DETECTORS = ("t2-q", "isolation-forest", "mset", "vanilla-ae[epochs=10]")
DATASETS = ("skab", "tep", "pumploop")
# The metric and the split by which the oracle chooses.
CRITERION, SPLIT = "auprc", "overall"

WatchSearch: TypeAlias = Callable[[Task], StudyObserver]


@dataclass(frozen=True, slots=True, eq=False)
class JudgedStudy:
    """A study and what its points are worth on the test recordings.

    Parameters
    ----------
    task, result
        What was tuned, what was found.
    label
        Label of the best point.
    agreement
        Spearman's correlation, over complete points, between the objective (its sign chosen so that larger is better)
        and the test AUPRC of one seed; None if either is constant or there are fewer than three points.
    """

    task: Task
    result: StudyResult
    label: str
    agreement: float | None


@dataclass(frozen=True, slots=True, eq=False)
class TuningComparison:
    """One detector on one data set.

    Parameters
    ----------
    dataset
        Name of the data set.
    default, oracle
        Labels of the defaults and of the oracle's choice.
    studies
        By objective.
    n_points
        Number of distinct points that the oracle could choose from, including the defaults.
    records
        By label: one per seed, all "ok".
    """

    dataset: str
    default: str
    oracle: str
    studies: Mapping[Objective, JudgedStudy]
    n_points: int
    records: Mapping[str, tuple[Record, ...]]

    def mean(self, label: str, metric: str = CRITERION) -> float:
        """Return a metric's mean over seeds."""
        return statistics.fmean(self.values(label, metric))

    def gain(self, label: str) -> float:
        """Return by how much the mean AUPRC exceeds that of the defaults."""
        return self.mean(label) - self.mean(self.default)

    def values(self, label: str, metric: str) -> list[float]:
        """Return a metric by seed."""
        return [value_on_test(record, metric) for record in self.records[label]]


def compare(
    detector: str,
    data: LabelledDataset,
    settings: Settings,
    *,
    seeds: int,
    out: Path,
    run: Callable[[Plan], Sequence[Record]],
    watch: WatchSearch,
    objectives: Sequence[Objective] = OBJECTIVES,
) -> TuningComparison:
    """Tune a detector by each objective, then run defaults, winners and the oracle's choice.

    The oracle sees what no user sees. Every point of the studies is run on the test recordings with one seed. The best
    by test AUPRC joins the defaults and the tuned parameters; the best of these over all seeds is the oracle's choice.

    Parameters
    ----------
    detector
        As on the command line.
    data
        The data set; the searches get its training recordings only.
    settings
        Settings of the studies; their objective is replaced by each in turn.
    seeds
        Number of seeds of the runs on the test recordings.
    out
        Folder of the studies.
    run
        Runs a plan, such as ``partial(run_plan, store=store)``: the trials on the test recordings.
    watch
        Returns an observer of a search.
    objectives
        The objectives to take, as far as the detector offers them.

    Raises
    ------
    UsageError
        If the detector offers none of the objectives, a study has no complete point, or a run fails.
    """
    plan = make_plan(RunRequest(detectors=[detector], datasets=[data], seeds=1, floors=False))
    tasks = [make_task(plan, replace(settings, objective=name)) for name in _offered(detector, objectives)]
    results = [run_study(task, storage_of(task, out, None), watch(task)) for task in tasks]
    winners = [_winner(task, result) for task, result in zip(tasks, results, strict=True)]

    def judged(labels: Sequence[str], n_seeds: int, tuned_file: Path | None = None) -> dict[str, tuple[Record, ...]]:
        sha256, tuned = (None, {}) if tuned_file is None else provenance(tuned_file)
        request = RunRequest(
            detectors=list(labels),
            datasets=[data],
            seeds=n_seeds,
            jobs=settings.jobs,
            floors=False,
            contributions=False,
            config_hash=sha256,
            tuned=tuned,
        )
        return grouped(run(make_plan(request)), lambda record: record.label)

    studies = list(zip(tasks, results, winners, strict=True))
    for task, result, winner in studies:  # first, so that their records name the study that they come from
        judged([winner], seeds, write_tuned(task, result, out))
    default = plan.trials[0].contender.label
    points = {label_at(task, point.parameters) for task, result, _ in studies for point in result.points}
    once = judged(sorted(points | {default}), 1)
    values = {label: value_on_test(records[0], CRITERION) for label, records in once.items()}
    promising = max(sorted(values), key=values.__getitem__)
    records = judged(list(dict.fromkeys([default, *winners, promising])), seeds)
    means = {
        label: statistics.fmean(value_on_test(record, CRITERION) for record in of_label)
        for label, of_label in records.items()
    }
    return TuningComparison(
        dataset=data.dataset.name,
        default=default,
        oracle=max(means, key=means.__getitem__),
        studies={
            task.settings.objective: JudgedStudy(task, result, winner, _agreement(task, result, values))
            for task, result, winner in studies
        },
        n_points=len(values),
        records=records,
    )


def value_on_test(record: Record, metric: str) -> float:
    """Return a metric of a record over all test recordings.

    Raises
    ------
    UsageError
        If the trial failed, or the metric is undefined.
    """
    value = record.splits[SPLIT].metrics[metric] if record.status == "ok" else None
    if value is None:
        raise UsageError(f"{record.label}, seed {record.seed} on {record.dataset}: {record.status}, no {metric}")
    return value


def _offered(detector: str, objectives: Sequence[Objective]) -> list[Objective]:
    offers = describe(parse_label(detector).target).offers_held_out_loss
    offered = [objective for objective in objectives if offers or objective == "injection"]
    if not offered:
        raise UsageError(
            f"{detector} has no held-out loss: it neither forecasts nor reconstructs rows; ask for injection"
        )
    return offered


def _winner(task: Task, result: StudyResult) -> str:
    if result.best is None:
        raise UsageError(f"study {task.study} has no complete point")
    return label_at(task, result.best.parameters)


def _agreement(task: Task, result: StudyResult, values: Mapping[str, float]) -> float | None:
    sign = 1.0 if result.maximise else -1.0
    pairs = {
        label: sign * point.value
        for point in result.points
        if point.value is not None and (label := label_at(task, point.parameters)) in values
    }
    objective, test = list(pairs.values()), [values[label] for label in pairs]
    if len(pairs) < 3 or len(set(objective)) == 1 or len(set(test)) == 1:
        return None
    return float(spearmanr(objective, test).statistic)
