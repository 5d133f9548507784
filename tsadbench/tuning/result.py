"""What a study comes to: a small TOML file that ``tsadbench run --config`` takes, and its provenance for manifests."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from tsadbench._version import __version__
from tsadbench.base.prior import Prior
from tsadbench.datasets.loading import CARD_ENDING
from tsadbench.errors import UsageError
from tsadbench.execution.plan import Plan
from tsadbench.tuning.outcome import Outcome, Point
from tsadbench.tuning.task import Task, training_hash
from tsadbench.utils.atomic_files import write_file
from tsadbench.utils.parameters import JsonValue, as_json, format_label
from tsadbench.utils.toml import toml_lines, toml_value


def label_at(task: Task, parameters: Mapping[str, object]) -> str:
    """Return the label of the task's detector at a point: what ``run --detector`` takes."""
    return format_label(task.name, task.construction.cls, {**task.given, **parameters})


def write_tuned(path: Path, task: Task, plan: Plan, outcome: Outcome, storage: str) -> None:
    """Write the best point of a study as a configuration of a run.

    Parameters
    ----------
    path
        The file; its folder is made.
    task, plan, outcome
        What was tuned, the plan it was taken from, what was found. One point at least must be complete.
    storage
        URL of where the study is kept; its password is not written.

    Raises
    ------
    UsageError
        If it cannot be written, or no point is complete.
    """
    from tsadbench.tuning.storage import shown_url  # it needs Optuna, and reading a file does not

    best = outcome.best
    if best is None:
        raise UsageError(f"study {task.study} has no complete point: there is nothing to write to {path}")
    write_file(path, "\n".join(_lines(task, plan, outcome, best, shown_url(storage))) + "\n")


def provenance(path: Path) -> tuple[str, dict[str, JsonValue]]:
    """Return a file's SHA-256 and its table ``[tuned]``: `Plan.config_hash` and `Plan.tuning` of a run made with it.

    Raises
    ------
    UsageError
        If the file cannot be read, or holds no such table.
    """
    try:
        content = path.read_bytes()
        tuned = tomllib.loads(content.decode("utf-8")).get("tuned")
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path}: cannot be read as TOML ({error})") from error
    if not isinstance(tuned, dict):
        raise UsageError(f"{path}: expected a table [tuned], as tsadbench tune writes it")
    return hashlib.sha256(content).hexdigest(), tuned


def _request(task: Task, parameters: Mapping[str, object]) -> str:
    """Return the label with files from the root: a configuration's paths are relative to its own folder."""
    arguments = {**task.given, **parameters}
    for name, value in arguments.items():
        if isinstance(value, Prior) and Path(value.origin).is_file():
            arguments[name] = Path(value.origin).resolve()
    file, colon, cls = task.name.rpartition(":")
    name = f"{Path(file).resolve()}{colon}{cls}" if file.endswith(".py") else task.name
    return format_label(name, task.construction.cls, arguments)


def _lines(task: Task, plan: Plan, outcome: Outcome, best: Point, storage: str) -> Iterator[str]:
    label = label_at(task, best.parameters)
    defaults = outcome.at(task.defaults)
    dataset = plan.source[0] if plan.source else task.dataset
    yield "# Written by tsadbench tune. Takes it:  tsadbench run --config THIS_FILE"
    yield f"detectors = [{toml_value(_request(task, best.parameters))}]"
    yield f"datasets = [{toml_value(str(Path(dataset).resolve()) if dataset.endswith(CARD_ENDING) else dataset)}]"
    yield ""
    yield "[tuned]"
    yield from toml_lines(
        {
            "label": label,
            "detector": task.name,
            "dataset": task.dataset,
            "objective": task.settings.objective,
            "value": best.value,
            "value_of_defaults": None if defaults is None else defaults.value,
            "study": task.study,
            "storage": storage,
            "trial": best.number,
            "trials": outcome.n_counted,
            "folds": task.settings.folds,
            "gap": task.reach.gap,
            "seed": task.settings.seed,
            "threads": task.settings.threads,
            "data_hash": plan.data.dataset.content_hash,
            "training_hash": training_hash(task.train),
            "tsadbench": __version__,
        }
    )
    for name, table in (("parameters", best.parameters), ("parts", best.parts), ("states", outcome.counts)):
        yield ""
        yield f"[tuned.{name}]"
        yield from toml_lines({key: as_json(value) for key, value in table.items()})
