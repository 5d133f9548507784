"""Where a study and its result lie, by default below one folder."""

from __future__ import annotations

from pathlib import Path

from tsadbench.errors import MissingExtraError, UsageError
from tsadbench.tuning.task import Task

_DATABASE = "studies.sqlite3"


def storage_of(task: Task, out: Path, storage: str | None) -> str:
    """Return the storage's URL, by default that of a SQLite file below ``out``, which is made.

    Raises
    ------
    UsageError
        If the URL is none, or the file would lie where the tuning process may not open anything.
    MissingExtraError
        If Optuna is not installed.
    """
    try:
        from tsadbench.tuning.storage import local_file, shown_url
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("tsadbench"):
            raise
        raise MissingExtraError("tsadbench tune", "tune") from error
    url = storage if storage is not None else f"sqlite:///{(out / _DATABASE).resolve()}"
    shown_url(url)
    file = local_file(url)
    if file is not None:
        for folder in task.forbidden:
            if file.resolve().is_relative_to(folder):
                raise UsageError(
                    f"{file} lies in the data's folder {folder}, of which the tuning process may open nothing; choose "
                    f"another {'--out' if storage is None else '--storage'}"
                )
        _make(file.resolve().parent)
    return url


def result_file(task: Task, out: Path) -> Path:
    """Return the file that a study's best point is written to."""
    return out / f"{task.study}.toml"


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder}: cannot be made ({error.strerror or error})") from error
