"""The folders in which boxes may write: one for each launcher, so that killed runs leave little and are cleaned up."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path

import psutil

_PREFIX = "tsadbench-box-"
# Inside a room. The working directory stays empty until the detector writes there.
WORK, TEMPORARY, HOME = "empty", "temporary", "home"


class Building:
    """A launcher's folder, locked as long as its process lives; boxes have rooms in it, or mount theirs over it."""

    def __init__(self) -> None:
        parent = Path(tempfile.gettempdir())
        for folder in parent.glob(f"{_PREFIX}*"):
            _remove_if_left(folder)
        self.folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=parent)).resolve()
        self._lock = os.open(self.folder, os.O_RDONLY)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def remove(self) -> None:
        """Remove the folder with all its rooms."""
        shutil.rmtree(self.folder, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.close(self._lock)


def move_in(room: str) -> None:
    """Make a room this process's working directory, its home and the place of its temporary files."""
    for name in (WORK, TEMPORARY, HOME):
        os.mkdir(os.path.join(room, name), 0o700)
    os.chdir(os.path.join(room, WORK))
    os.environ["HOME"] = os.path.join(room, HOME)
    os.environ["XDG_CACHE_HOME"] = os.path.join(room, HOME, ".cache")
    os.environ["TMPDIR"] = tempfile.tempdir = os.path.join(room, TEMPORARY)


def _remove_if_left(folder: Path) -> None:
    """Remove this user's folder if the process that made it is gone."""
    with contextlib.suppress(OSError, ValueError):
        pid = int(folder.name.removeprefix(_PREFIX).partition("-")[0])
        if psutil.pid_exists(pid) or folder.lstat().st_uid != os.getuid():
            return
        # A process in another container, whose number means nothing here, holds the lock.
        lock = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(lock)
