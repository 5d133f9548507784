"""One search: Optuna proposes points, boxes measure them, a storage keeps them. Runs in the tuning process."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any, TypeAlias
from zlib import crc32

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.pruners import BasePruner, NopPruner
from optuna.samplers import BaseSampler, TPESampler
from optuna.trial import FrozenTrial, TrialState

from tsadbench.base.search_space import Choice, IntegerRange, RealRange, Space
from tsadbench.sandbox import BoxFailure, Limits
from tsadbench.tuning.objective import Boxes, HeldOut, Injection
from tsadbench.tuning.outcome import Outcome, Point
from tsadbench.tuning.storage import open_storage
from tsadbench.tuning.task import Task

Tell: TypeAlias = Callable[[Mapping[str, object]], None]

# Complete points without which none is given up.
_FEWEST_COMPLETE = 5
_FINISHED = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL)


class _TrialFailedError(Exception):
    """A point whose detector failed; the study goes on."""


class NumberedSampler(BaseSampler):
    """TPE whose draws hang on the seed, the trial's number and the trials before it, and on nothing else.

    So a study that goes on after an interruption does not begin its draws anew, and machines that share a study do not
    draw the same.

    Parameters
    ----------
    seed
        Of all draws.
    distributions
        Of all parameters.
    first
        Values of all parameters to begin with: of trial 0, and of the next one while all before were interrupted. None
        where trial 0 is drawn as well. (A trial that is put into the study's queue instead would be there twice where
        two machines begin at once.)
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
        """Draw all parameters together; nothing while there are too few trials for that."""
        if self._first is not None and all(
            _is_interrupted(one) for one in study.get_trials(deepcopy=False) if one.number < trial.number
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
    """Gives a point up whose mean so far is worse than the median, over complete points, of their mean so far.

    Optuna's own `MedianPruner` holds the best number that a point has had against others' last one: right for a
    learning curve, wrong for folds and kinds of fault, of which some are easy. Its test of pairs enumerates for seconds
    where numbers are equal.

    Parameters
    ----------
    n_first
        Steps that are always taken: a whole fold.
    """

    def __init__(self, n_first: int) -> None:
        self._n_first = n_first

    def prune(self, study: optuna.Study, trial: FrozenTrial) -> bool:
        """Whether to give the point up now."""
        steps = trial.intermediate_values
        if len(steps) < self._n_first:
            return False
        complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        if len(complete) < _FEWEST_COMPLETE:
            return False
        means = [statistics.fmean(one.intermediate_values[step] for step in steps) for one in complete]
        ahead = statistics.fmean(steps.values()) - statistics.median(means)
        return ahead < 0 if study.direction is optuna.study.StudyDirection.MAXIMIZE else ahead > 0


def run_study(task: Task, storage: str, tell: Tell) -> Outcome:
    """Search until the study holds as many points as asked for, and return what it found.

    Parameters
    ----------
    task
        What is tuned.
    storage
        Where the study is kept (`open_storage`); one of the same name goes on.
    tell
        Hears of each number and each point.

    Raises
    ------
    UsageError
        If the storage cannot be opened.
    """
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    search = _Search(task, tell)
    defaults = {name: task.defaults[name] for name in task.space}
    first = defaults if all(one.holds(defaults[name]) for name, one in task.space.items()) else None
    study = optuna.create_study(
        storage=open_storage(storage),
        study_name=task.study,
        sampler=NumberedSampler(task.settings.seed, search.distributions, first),
        pruner=MeanPruner(search.n_first) if task.settings.prune else NopPruner(),
        direction="maximize" if task.settings.objective == "injection" else "minimize",
        load_if_exists=True,
    )
    search.run(study)
    return outcome(study, task)


def outcome(study: optuna.Study, task: Task) -> Outcome:
    """Return what a study holds."""
    points = tuple(
        _point(trial, task.space) for trial in study.get_trials(deepcopy=False, states=_FINISHED) if trial.params
    )
    return Outcome(points, maximise=task.settings.objective == "injection")


class _Search:
    """Measures what Optuna proposes."""

    def __init__(self, task: Task, tell: Tell) -> None:
        boxes = Boxes(task.settings.threads, task.forbidden)
        folds = task.folds()
        self._task = task
        self._tell = tell
        self._objective: HeldOut | Injection = (
            Injection(folds, boxes, task.settings.seed)
            if task.settings.objective == "injection"
            else HeldOut(folds, boxes)
        )
        self.n_first = self._objective.n_steps // len(folds)
        self.distributions = {name: _distribution(one) for name, one in task.space.items()}

    def run(self, study: optuna.Study) -> None:
        missing = self._task.settings.trials - outcome(study, self._task).n_counted
        if missing > 0:
            study.optimize(
                self._measure,
                n_trials=missing,
                n_jobs=self._task.settings.jobs,
                catch=(_TrialFailedError,),
                callbacks=[self._ended],
            )

    def _ended(self, study: optuna.Study, trial: FrozenTrial) -> None:
        found = outcome(study, self._task)
        self._tell({"kind": "trial", "number": trial.number, "outcome": found.to_json()})
        if found.n_counted >= self._task.settings.trials:
            study.stop()  # other machines have helped

    def _measure(self, trial: optuna.Trial) -> float:
        point = {name: _suggested(trial, name, one) for name, one in self._task.space.items()}
        known = _measured_before(trial, self._task.space, point)
        if known is not None:
            return _copied(trial, known)
        values: dict[str, list[float]] = {}
        numbers: list[float] = []
        limits = Limits(self._task.settings.timeout, self._task.settings.memory_mib)
        try:
            with closing(self._objective.steps(self._task.at(point), limits)) as steps:
                for done, step in enumerate(steps):
                    numbers.append(step.value)
                    values.setdefault(step.name, []).append(step.value)
                    trial.report(step.value, done)
                    self._tell(
                        {"kind": "step", "number": trial.number, "done": done + 1, "of": self._objective.n_steps}
                    )
                    if done + 1 < self._objective.n_steps and trial.should_prune():
                        raise optuna.TrialPruned
        except BoxFailure as failure:
            trial.set_user_attr("status", failure.status)
            trial.set_user_attr("reason", failure.reason)
            raise _TrialFailedError(failure.reason) from failure
        finally:
            trial.set_user_attr("values", values)
        return statistics.fmean(numbers)


def _distribution(space: Space) -> BaseDistribution:
    if isinstance(space, Choice):
        return CategoricalDistribution(space.values)
    if isinstance(space, IntegerRange):
        return IntDistribution(space.low, space.high, log=space.log)
    return FloatDistribution(space.low, space.high, log=space.log)


def _suggested(trial: optuna.Trial, name: str, space: Space) -> object:
    if isinstance(space, Choice):
        return trial.suggest_categorical(name, space.values)
    if isinstance(space, IntegerRange):
        return trial.suggest_int(name, space.low, space.high, log=space.log)
    return space.rounded(trial.suggest_float(name, space.low, space.high, log=space.log))


def _parameters(trial: FrozenTrial, space: Mapping[str, Space]) -> dict[str, object]:
    """Return the parameters that were measured: what Optuna drew, rounded."""
    return {
        name: space[name].rounded(value) if isinstance(space[name], RealRange) else value  # type: ignore[union-attr]
        for name, value in trial.params.items()
    }


def _measured_before(
    trial: optuna.Trial, space: Mapping[str, Space], point: Mapping[str, object]
) -> FrozenTrial | None:
    """Return a trial that has measured this very point: the faults and the seed are the same, and so is its value."""
    done = trial.study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    return next((one for one in done if _parameters(one, space) == point), None)


def _copied(trial: optuna.Trial, known: FrozenTrial) -> float:
    trial.set_user_attr("values", known.user_attrs["values"])
    trial.set_user_attr("same_as", known.number)
    for step, value in known.intermediate_values.items():
        trial.report(value, step)
    if known.value is None:
        raise RuntimeError(f"trial {known.number} is complete without a value")
    return known.value


def _point(trial: FrozenTrial, space: Mapping[str, Space]) -> Point:
    known = {TrialState.COMPLETE: "complete", TrialState.PRUNED: "pruned"}.get(trial.state)
    state = "interrupted" if _is_interrupted(trial) else known or str(trial.user_attrs["status"])
    values = trial.user_attrs.get("values", {})
    return Point(
        number=trial.number,
        state=state,
        parameters=_parameters(trial, space),
        value=trial.value if trial.state is TrialState.COMPLETE else None,
        parts={name: statistics.fmean(numbers) for name, numbers in values.items()},
        reason=str(trial.user_attrs.get("reason", "")),
    )
