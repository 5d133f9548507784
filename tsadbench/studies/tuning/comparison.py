"""Defaults, tuned parameters, and an oracle's choice side by side, to see whether tuning without labels helps."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from tsadbench.base.dataset import LabelledDataset
from tsadbench.errors import UsageError
from tsadbench.execution.plan import Plan, make_plan
from tsadbench.execution.record import Record
from tsadbench.execution.run_store import Store
from tsadbench.execution.runner import Observer as RunObserver
from tsadbench.execution.runner import run_plan
from tsadbench.registry import load_detector
from tsadbench.tuning.objective import OBJECTIVES, Objective
from tsadbench.tuning.outcome import Outcome
from tsadbench.tuning.place import result_file, storage_of
from tsadbench.tuning.process import Observer, search
from tsadbench.tuning.result import label_at, provenance, write_tuned
from tsadbench.tuning.task import Settings, Task, make_task
from tsadbench.utils.parameters import parse_label

# What the oracle goes by, and where.
CRITERION, SPLIT = "auprc", "overall"

Watch: TypeAlias = Callable[[Task], Observer]
WatchRuns: TypeAlias = Callable[[Plan], RunObserver]


@dataclass(frozen=True, slots=True, eq=False)
class Study:
    """A study and what its points are worth on the test recordings.

    Parameters
    ----------
    task, outcome
        What was tuned, what was found.
    label
        Of the best point.
    agreement
        Spearman's correlation, over complete points, between the objective (turned so that larger is better) and the
        test AUPRC of one seed; None where either is constant or there are fewer than three points.
    """

    task: Task
    outcome: Outcome
    label: str
    agreement: float | None


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """One detector on one data set.

    Parameters
    ----------
    dataset
        The data set's name.
    default, oracle
        Labels of the defaults and of the oracle's choice.
    studies
        By objective.
    n_points
        Distinct points that the oracle could choose from, the defaults included.
    records
        By label: one a seed, all "ok".
    """

    dataset: str
    default: str
    oracle: str
    studies: Mapping[Objective, Study]
    n_points: int
    records: Mapping[str, tuple[Record, ...]]

    def mean(self, label: str, metric: str = CRITERION) -> float:
        """Return a metric's mean over seeds."""
        return statistics.fmean(self.values(label, metric))

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
    store: Store,
    watch: Watch,
    watch_runs: WatchRuns,
    objectives: Sequence[Objective] = OBJECTIVES,
) -> Comparison:
    """Tune a detector by each objective, then run defaults, winners and the oracle's choice.

    The oracle sees what no user sees: every point of the studies is run on the test recordings with one seed, and the
    best of them by test AUPRC joins the defaults and the tuned ones, of which the best over all seeds is the oracle's.

    Parameters
    ----------
    detector
        As on the command line.
    data
        The data set; only training recordings go to the studies.
    settings
        Of the studies; the objective is every one in turn.
    seeds
        Of the runs on the test recordings.
    out, store
        Where studies, and where runs are kept.
    watch, watch_runs
        Give whoever watches a search, and a plan's run.
    objectives
        Those wanted, of which a detector may not offer all.

    Raises
    ------
    UsageError
        If a study has no complete point, or a run fails.
    """
    plan = make_plan([detector], dataset=data, seeds=1, floors=False)
    tasks = [make_task(plan, _with_objective(settings, one)) for one in _offered(detector, objectives)]
    found = {task.settings.objective: (task, _searched(task, plan, out, watch)) for task in tasks}

    def run(labels: Sequence[str], n_seeds: int, file: Path | None = None) -> dict[str, tuple[Record, ...]]:
        wanted = make_plan(labels, dataset=data, seeds=n_seeds, floors=False, contributions=False)
        if file is not None:
            sha256, tuned = provenance(file)
            wanted = replace(wanted, config_hash=sha256, tuning=tuned)
        return _by_label(run_plan(wanted, store, watch_runs(wanted), jobs=settings.jobs))

    winners = {objective: _winner(task, outcome) for objective, (task, outcome) in found.items()}
    for objective, (task, _) in found.items():
        run([winners[objective]], seeds, result_file(task, out))  # first, so that their records say where they are from
    default = plan.trials[0].contender.label
    labels = {label_at(task, point.parameters) for task, outcome in found.values() for point in outcome.points}
    once = run(sorted(labels | {default}), 1)
    values = {label: value_on_test(of_label[0], CRITERION) for label, of_label in once.items()}
    promising = max(sorted(values), key=values.__getitem__)
    records = run(list(dict.fromkeys([default, *winners.values(), promising])), seeds)
    means = {label: statistics.fmean(value_on_test(one, CRITERION) for one in records[label]) for label in records}
    return Comparison(
        dataset=data.dataset.name,
        default=default,
        oracle=max(means, key=means.__getitem__),
        studies={
            objective: Study(task, outcome, winners[objective], _agreement(task, outcome, values))
            for objective, (task, outcome) in found.items()
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
    offers = load_detector(parse_label(detector).target).offers_held_out_loss()
    found = [objective for objective in objectives if offers or objective == "injection"]
    if not found:
        raise UsageError(
            f"{detector} has no held-out loss: it neither forecasts nor gives back rows; ask for injection"
        )
    return found


def _with_objective(settings: Settings, objective: Objective) -> Settings:
    return replace(settings, objective=objective)


def _searched(task: Task, plan: Plan, out: Path, watch: Watch) -> Outcome:
    url = storage_of(task, out, None)
    outcome = search(task, url, watch(task))
    write_tuned(result_file(task, out), task, plan, outcome, url)
    return outcome


def _winner(task: Task, outcome: Outcome) -> str:
    if outcome.best is None:
        raise UsageError(f"study {task.study} has no complete point")
    return label_at(task, outcome.best.parameters)


def _by_label(records: Sequence[Record]) -> dict[str, tuple[Record, ...]]:
    found: dict[str, list[Record]] = {}
    for record in records:
        found.setdefault(record.label, []).append(record)
    return {label: tuple(of_label) for label, of_label in found.items()}


def _agreement(task: Task, outcome: Outcome, values: Mapping[str, float]) -> float | None:
    from scipy.stats import spearmanr

    sign = 1.0 if outcome.maximise else -1.0
    pairs = {
        label: sign * point.value
        for point in outcome.points
        if point.value is not None and (label := label_at(task, point.parameters)) in values
    }
    objective, test = list(pairs.values()), [values[label] for label in pairs]
    if len(pairs) < 3 or len(set(objective)) == 1 or len(set(test)) == 1:
        return None
    return float(spearmanr(objective, test).statistic)
