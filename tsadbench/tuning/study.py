"""One search: Optuna proposes and stores points, boxes measure them, and the best point becomes a configuration."""

from __future__ import annotations

import math
import statistics
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from tsadbench._version import __version__
from tsadbench.base.prior import Prior
from tsadbench.base.search_space import Choice, Space
from tsadbench.datasets.loading import CARD_ENDING
from tsadbench.errors import UsageError
from tsadbench.sandbox import BoxFailure, Limits
from tsadbench.sandbox.limits import Interrupted
from tsadbench.tuning.objective import Objective
from tsadbench.tuning.task import Task
from tsadbench.utils.extras import extra
from tsadbench.utils.files import write_file
from tsadbench.utils.parameters import Label, as_json, format_value, parse_label
from tsadbench.utils.toml import toml_value

with extra("tsadbench tune", "tune"):
    import optuna
    from optuna.storages import RDBStorage
    from optuna.trial import FrozenTrial, TrialState
    from sqlalchemy.exc import SQLAlchemyError


def run_study(task: Task, storage: str, ended: Callable[[int, pd.DataFrame], None]) -> pd.DataFrame:
    """Search until the study has the requested number of points; return all of them.

    A point is a row, by its number: its ``state`` ("complete", "pruned", "interrupted", or the status of a failure),
    the objective's ``value`` (NaN unless complete), its ``parameters``, ``parts`` of the value (means over the folds
    measured: of the loss, or of each kind of fault), and the ``reason`` why it failed. ``ended`` receives the number of
    each point that has ended, and all points, from any thread.

    Raises a UsageError if the storage cannot be opened, or its study was begun with other settings. A KeyboardInterrupt
    if the user interrupts: points in progress end and do not count, all others are kept.
    """
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    settings, stop = task.settings, threading.Event()
    objective = Objective(settings.objective, task.folds(), seed=settings.seed, forbidden=task.forbidden)
    study = optuna.create_study(
        storage=_opened(storage),
        study_name=task.study,
        pruner=optuna.pruners.MedianPruner(n_startup_trials=5),
        direction="maximize" if objective.maximise else "minimize",
        load_if_exists=True,
    )
    now = task.determinants()
    if (begun := study.user_attrs.get("task", now)) != now:
        other = ", ".join(name for name, value in now.items() if begun.get(name) != value)
        raise UsageError(f"study {task.study} differs from this search in {other}; give another --out or --storage")
    study.set_user_attr("task", now)
    # A resumed study must not repeat its first draws.
    study.sampler = optuna.samplers.TPESampler(seed=(settings.seed + len(study.trials)) % 2**32)
    done = n_counted(_points(study))
    if all(space.holds(task.defaults[name]) for name, space in task.space.items()):
        study.enqueue_trial(dict(task.defaults), skip_if_exists=done > 0)  # try interrupted defaults again

    def one_more(study: optuna.Study, trial: FrozenTrial) -> None:
        points = _points(study)
        ended(trial.number, points)
        if n_counted(points) >= settings.trials:  # other machines may have added points
            study.stop()

    search = partial(
        study.optimize,
        lambda trial: _measure(trial, task, objective, Limits(settings.timeout, stop=stop)),
        catch=(BoxFailure,),
        callbacks=[one_more],
    )
    # Run the first point alone, since several threads could take the same one from SQLite's queue.
    stages = ((1, 1), (settings.trials - done - 1, settings.jobs))
    with ThreadPoolExecutor(1) as worker:  # on Ctrl-C, Optuna would wait for the points in progress
        try:
            for n_trials, n_jobs in stages if done < settings.trials else ():
                worker.submit(search, n_trials=n_trials, n_jobs=n_jobs).result()
        except optuna.exceptions.StorageInternalError as error:
            reason = str(error.__cause__ or error).splitlines()[0]
            raise UsageError(f"the database failed: {reason}", field="storage") from error
        finally:
            stop.set()
    return _points(study)


def _opened(url: str) -> RDBStorage:
    try:
        return RDBStorage(url)
    except (ImportError, SQLAlchemyError, RuntimeError, ValueError) as error:
        reason = str(error.__cause__ or error).splitlines()[0]
        raise UsageError(f"cannot open this database: {reason}", field="storage") from error


def _measure(trial: optuna.Trial, task: Task, objective: Objective, limits: Limits) -> float:
    """Return the mean over folds and kinds of fault; Optuna may end the trial after each fold."""
    point = {name: _suggested(trial, name, space) for name, space in task.space.items()}
    trial.set_user_attr("parameters", point)
    for earlier in trial.study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)):
        if earlier.user_attrs["parameters"] == point and earlier.value is not None:
            trial.set_user_attr("parts", earlier.user_attrs["parts"])
            return earlier.value  # same faults and seed, same value
    folds: list[dict[str, float]] = []
    try:
        for number in range(objective.n_folds):
            folds.append(objective.fold(number, task.at(point), limits))
            parts = {name: statistics.fmean(fold[name] for fold in folds) for name in folds[0]}
            trial.set_user_attr("parts", parts)
            trial.report(statistics.fmean(parts.values()), number)
            if number + 1 < objective.n_folds and trial.should_prune():
                raise optuna.TrialPruned
    except BoxFailure as failure:
        trial.set_user_attr("state", failure.status)
        trial.set_user_attr("reason", failure.reason)
        raise
    except Interrupted as interrupted:
        raise KeyboardInterrupt from interrupted  # Optuna records it as a failure without the reason
    return statistics.fmean(value for fold in folds for value in fold.values())


def _suggested(trial: optuna.Trial, name: str, space: Space) -> object:
    if isinstance(space, Choice):
        return trial.suggest_categorical(name, space.values)
    if space.integer:
        return trial.suggest_int(name, int(space.low), int(space.high), log=space.log)
    return space.rounded(trial.suggest_float(name, space.low, space.high, log=space.log))


def _points(study: optuna.Study) -> pd.DataFrame:
    points = [
        {
            "number": trial.number,
            "state": "interrupted" if trial.state is TrialState.FAIL else trial.state.name.lower(),
            "value": trial.value if trial.state is TrialState.COMPLETE else math.nan,
            "reason": "",
            **trial.user_attrs,  # state and reason of a failure
        }
        for trial in study.get_trials(deepcopy=False)
        if trial.state.is_finished()
    ]
    columns = ["number", "state", "value", "parameters", "parts", "reason"]
    return pd.DataFrame(points, columns=columns).set_index("number")


def n_counted(points: pd.DataFrame) -> int:
    """Return the number of finished points: all but the interrupted ones."""
    return int((points["state"] != "interrupted").sum())


def best_and_defaults(points: pd.DataFrame, task: Task) -> pd.DataFrame:
    """Return the best complete point (the first, if equal) and the first point with the defaults, by name."""
    complete = points[points["state"] == "complete"].reset_index()
    best = complete.sort_values("value", ascending=task.settings.objective == "heldout", kind="stable")
    of_defaults = complete[[parameters == task.defaults for parameters in complete["parameters"]]]
    found = {"defaults": of_defaults.head(1), "best": best.head(1)}
    return pd.concat([one.set_axis([name][: len(one)]) for name, one in found.items()])


def label_at(task: Task, parameters: Mapping[str, object], *, absolute: bool = False) -> str:
    """Return the label of the task's detector at a point, for ``run --detector``.

    Configurations need ``absolute`` paths, because their relative paths refer to their own folder.
    """
    contender = task.contender
    usual, name = contender.description.defaults, contender.name
    given = dict(parse_label(contender.label).arguments)
    if absolute:
        for key, value in contender.construction.arguments.items():
            if key in given and isinstance(value, Prior) and Path(value.origin).is_file():
                given[key] = str(Path(value.origin).resolve())
        file, colon, cls = contender.construction.source.target.rpartition(":")  # names have no folder
        name = f"{Path(file).resolve()}{colon}{cls}" if file.endswith(".py") else name
    given |= {
        key: text for key, value in parameters.items() if (text := format_value(value)) != format_value(usual[key])
    }
    return str(Label(name, dict(sorted(given.items()))))


def write_tuned(task: Task, points: pd.DataFrame, out: Path) -> Path:
    """Write the best of a study's points, one of which must be complete, as a run's configuration; return the file.

    Raises a UsageError if the file cannot be written.
    """
    found, source = best_and_defaults(points, task), task.source
    best: Any = found.loc["best"]
    plan = {
        "detectors": [label_at(task, best["parameters"], absolute=True)],
        "datasets": [str(Path(source).resolve()) if source.endswith(CARD_ENDING) else source],
    }
    tuned = {
        "label": label_at(task, best["parameters"]),
        "value": best["value"],
        "value_of_defaults": found["value"].get("defaults"),
        "study": task.study,
        "trial": int(best["number"]),
        "gap": task.reach.gap,
        "training_hash": task.training_hash(),
        "tsadbench": __version__,
        **asdict(task.settings),
        "trials": n_counted(points),
    }
    tables: dict[str, Any] = {name: best[name] for name in ("parameters", "parts")}
    tables["states"] = points["state"].value_counts().to_dict()
    lines = ["# Written by tsadbench tune. To use it:  tsadbench run --config THIS_FILE", *_toml(plan)]
    lines += ["", "[tuned]", *_toml(tuned)]
    for name, table in tables.items():
        lines += ["", f"[tuned.{name}]", *_toml(table)]
    return write_file(out / f"{task.study}.toml", "\n".join(lines) + "\n")


def _toml(table: Mapping[str, object]) -> list[str]:
    """Return a line for each key with a value: TOML has no null."""
    return [f"{key} = {toml_value(as_json(value))}" for key, value in table.items() if value is not None]
