"""Where studies are kept: in SQLite, in any database that Optuna supports, or in a journal file on a shared disk."""

from __future__ import annotations

import warnings
from pathlib import Path

from tsadbench.errors import UsageError
from tsadbench.tuning.task import Task
from tsadbench.utils.extras import extra
from tsadbench.utils.files import require_writable

with extra("tsadbench tune", "tune"):
    from optuna.exceptions import ExperimentalWarning
    from optuna.storages import BaseStorage, JournalStorage, RDBStorage
    from optuna.storages.journal import JournalFileBackend
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError, SQLAlchemyError

JOURNAL = "journal:"
_DATABASE = "studies.sqlite3"
# Optuna gives up the trial of a process that has sent no heartbeat for the grace period.
_HEARTBEAT_SECONDS, _GRACE_SECONDS = 60, 180
_LOCK_SECONDS = 60


def storage_of(task: Task, out: Path, storage: str | None) -> str:
    """Return the URL of a task's storage, and make the folder of a local file.

    A UsageError if it is not a URL, or the file would lie in the data's folder or cannot be written.
    """
    url = storage if storage is not None else f"sqlite:///{(out / _DATABASE).resolve()}"
    shown_url(url)
    file = local_file(url)
    if file is not None:
        for folder in task.forbidden:
            if file.resolve().is_relative_to(folder):
                raise UsageError(
                    f"{file} lies in the data's folder {folder}, where tuning writes nothing; choose another "
                    f"{'--out' if storage is None else '--storage'}"
                )
        require_writable(file.resolve())
    return url


def open_storage(url: str) -> BaseStorage:
    """Return the storage at a URL.

    A UsageError if it is not a URL, the database's driver is not installed, or the storage cannot be opened.
    """
    shown = shown_url(url)
    try:
        if url.startswith(JOURNAL):
            return JournalStorage(JournalFileBackend(url.removeprefix(JOURNAL)))
        local = make_url(url).get_backend_name() == "sqlite"
        with warnings.catch_warnings():
            # Optuna has called heartbeats experimental since version 2.
            warnings.simplefilter("ignore", ExperimentalWarning)
            return RDBStorage(
                url,
                engine_kwargs={"connect_args": {"timeout": _LOCK_SECONDS}} if local else None,
                heartbeat_interval=_HEARTBEAT_SECONDS,
                grace_period=_GRACE_SECONDS,
            )
    except ImportError as error:
        raise UsageError(f"--storage {shown}: the driver of this database is not installed ({error})") from error
    except (SQLAlchemyError, OSError, RuntimeError) as error:
        first = str(error.__cause__ or error).splitlines()[0]
        raise UsageError(f"--storage {shown}: cannot be opened ({first})") from error


def shown_url(url: str) -> str:
    """Return a storage's URL without its password, as it may be shown and written.

    Raises
    ------
    UsageError
        If it is not a URL.

    Examples
    --------
    >>> shown_url("postgresql://me:secret@host/studies")
    'postgresql://me:***@host/studies'
    """
    if url.startswith(JOURNAL):
        return url
    try:
        return make_url(url).render_as_string(hide_password=True)
    except ArgumentError as error:
        raise UsageError(
            "--storage: expected a URL like sqlite:///studies.sqlite3, postgresql://user:password@host/database or "
            "journal:FILE, found one without a known beginning"
        ) from error


def local_file(url: str) -> Path | None:
    """Return the file behind a storage's URL; None if it is not a local file."""
    if url.startswith(JOURNAL):
        return Path(url.removeprefix(JOURNAL))
    parts = make_url(url)
    return Path(parts.database) if parts.get_backend_name() == "sqlite" and parts.database else None
