"""The result of a study as a TOML file that ``tsadbench run --config`` takes, and its provenance for manifests."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from tsadbench._version import __version__
from tsadbench.base.prior import Prior
from tsadbench.datasets.loading import CARD_ENDING
from tsadbench.errors import UsageError
from tsadbench.tuning.study_result import StudyResult
from tsadbench.tuning.task import Task, training_hash
from tsadbench.utils.files import write_file
from tsadbench.utils.parameters import JsonValue, Label, as_json, format_value
from tsadbench.utils.toml import toml_value


def label_at(task: Task, parameters: Mapping[str, object]) -> str:
    """Return the label of the task's detector at a point, as ``run --detector`` takes it."""
    return _label(task.name, task, task.given, parameters)


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
        "detectors": [_request(task, best.parameters)],
        "datasets": [str(Path(source).resolve()) if source.endswith(CARD_ENDING) else source],
    }
    tuned = {
        "label": label_at(task, best.parameters),
        "detector": task.name,
        "dataset": task.dataset,
        "objective": task.settings.objective,
        "value": best.value,
        "value_of_defaults": None if defaults is None else defaults.value,
        "study": task.study,
        "storage": result.storage,
        "trial": best.number,
        "trials": result.n_counted,
        "folds": task.settings.folds,
        "gap": task.reach.gap,
        "seed": task.settings.seed,
        "threads": task.settings.threads,
        "data_hash": task.data_hash,
        "training_hash": training_hash(task.train),
        "ranges": list(task.settings.ranges) or None,
        "tsadbench": __version__,
    }
    lines = ["# Written by tsadbench tune. To use it:  tsadbench run --config THIS_FILE", *_toml_lines(plan)]
    lines += ["", "[tuned]", *_toml_lines(tuned)]
    for name, table in (("parameters", best.parameters), ("parts", best.parts), ("states", result.counts)):
        lines += ["", f"[tuned.{name}]", *_toml_lines({key: as_json(value) for key, value in table.items()})]
    return write_file(file, "\n".join(lines) + "\n")


def provenance(file: Path) -> tuple[str, dict[str, JsonValue]]:
    """Return a file's SHA-256 and its table ``[tuned]``: `config_hash` and `tuning` of a run made with it.

    A UsageError if the file cannot be read, or has no such table.
    """
    try:
        content = file.read_bytes()
        tuned = tomllib.loads(content.decode("utf-8")).get("tuned")
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{file}: cannot be read as TOML ({error})") from error
    if not isinstance(tuned, dict):
        raise UsageError(f"{file}: expected a table [tuned], as tsadbench tune writes it")
    return hashlib.sha256(content).hexdigest(), tuned


def _request(task: Task, parameters: Mapping[str, object]) -> str:
    """Return the label with absolute paths: a configuration's own paths are relative to its folder."""
    given = dict(task.given)
    for name, value in task.construction.arguments.items():
        if name in given and isinstance(value, Prior) and Path(value.origin).is_file():
            given[name] = str(Path(value.origin).resolve())
    file, colon, cls = task.name.rpartition(":")
    name = f"{Path(file).resolve()}{colon}{cls}" if file.endswith(".py") else task.name
    return _label(name, task, given, parameters)


def _label(name: str, task: Task, given: Mapping[str, str], parameters: Mapping[str, object]) -> str:
    defaults = task.description.defaults
    changed = {key: format_value(value) for key, value in parameters.items() if value != defaults[key]}
    return str(Label(name, dict(sorted({**given, **changed}.items()))))


def _toml_lines(table: Mapping[str, object]) -> Iterator[str]:
    """Yield ``key = value`` for each key of a table. TOML has no null: a value of None is left out.

    >>> list(_toml_lines({"name": "t2", "t2.smoothing": 5, "prior": None, "seeds": [0, 1]}))
    ['name = "t2"', '"t2.smoothing" = 5', 'seeds = [0, 1]']
    """
    for key, value in table.items():
        if value is not None:
            yield f"{key if re.fullmatch('[A-Za-z0-9_-]+', key) else toml_value(key)} = {toml_value(value)}"
