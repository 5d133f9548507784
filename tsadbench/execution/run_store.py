"""The run store: a folder with one folder per trial, each of which is complete or absent."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import random
import re
import shutil
import socket
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
import psutil

from tsadbench.errors import BrokenTrialError, BrokenTrialWarning, StoreError, UsageError
from tsadbench.execution import store_index
from tsadbench.execution.record import SCHEMA, Record
from tsadbench.execution.store_index import Listed
from tsadbench.execution.stored_files import CHECKS, Shapes, open_regular, read_arrays
from tsadbench.execution.trial import Outcome
from tsadbench.utils.arrays import Float32Array, FloatArray
from tsadbench.utils.atomic_files import exchange, require_own_folder
from tsadbench.utils.names import name_fault
from tsadbench.utils.text import printable

_Read = TypeVar("_Read")

_MARKER = "store.json"
_RECORD = "record.json"
# A trial's name. Other folders cost a look at what they hold.
_TRIAL = re.compile(r"[0-9a-f]{24}")
_SCORES = "scores.npz"
_CONTRIBUTIONS = "contributions.npz"
_LOG = "log.txt"
# The array of `_SCORES` that is no recording's.
_THRESHOLDS = "thresholds"
# Followed by the machine and the process that write it.
_UNFINISHED = ".unfinished-"
# How often a write that collides with others of the same trial is repeated, if folders cannot exchange their names.
_ATTEMPTS = 20
# Links and files that lie in a trial's place count as taken too.
_TAKEN = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR)
# Records have some ten thousand bytes, logs what a detector printed; the scores of 10^8 rows fit.
_MOST_RECORD_BYTES = 2**24
_MOST_LOG_BYTES = 2**26
_MOST_ARRAY_BYTES = 2**31


class Store:
    """A folder of trials, which several processes may write at once, without locks.

    A trial that is written again is replaced in one step: readers find the former one or the new one, whole. Only on
    file systems that cannot exchange two names (NFS, for instance) it is absent for a moment in between.

    Each trial's folder is named by the hash of what determines the trial and holds ``record.json``, ``scores.npz``
    (as `score_arrays` names them: [n_rows] float64; ``thresholds``: one an
    episode), if they were asked for ``contributions.npz`` (``<episode>/<recording>``: [n_rows, n_sensors] float32),
    and ``log.txt``: what the detector printed, and its traceback if it failed.

    Parameters
    ----------
    path
        The folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        # Why trials cannot be used that were met broken and passed over, by their names.
        self.broken: dict[str, str] = {}

    @classmethod
    def create(cls, path: Path) -> Store:
        """Return the store at this path, created if there is none.

        Raises
        ------
        UsageError
            If the path cannot be written to, or is a folder of something else.
        StoreError
            If it is a store of another schema.
        """
        store = cls(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
            require_own_folder(path, _MARKER, "a run store")
            if not (path / _MARKER).exists():
                (path / _MARKER).write_text(_marker(), encoding="utf-8")
            with tempfile.TemporaryFile(dir=path):
                pass
        except OSError as error:
            raise UsageError(f"--out {path}: cannot be written to ({error.strerror}); choose another folder") from error
        store._check_schema()
        store._tidy()
        return store

    @classmethod
    def open(cls, path: Path) -> Store:
        """Return the store at this path.

        Raises
        ------
        UsageError
            If there is none.
        StoreError
            If it is of another schema.
        """
        if not is_store(path):
            raise UsageError(f"{path} is not a run store: expected a folder that `tsadbench run --out` has written")
        store = cls(path)
        store._check_schema()
        return store

    def add(self, outcome: Outcome) -> None:
        """Write a trial; one of the same identity is replaced.

        Raises
        ------
        StoreError
            If it cannot be written (a full disk); nothing of it remains then.
        """
        try:
            with self._unfinished(outcome.record.trial) as folder:
                _write_record(folder, outcome.record, outcome.scores)
                if outcome.contributions:
                    np.savez(folder / _CONTRIBUTIONS, **dict[str, Any](outcome.contributions))
                if outcome.log:
                    (folder / _LOG).write_text(outcome.log, encoding="utf-8")
        except OSError as error:
            raise StoreError(f"{self.path}: a trial cannot be written ({error.strerror or error})") from error

    def replace_record(self, record: Record, arrays_of: str) -> None:
        """Write the record of scores that were judged again, beside the stored arrays of a trial.

        Parameters
        ----------
        record
            The record. A trial of its name is replaced.
        arrays_of
            The name of the trial whose scores, contributions and log it keeps: its own, or one of equal scores.

        Raises
        ------
        StoreError
            If it cannot be written; the store is as before then.
        """
        source = self._folder(arrays_of)
        try:
            with self._unfinished(record.trial) as folder:
                for name in (_CONTRIBUTIONS, _LOG):
                    if (source / name).is_file() and not (source / name).is_symlink():
                        _link(source / name, folder / name)
                _write_record(folder, record, self.scores(arrays_of))
        except OSError as error:
            raise StoreError(f"{self.path}: a trial cannot be written ({error.strerror or error})") from error

    def trials(self) -> list[str]:
        """Return the names of all trials, sorted; no record is read."""
        return sorted(self._names())

    def record(self, trial: str) -> Record:
        """Return the record of a trial.

        Raises
        ------
        BrokenTrialError
            If there is none, or it cannot be read.
        """
        file = os.path.join(self.path, trial, _RECORD)  # a text: making a path takes as long as reading the file
        try:
            with self._open(trial, _RECORD, _MOST_RECORD_BYTES) as content:
                text = content.read()
        except OSError as error:
            reason = f"cannot be read ({error.strerror or error})"
            raise BrokenTrialError(f"{file}: {reason}; remove that trial and run it again") from error
        record = Record.from_json(text, file)
        if record.trial != trial:
            raise BrokenTrialError(f"{file}: it is the record of another trial, {record.trial}; remove this folder")
        return record

    def records(self) -> tuple[Record, ...]:
        """Return all trials' records, oldest first.

        Raises
        ------
        StoreError
            If one of them is not a record.
        """
        return _oldest_first(map(self.record, self.trials()))

    def listed(self) -> tuple[tuple[Listed, ...], dict[str, str]]:
        """Return what lists need of the trials, oldest first, and why some cannot be read, by their names.

        A large store keeps an index of it: only records that have changed since are read.
        """
        found, broken = store_index.listed(self.path, self.trials(), _RECORD, self.record, self._new_folder)
        return tuple(sorted(found, key=lambda one: (str(one.started), one.trial))), broken

    def readable(self) -> tuple[Record, ...]:
        """Return the records that can be read, oldest first; a `BrokenTrialWarning` tells of each of the others."""
        records = []
        for trial in self.trials():
            try:
                records.append(self.record(trial))
            except BrokenTrialError as error:
                self.pass_over(trial, error)
        return _oldest_first(records)

    def pass_over(self, trial: str, reason: object) -> None:
        """Note that a trial is broken and is left out; a `BrokenTrialWarning` tells of it, once."""
        if trial not in self.broken:
            self.broken[trial] = str(reason) if trial in str(reason) else f"trial {trial}: {reason}"
            warnings.warn(BrokenTrialWarning(self.broken[trial]), stacklevel=3)

    def remove(self, trial: str) -> None:
        """Remove a trial atomically.

        Raises
        ------
        StoreError
            If it cannot be removed.
        """
        try:
            if trial not in self._names():
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            _discard(self._aside(self.path / trial))
        except OSError as error:
            raise StoreError(f"{self.path / trial}: cannot be removed ({error.strerror or error})") from error

    def log(self, trial: str) -> str:
        """Return what a trial's detector printed, and its traceback if it failed; printable, empty if there is none."""
        try:
            with self._open(trial, _LOG, _MOST_LOG_BYTES) as content:
                return printable(content.read().decode(errors="replace"), lines=True)
        except OSError:
            return ""

    def find(self, trial: str) -> Record | None:
        """Return the record of the trial of this identity; None if it is absent or incomplete, and must be run."""
        try:
            record = self.record(trial)
        except StoreError:
            return None
        return record if record.status != "ok" or self.has_scores(trial) else None

    def scores(self, trial: str, shapes: Shapes | None = None) -> dict[str, FloatArray]:
        """Return a trial's scores by ``<role>/<episode>/<recording>``, the role train, calibration or test.

        Parameters
        ----------
        trial
            Its name.
        shapes
            Of the arrays to read, as `score_arrays` returns them; None reads all.

        Raises
        ------
        BrokenTrialError
            If they cannot be read, or are not of these shapes.
        """
        return self._arrays(trial, _SCORES, shapes)

    def has_scores(self, trial: str) -> bool:
        """Whether a trial's scores were kept."""
        return self._has(trial, _SCORES)

    def has_contributions(self, trial: str) -> bool:
        """Whether a trial's contributions were kept."""
        return self._has(trial, _CONTRIBUTIONS)

    def contributions(self, trial: str, shapes: Shapes | None = None) -> dict[str, Float32Array]:
        """Return a trial's contributions by ``<episode>/<recording>``; empty if none were kept. As for `scores`."""
        if not self.has_contributions(trial):
            return {}
        return self._arrays(trial, _CONTRIBUTIONS, shapes)

    def _arrays(self, trial: str, name: str, shapes: Shapes | None) -> dict[str, Any]:
        try:
            with self._open(trial, name, _MOST_ARRAY_BYTES) as content:
                return read_arrays(content, shapes)
        except Exception as error:  # of a forged file NumPy and zipfile raise what comes
            reason = error.strerror if isinstance(error, OSError) and error.strerror else error
            file = os.path.join(self.path, trial, name)
            raise BrokenTrialError(f"{file}: cannot be read ({reason}); run that trial again") from error

    def _open(self, trial: str, name: str, most_bytes: int) -> IO[bytes]:
        """Open a file of a trial's folder; an OSError if it is no file, lies elsewhere, or is too large."""
        folder = os.path.join(self.path, trial)
        if fault := name_fault(trial):
            raise OSError(0, f"the name of its folder: {fault}")

        def opened() -> IO[bytes]:
            if os.path.islink(folder):
                raise OSError(0, "its folder is a link, and could lead anywhere")
            return open_regular(os.path.join(folder, name), most_bytes)

        return self._undisturbed(trial, opened)

    def _folder(self, trial: str) -> Path:
        """Return a trial's folder; a StoreError if its name leads elsewhere."""
        if fault := name_fault(trial):
            raise StoreError(f"{trial[:100]!r} cannot be the name of a trial: {fault}")
        return self.path / trial

    def _has(self, trial: str, name: str) -> bool:
        try:
            self._undisturbed(trial, (self._folder(trial) / name).lstat)
        except FileNotFoundError:
            return False
        except OSError:
            return True  # reading it says what is wrong
        return True

    def _undisturbed(self, trial: str, read: Callable[[], _Read]) -> _Read:
        """Read in a trial's folder; again if another process has replaced the folder meanwhile."""
        before: tuple[int, ...] | None = None
        while True:
            try:
                return read()
            except OSError:
                found = _version(os.path.join(self.path, trial))
                if found == before:
                    raise
                before = found

    def _names(self) -> Iterator[str]:
        """Yield the names of trials' folders; links are among them, to be reported, stores are not."""
        with os.scandir(self.path) as entries:
            yield from (
                entry.name
                for entry in entries
                if not entry.name.startswith(".")
                and entry.name != CHECKS
                and (entry.is_dir(follow_symlinks=False) or entry.is_symlink())
                and (_TRIAL.fullmatch(entry.name) or not is_store(Path(entry.path)))
            )

    @contextlib.contextmanager
    def _unfinished(self, trial: str) -> Iterator[Path]:
        """Give a folder to fill; it becomes the trial's at the end, and vanishes if that is not reached."""
        folder = self._new_folder()
        try:
            folder.chmod(0o755)  # mkdtemp's folders are their maker's alone
            yield folder
            _to_disk(folder)
            self._replace(folder, self._folder(trial))
        finally:
            _discard(folder)

    def _new_folder(self) -> Path:
        return Path(tempfile.mkdtemp(prefix=f"{_UNFINISHED}{socket.gethostname()}-{os.getpid()}-", dir=self.path))

    def _replace(self, unfinished: Path, final: Path) -> None:
        for attempt in range(_ATTEMPTS):
            try:
                unfinished.rename(final)
                break
            except OSError as error:  # a folder cannot be renamed over one that is not empty
                if error.errno not in _TAKEN:
                    raise
            with contextlib.suppress(FileNotFoundError):  # another process was faster
                if exchange(unfinished, final):  # the former trial is now the one that the caller removes
                    break
                time.sleep(random.random() * 0.001 * attempt)
                _discard(self._aside(final))
        # Without a break, others have written this trial each time: it is as if they had replaced this one at once.
        _flush(final.parent)

    def _aside(self, path: Path) -> Path:
        """Move a trial's folder, or what lies in its place, into a new folder, and return that."""
        aside = self._new_folder()
        try:
            if not path.is_symlink():
                path.chmod(0o700)  # a folder that cannot be written to cannot be moved either
            os.replace(path, aside / "replaced")
        except OSError:
            _discard(aside)
            raise
        return aside

    def _tidy(self) -> None:
        """Remove the unfinished folders of processes of this machine that no longer exist."""
        ours = re.compile(re.escape(f"{_UNFINISHED}{socket.gethostname()}-") + r"(\d+)-")
        for folder in self.path.glob(f"{_UNFINISHED}*"):
            writer = ours.match(folder.name)
            if writer and not psutil.pid_exists(int(writer[1])):
                _discard(folder)

    def _check_schema(self) -> None:
        marker = self.path / _MARKER
        try:
            with open_regular(marker, _MOST_RECORD_BYTES) as content:
                schema = json.loads(content.read())["schema"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise StoreError(f"{marker}: cannot be read ({error}); choose another --out") from error
        if schema != SCHEMA:
            raise StoreError(
                f"{self.path}: expected a store of schema {SCHEMA}, found {schema!r}; choose another --out"
            )


def is_store(path: Path) -> bool:
    """Whether a folder says of itself that it is a run store."""
    return (path / _MARKER).is_file()


def require_outside_stores(folder: Path) -> None:
    """Raise a UsageError if tables would be written into a run store, whose files and trials they would mix with."""
    found = next((one for one in (folder, *folder.resolve().parents) if is_store(one)), None)
    if found is not None:
        raise UsageError(f"--write {folder}: {found} is a run store; choose a folder of its own for tables")


def _marker() -> str:
    return json.dumps({"schema": SCHEMA}) + "\n"


def _write_record(folder: Path, record: Record, scores: Mapping[str, FloatArray]) -> None:
    (folder / _RECORD).write_text(record.to_json(), encoding="utf-8")
    thresholds = np.array([episode.threshold.value for episode in record.thresholds], dtype=np.float64)
    if scores:
        arrays: dict[str, Any] = {**scores, _THRESHOLDS: thresholds}  # numpy's stub wants bool here
        np.savez(folder / _SCORES, **arrays)


def _link(source: Path, target: Path) -> None:
    """Make a file appear a second time; files of a store are replaced, never written to."""
    try:
        os.link(source, target)
    except OSError:  # not every file system has links
        shutil.copyfile(source, target)


def _oldest_first(records: Iterable[Record]) -> tuple[Record, ...]:
    return tuple(sorted(records, key=lambda record: (str(record.manifest.get("started")), record.trial)))


def _discard(path: Path) -> None:
    """Remove what an interrupted or finished write has left, whatever it is."""
    with contextlib.suppress(OSError):
        if path.is_symlink() or not path.is_dir():
            path.unlink()
        else:
            path.chmod(0o700)
            shutil.rmtree(path)


def _version(folder: str) -> tuple[int, ...]:
    """Return what differs between a folder and the one that replaces it; a number is soon given to another folder."""
    try:
        found = os.stat(folder)
    except OSError:
        return ()
    return found.st_ino, found.st_ctime_ns, found.st_mtime_ns


def _to_disk(folder: Path) -> None:
    """Wait until a folder's files are on the disk: after a power cut, a name could otherwise have no content."""
    for file in folder.iterdir():
        _flush(file)
    _flush(folder)


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
