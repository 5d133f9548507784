"""The result of a study as a TOML file that ``tsadbench run --config`` takes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

from tsadbench._version import __version__
from tsadbench.base.prior import Prior
from tsadbench.datasets.loading import CARD_ENDING
from tsadbench.errors import UsageError
from tsadbench.tuning.study import StudyResult
from tsadbench.tuning.task import Task
from tsadbench.utils.files import write_file
from tsadbench.utils.parameters import Label, as_json, format_value, parse_label
from tsadbench.utils.toml import toml_value


def label_at(task: Task, parameters: Mapping[str, object], *, absolute: bool = False) -> str:
    """Return the label of the task's detector at a point, as ``run --detector`` takes it.

    A configuration's paths are relative to its folder, so it takes them ``absolute``.
    """
    contender = task.contender
    defaults, name = contender.description.defaults, contender.name
    given = dict(parse_label(contender.label).arguments)
    if absolute:
        for key, value in contender.construction.arguments.items():
            if key in given and isinstance(value, Prior) and Path(value.origin).is_file():
                given[key] = str(Path(value.origin).resolve())
        file, colon, cls = name.rpartition(":")
        name = f"{Path(file).resolve()}{colon}{cls}" if file.endswith(".py") else name
    given |= {key: format_value(value) for key, value in parameters.items() if value != defaults[key]}
    return str(Label(name, dict(sorted(given.items()))))


def write_tuned(task: Task, result: StudyResult, out: Path) -> Path:
    """Write the best point of a study as a run's configuration, and return the file.

    A UsageError if the file cannot be written, or no point is complete.
    """
    file = out / f"{task.study}.toml"
    best, defaults = result.best, result.at(task.defaults)
    if best is None:
        raise UsageError(f"study {task.study} has no complete point: there is nothing to write to {file}")
    source = task.source
    plan = {
        "detectors": [label_at(task, best.parameters, absolute=True)],
        "datasets": [str(Path(source).resolve()) if source.endswith(CARD_ENDING) else source],
    }
    tuned = {
        "label": label_at(task, best.parameters),
        "detector": task.contender.name,
        "dataset": task.dataset,
        "value": best.value,
        "value_of_defaults": None if defaults is None else defaults.value,
        "study": task.study,
        "trial": best.number,
        "gap": task.reach.gap,
        "data_hash": task.data_hash,
        "training_hash": task.training_hash(),
        "tsadbench": __version__,
        **asdict(task.settings),
        "trials": result.n_counted,
    }
    lines = ["# Written by tsadbench tune. To use it:  tsadbench run --config THIS_FILE", *_toml_lines(plan)]
    lines += ["", "[tuned]", *_toml_lines(tuned)]
    for name, table in (("parameters", best.parameters), ("parts", best.parts), ("states", result.counts)):
        lines += ["", f"[tuned.{name}]", *_toml_lines({key: as_json(value) for key, value in table.items()})]
    return write_file(file, "\n".join(lines) + "\n")


def _toml_lines(table: Mapping[str, object]) -> Iterator[str]:
    """Yield ``key = value`` for each key of a table. TOML has no null: a value of None is left out.

    >>> list(_toml_lines({"name": "t2", "t2.smoothing": 5, "prior": None, "seeds": [0, 1]}))
    ['name = "t2"', '"t2.smoothing" = 5', 'seeds = [0, 1]']
    """
    for key, value in table.items():
        if value is not None:
            yield f"{key if re.fullmatch('[A-Za-z0-9_-]+', key) else toml_value(key)} = {toml_value(value)}"
