"""One search: Optuna proposes points and keeps them in a storage, boxes measure them."""

from __future__ import annotations

import statistics
import threading
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from tsadbench.base.search_space import Choice, Space
from tsadbench.errors import UsageError
from tsadbench.sandbox import BoxFailure, Limits
from tsadbench.sandbox.limits import Interrupted
from tsadbench.tuning.objective import Objective
from tsadbench.tuning.task import Task
from tsadbench.utils.extras import extra

with extra("tsadbench tune", "tune"):
    import optuna
    from optuna.storages import RDBStorage
    from optuna.trial import FrozenTrial, TrialState
    from sqlalchemy.exc import SQLAlchemyError

_FINISHED = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL)


@dataclass(frozen=True, slots=True)
class Point:
    """One point of a search: values of the searched parameters, and what they reached."""

    number: int
    state: str  # "complete", "pruned", "interrupted", or the status of a failure ("timeout", "error", ...)
    parameters: Mapping[str, object]
    value: float | None  # of the objective; None unless complete
    parts: Mapping[str, float]  # means over the folds measured: of the loss, or of each kind of fault
    reason: str = ""  # why it failed


@dataclass(frozen=True, slots=True)
class StudyResult:
    """All points of a study that have ended, in order."""

    points: tuple[Point, ...]
    maximise: bool  # whether a larger value is better

    @property
    def best(self) -> Point | None:
        """The complete point with the best value, the first of equals; None if no point is complete."""
        complete = [(point.value, point) for point in self.points if point.value is not None]
        sign = -1.0 if self.maximise else 1.0
        return min(complete, key=lambda one: sign * one[0])[1] if complete else None

    @property
    def counts(self) -> dict[str, int]:
        """Number of points in each state."""
        return dict(Counter(point.state for point in self.points))

    @property
    def n_counted(self) -> int:
        """Number of points that count as done: all but the interrupted ones."""
        return len(self.points) - self.counts.get("interrupted", 0)

    def at(self, parameters: Mapping[str, object]) -> Point | None:
        """Return the first complete point with these parameters."""
        return next((one for one in self.points if one.value is not None and one.parameters == parameters), None)


class StudyObserver(Protocol):
    """Receives progress events of a search, possibly from several threads."""

    def step(self, number: int, done: int, of: int) -> None:
        """Note that ``done`` of a point's ``of`` folds are measured."""

    def ended(self, number: int, result: StudyResult) -> None:
        """Note that a point has ended, and what the study holds now."""


def run_study(task: Task, storage: str, observer: StudyObserver) -> StudyResult:
    """Search until the study holds as many points as asked for, and return all of them.

    A UsageError if the storage cannot be opened, or its study was begun with other settings. A KeyboardInterrupt if the
    user interrupts: points in progress end and do not count, all others are kept.
    """
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    settings = task.settings
    objective = Objective(
        settings.objective, task.folds(), seed=settings.seed, threads=settings.threads, forbidden=task.forbidden
    )
    study = optuna.create_study(
        storage=_opened(storage),
        study_name=task.study,
        pruner=optuna.pruners.MedianPruner(n_startup_trials=5),
        direction="maximize" if objective.maximise else "minimize",
        load_if_exists=True,
    )
    _require_same(study, task)
    # A resumed study must not repeat its first draws.
    study.sampler = optuna.samplers.TPESampler(seed=settings.seed + len(study.trials))
    found = _result(study)
    if all(space.holds(task.defaults[name]) for name, space in task.space.items()):
        study.enqueue_trial(dict(task.defaults), skip_if_exists=found.n_counted > 0)  # interrupted defaults come again
    stop = threading.Event()

    def measure(trial: optuna.Trial) -> float:
        return _measure(trial, task, objective, Limits(settings.timeout, stop=stop), observer)

    def ended(study: optuna.Study, trial: FrozenTrial) -> None:
        result = _result(study)
        observer.ended(trial.number, result)
        if result.n_counted >= settings.trials:  # other machines may have helped
            study.stop()

    def search(missing: int) -> None:
        # The first alone: several threads could take the same point from SQLite's queue.
        for n_trials, n_jobs in ((1, 1), (missing - 1, settings.jobs)):
            study.optimize(measure, n_trials, n_jobs=n_jobs, catch=(BoxFailure,), callbacks=[ended])

    if found.n_counted < settings.trials:
        # In a thread, because Optuna answers Ctrl-C by waiting for the points in progress.
        with ThreadPoolExecutor(1) as worker:
            searching = worker.submit(search, settings.trials - found.n_counted)
            try:
                searching.result()
            except BaseException:
                stop.set()
                raise
    return _result(study)


def _opened(url: str) -> RDBStorage:
    try:
        return RDBStorage(url)
    except ImportError as error:
        raise UsageError(f"--storage: the driver of this database is not installed ({error})") from error
    except (SQLAlchemyError, RuntimeError, ValueError) as error:
        first = str(error.__cause__ or error).splitlines()[0]
        raise UsageError(
            f"--storage: cannot be opened ({first}); expected a URL like sqlite:///studies.sqlite3 or "
            "postgresql://user:password@host/database"
        ) from error


def _require_same(study: optuna.Study, task: Task) -> None:
    """Raise a UsageError if values of the study's points cannot be compared with new ones."""
    now = task.determinants()
    begun = study.user_attrs.get("task")
    if begun is None:
        study.set_user_attr("task", now)
    elif begun != now:
        other = ", ".join(name for name, value in now.items() if begun.get(name) != value)
        raise UsageError(f"study {task.study} was begun with another {other}; begin a new one in another --out")


def _measure(trial: optuna.Trial, task: Task, objective: Objective, limits: Limits, observer: StudyObserver) -> float:
    """Return the mean over folds and kinds of fault; Optuna may end the trial after each fold."""
    point = {name: _suggested(trial, name, space) for name, space in task.space.items()}
    trial.set_user_attr("parameters", point)
    for earlier in trial.study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)):
        if earlier.user_attrs["parameters"] == point and earlier.value is not None:
            trial.set_user_attr("parts", earlier.user_attrs["parts"])
            return earlier.value  # the faults and the seed are the same, so is the value
    folds: list[dict[str, float]] = []
    try:
        for number in range(objective.n_folds):
            folds.append(objective.fold(number, task.at(point), limits))
            parts = {name: statistics.fmean(fold[name] for fold in folds) for name in folds[0]}
            trial.set_user_attr("parts", parts)
            trial.report(statistics.fmean(parts.values()), number)
            observer.step(trial.number, number + 1, objective.n_folds)
            if number + 1 < objective.n_folds and trial.should_prune():
                raise optuna.TrialPruned
    except BoxFailure as failure:
        trial.set_user_attr("status", failure.status)
        trial.set_user_attr("reason", failure.reason)
        raise
    except Interrupted as interrupted:
        raise KeyboardInterrupt from interrupted  # which Optuna records as a failure; it has no status
    return statistics.fmean(value for fold in folds for value in fold.values())


def _suggested(trial: optuna.Trial, name: str, space: Space) -> object:
    if isinstance(space, Choice):
        return trial.suggest_categorical(name, space.values)
    if space.integer:
        return trial.suggest_int(name, int(space.low), int(space.high), log=space.log)
    return space.rounded(trial.suggest_float(name, space.low, space.high, log=space.log))


def _result(study: optuna.Study) -> StudyResult:
    trials = study.get_trials(deepcopy=False, states=_FINISHED)
    return StudyResult(tuple(map(_point, trials)), study.direction is optuna.study.StudyDirection.MAXIMIZE)


def _point(trial: FrozenTrial) -> Point:
    noted = trial.user_attrs
    failed = trial.state is TrialState.FAIL
    return Point(
        number=trial.number,
        state=str(noted.get("status", "interrupted")) if failed else trial.state.name.lower(),
        parameters=noted.get("parameters", {}),
        value=trial.value if trial.state is TrialState.COMPLETE else None,
        parts=noted.get("parts", {}),
        reason=str(noted.get("reason", "")),
    )
