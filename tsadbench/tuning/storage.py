"""Where studies are kept: SQLite, any database that Optuna takes, or a journal file on a shared disk."""

from __future__ import annotations

import warnings
from pathlib import Path

from optuna.exceptions import ExperimentalWarning
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from tsadbench.errors import UsageError

JOURNAL = "journal:"
# A process that has not been heard of for so long is gone, and its trial with it.
_HEARTBEAT_SECONDS, _GRACE_SECONDS = 60, 180
_LOCK_SECONDS = 60


def open_storage(url: str) -> BaseStorage:
    """Return the storage at a URL.

    Parameters
    ----------
    url
        What SQLAlchemy takes (``sqlite:///file``, ``postgresql://...``, ``mysql://...``), or ``journal:FILE``.

    Raises
    ------
    UsageError
        If it is no such URL, its driver is not installed, or it cannot be opened.
    """
    shown = shown_url(url)
    try:
        if url.startswith(JOURNAL):
            return JournalStorage(JournalFileBackend(url.removeprefix(JOURNAL)))
        local = make_url(url).get_backend_name() == "sqlite"
        with warnings.catch_warnings():
            # Optuna has called heartbeats experimental since 2.
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
    """Return a storage's URL as it may be shown and written down: without a password.

    Raises
    ------
    UsageError
        If it is no URL.

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
    """Return the file behind a storage's URL; None where it lies elsewhere."""
    if url.startswith(JOURNAL):
        return Path(url.removeprefix(JOURNAL))
    parts = make_url(url)
    return Path(parts.database) if parts.get_backend_name() == "sqlite" and parts.database else None
