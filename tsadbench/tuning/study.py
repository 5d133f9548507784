"""One search: Optuna proposes points, boxes measure them, a storage keeps them."""

from __future__ import annotations

import statistics
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any
from zlib import crc32

from tsadbench.base.search_space import Choice, Space
from tsadbench.sandbox import BoxFailure, Limits
from tsadbench.sandbox.limits import Interrupted
from tsadbench.tuning.objective import HeldOut, Injection, SearchObjective
from tsadbench.tuning.storage import open_storage, shown_url
from tsadbench.tuning.study_result import Point, StudyObserver, StudyResult
from tsadbench.tuning.task import Task
from tsadbench.utils.extras import extra

with extra("tsadbench tune", "tune"):
    import optuna
    from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
    from optuna.pruners import BasePruner, NopPruner
    from optuna.samplers import BaseSampler, TPESampler
    from optuna.trial import FrozenTrial, TrialState

# No point is given up before so many are complete.
_FEWEST_COMPLETE = 5
_FINISHED = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL)


class _TrialFailedError(Exception):
    """A point whose detector failed; the study goes on."""


class NumberedSampler(BaseSampler):
    """TPE whose draws depend only on the seed, the trial's number and the earlier trials.

    So a study that is resumed does not repeat its draws, and machines that share a study draw different points.

    Parameters
    ----------
    seed
        Seed of all draws.
    distributions
        Of all parameters.
    first
        Values of all parameters for trial 0, and for the next trial as long as all earlier ones were interrupted; None
        to draw trial 0 as well. (A trial in Optuna's queue would be measured twice if two machines began at once.)
    """

    def __init__(
        self, seed: int, distributions: Mapping[str, BaseDistribution], first: Mapping[str, Any] | None = None
    ) -> None:
        self._seed = seed
        self._distributions = dict(distributions)
        self._first = first

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:  # noqa: ARG002
        """Return all parameters."""
        return self._distributions

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Draw all parameters together; none while there are too few trials for that."""
        if self._first is not None and all(
            _is_interrupted(earlier) for earlier in study.get_trials(deepcopy=False) if earlier.number < trial.number
        ):
            return dict(self._first)
        return self._sampler(trial, "").sample_relative(study, trial, search_space)

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Draw one parameter."""
        return self._sampler(trial, param_name).sample_independent(study, trial, param_name, param_distribution)

    def _sampler(self, trial: FrozenTrial, name: str) -> TPESampler:
        return TPESampler(seed=crc32(f"{self._seed}/{trial.number}/{name}".encode()))


def _is_interrupted(trial: FrozenTrial) -> bool:
    return trial.state is TrialState.FAIL and "status" not in trial.user_attrs


class MeanPruner(BasePruner):
    """Prunes a point whose running mean is worse than the median running mean of the complete points.

    Optuna's `MedianPruner` compares the best number of a point with the last one of others, which suits a learning
    curve but not folds and kinds of fault, some of which are easy. Its test of pairs (`WilcoxonPruner`) takes seconds
    if numbers are equal.

    Parameters
    ----------
    n_first
        Number of steps, a whole fold, that every point takes.
    """

    def __init__(self, n_first: int) -> None:
        self._n_first = n_first

    def prune(self, study: optuna.Study, trial: FrozenTrial) -> bool:
        """Return whether to give up the point now."""
        steps = trial.intermediate_values
        if len(steps) < self._n_first:
            return False
        complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        if len(complete) < _FEWEST_COMPLETE:
            return False
        means = [statistics.fmean(other.intermediate_values[step] for step in steps) for other in complete]
        ahead = statistics.fmean(steps.values()) - statistics.median(means)
        return ahead < 0 if study.direction is optuna.study.StudyDirection.MAXIMIZE else ahead > 0


def run_study(task: Task, storage: str, observer: StudyObserver) -> StudyResult:
    """Search until the study holds as many points as asked for, and return what it found.

    A UsageError if the storage cannot be opened. A KeyboardInterrupt if the user interrupts: points in progress are
    ended and do not count, all others are kept.
    """
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    search = _Search(task, shown_url(storage), observer)
    defaults = {name: task.defaults[name] for name in task.space}
    first = defaults if all(space.holds(defaults[name]) for name, space in task.space.items()) else None
    study = optuna.create_study(
        storage=open_storage(storage),
        study_name=task.study,
        sampler=NumberedSampler(task.settings.seed, search.distributions, first),
        pruner=MeanPruner(search.objective.steps_per_fold) if task.settings.prune else NopPruner(),
        direction="maximize" if search.objective.maximise else "minimize",
        load_if_exists=True,
    )
    search.run(study)
    return search.result(study)


class _Search:
    """Measures what Optuna proposes."""

    def __init__(self, task: Task, storage: str, observer: StudyObserver) -> None:
        self._task = task
        self._storage = storage
        self._observer = observer
        self._stop = threading.Event()
        folds, threads = task.folds(), task.settings.threads
        self.objective: SearchObjective = (
            Injection(folds, seed=task.settings.seed, threads=threads, forbidden=task.forbidden)
            if task.settings.objective == "injection"
            else HeldOut(folds, threads=threads, forbidden=task.forbidden)
        )
        self.distributions = {name: _distribution(space) for name, space in task.space.items()}

    def result(self, study: optuna.Study) -> StudyResult:
        """Return what the study holds."""
        trials = study.get_trials(deepcopy=False, states=_FINISHED)
        points = tuple(_point(trial, self._task.space) for trial in trials if trial.params)
        return StudyResult(points, self.objective.maximise, self._storage)

    def run(self, study: optuna.Study) -> None:
        """Measure the missing points.

        Not by Optuna's own ``n_jobs``: on Ctrl-C it would wait until the points in progress have ended by themselves.
        """
        missing = self._task.settings.trials - self.result(study).n_counted
        with ThreadPoolExecutor(self._task.settings.jobs, thread_name_prefix="point") as workers:
            futures = [workers.submit(self._next_point, study) for _ in range(missing)]
            try:
                for future in futures:
                    future.result()
            except BaseException:
                self._stop.set()
                workers.shutdown(wait=True, cancel_futures=True)
                raise

    def _next_point(self, study: optuna.Study) -> None:
        if self.result(study).n_counted < self._task.settings.trials:  # other machines may have helped
            study.optimize(self._measure, n_trials=1, catch=(_TrialFailedError,), callbacks=[self._ended])

    def _ended(self, study: optuna.Study, trial: FrozenTrial) -> None:
        self._observer.ended(trial.number, self.result(study))

    def _measure(self, trial: optuna.Trial) -> float:
        point = {name: _suggested(trial, name, space) for name, space in self._task.space.items()}
        same = _measured_before(trial, self._task.space, point)
        if same is not None:
            return _copied(trial, same)
        values: dict[str, list[float]] = {}
        numbers: list[float] = []
        settings = self._task.settings
        limits = Limits(settings.timeout, settings.memory_mib, self._stop, settings.require_seal)
        n_steps = self.objective.n_steps
        try:
            with closing(self.objective.steps(self._task.at(point), limits)) as steps:
                for done, step in enumerate(steps, start=1):
                    numbers.append(step.value)
                    values.setdefault(step.name, []).append(step.value)
                    trial.report(step.value, done - 1)
                    self._observer.step(trial.number, done, n_steps)
                    if done < n_steps and trial.should_prune():
                        raise optuna.TrialPruned
        except BoxFailure as failure:
            trial.set_user_attr("status", failure.status)
            trial.set_user_attr("reason", failure.reason)
            raise _TrialFailedError(failure.reason) from failure
        except Interrupted as interrupted:
            # Optuna records this one as failed; having no status, it will count as interrupted.
            raise KeyboardInterrupt from interrupted
        finally:
            trial.set_user_attr("values", values)
        return statistics.fmean(numbers)


def _distribution(space: Space) -> BaseDistribution:
    if isinstance(space, Choice):
        return CategoricalDistribution(space.values)
    if space.integer:
        return IntDistribution(int(space.low), int(space.high), log=space.log)
    return FloatDistribution(space.low, space.high, log=space.log)


def _suggested(trial: optuna.Trial, name: str, space: Space) -> object:
    if isinstance(space, Choice):
        return trial.suggest_categorical(name, space.values)
    if space.integer:
        return trial.suggest_int(name, int(space.low), int(space.high), log=space.log)
    return space.rounded(trial.suggest_float(name, space.low, space.high, log=space.log))


def _parameters(trial: FrozenTrial, space: Mapping[str, Space]) -> dict[str, object]:
    """Return the parameters that were measured: what Optuna drew, rounded."""
    return {
        name: value if isinstance(one := space[name], Choice) else one.rounded(value)
        for name, value in trial.params.items()
    }


def _measured_before(
    trial: optuna.Trial, space: Mapping[str, Space], point: Mapping[str, object]
) -> FrozenTrial | None:
    """Return a trial that has measured this point: with the same faults and seed, its value is the same."""
    complete = trial.study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    return next((earlier for earlier in complete if _parameters(earlier, space) == point), None)


def _copied(trial: optuna.Trial, same: FrozenTrial) -> float:
    trial.set_user_attr("values", same.user_attrs["values"])
    trial.set_user_attr("same_as", same.number)
    for step, value in same.intermediate_values.items():
        trial.report(value, step)
    if same.value is None:
        raise RuntimeError(f"trial {same.number} is complete without a value")
    return same.value


def _point(trial: FrozenTrial, space: Mapping[str, Space]) -> Point:
    state = {TrialState.COMPLETE: "complete", TrialState.PRUNED: "pruned"}.get(trial.state)
    failure = "interrupted" if _is_interrupted(trial) else str(trial.user_attrs.get("status"))
    return Point(
        number=trial.number,
        state=state or failure,
        parameters=_parameters(trial, space),
        value=trial.value if trial.state is TrialState.COMPLETE else None,
        parts={name: statistics.fmean(numbers) for name, numbers in trial.user_attrs.get("values", {}).items()},
        reason=str(trial.user_attrs.get("reason", "")),
    )
