"""The run store: a folder of files, each written under a temporary name and then moved into place.

| file | holds |
|---|---|
| `store.json` | the version of this layout, the planned trials, the tables shown with them (`About`) |
| `records/<trial>.json` | a trial's record; written last, so a trial is complete or absent |
| `scores/<scoring identity>.npz` | its scores, shared by trials that differ only in judging |
| `contributions/<scoring identity>.npz` | its contributions, if requested |
| `logs/<trial>.txt` | what its detector printed, and its traceback if it failed |
| `checks/*.json` | reports of `tsadbench check` |

Several processes may write to a store at once, without locks. A store may come from a stranger, so reads are limited.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import stat
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, field, replace
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
import psutil
from numpy.lib import format as npy
from pydantic import TypeAdapter
from pydantic.dataclasses import dataclass

from tsadbench.errors import BrokenTrialError, BrokenTrialWarning, StoreError, UsageError
from tsadbench.execution.judging import Shapes, arrays_hash
from tsadbench.execution.record import SCHEMA, Record
from tsadbench.execution.trial import Outcome
from tsadbench.utils.arrays import Float32Array, FloatArray
from tsadbench.utils.files import UNFINISHED, open_regular, replacing, require_own_folder
from tsadbench.utils.text import label_fault, one_line, printable

CHECKS = "checks"
_MARKER = "store.json"
_FOLDERS = (_RECORDS, _SCORES, _CONTRIBUTIONS, _LOGS) = ("records", "scores", "contributions", "logs")
# Size limits. Records have some ten thousand bytes; the scores of 10^8 rows fit.
_MOST_RECORD_BYTES, _MOST_LOG_BYTES, _MOST_ARRAY_BYTES = 2**24, 2**26, 2**31
# The header of an array of floats has 128 bytes.
_LONGEST_HEADER = 1000


@dataclass(frozen=True)
class About:
    """What a store knows about its runs."""

    schema: int  # the version of the layout
    planned: dict[str, str] = field(default_factory=dict)  # description of a trial -> the newest planned one
    against: dict[str, str] = field(default_factory=dict)  # data set -> protocol of the shipped table shown with it
    sessions: dict[str, dict[str, int]] = field(default_factory=dict)  # data set -> split -> independent sessions


class Store:
    """A run store. `create` and `open` return one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # Skipped broken trials: name -> reason.
        self.broken: dict[str, str] = {}

    @classmethod
    def create(cls, path: Path) -> Store:
        """Open the store at this path, or create it.

        Raises a UsageError if the path is not writable or is a folder with other files, a StoreError if the store has
        another schema.
        """
        store = cls(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
            require_own_folder(path, _MARKER, "a run store")
            if not (path / _MARKER).exists():
                store._write(path / _MARKER, lambda stream: stream.write(json.dumps({"schema": SCHEMA}).encode()))
            store._check()
            for name in _FOLDERS:
                (path / name).mkdir(exist_ok=True)
            with tempfile.TemporaryFile(dir=path / _RECORDS):
                store._remove_unfinished()
        except OSError as error:
            message = f"{path}: cannot be written to ({error.strerror}); choose another folder"
            raise UsageError(message, field="out") from error
        return store

    @classmethod
    def open(cls, path: Path) -> Store:
        """Open the store at this path; a UsageError if there is none, a StoreError if it has another schema."""
        if not is_store(path):
            raise UsageError(f"{path} is not a run store: expected a folder written by `tsadbench run --out`")
        store = cls(path)
        store._check()
        return store

    def add(self, outcome: Outcome) -> None:
        """Write a trial, replacing a trial of the same identity. Raises a StoreError if that fails (a full disk)."""
        record = outcome.record
        log = self.path / _LOGS / f"{record.trial}.txt"
        with self._reported("a trial cannot be written"):
            for arrays, folder in ((outcome.scores, _SCORES), (outcome.contributions, _CONTRIBUTIONS)):
                if arrays:
                    self._write(self._arrays_file(record, folder), partial(np.savez, **dict[str, Any](arrays)))
            if outcome.log:
                self._write(log, lambda stream: stream.write(outcome.log.encode(errors="replace")))
            else:
                log.unlink(missing_ok=True)
        self.put(record)

    def about(self) -> About:
        """Return what the store knows about its runs; a StoreError if its file cannot be read."""
        marker = self.path / _MARKER
        try:
            with open_regular(marker, _MOST_RECORD_BYTES) as stream:
                return TypeAdapter(About).validate_json(stream.read())
        except (OSError, ValueError) as error:
            raise StoreError(f"{marker}: cannot be read ({one_line(str(error), 200)})") from error

    def remember(self, **facts: dict[str, Any]) -> None:
        """Add to fields of `About`. If two processes do this at the same moment, one change may be lost."""
        about = self.about()
        merged: dict[str, Any] = {name: {**getattr(about, name), **found} for name, found in facts.items()}
        now = replace(about, **merged)
        if now != about:
            with self._reported("the plan of a run cannot be stored"):
                self._write(self.path / _MARKER, lambda stream: stream.write(json.dumps(asdict(now)).encode()))

    def put(self, record: Record) -> None:
        """Write a record, for instance of re-judged scores. Raises a StoreError if it cannot be written."""
        with self._reported("a trial cannot be written"):
            self._write(self._record_file(record.trial), lambda stream: stream.write(record.to_json().encode()))

    def trials(self) -> list[str]:
        """Return the names of all trials, sorted. Reads no record."""
        return sorted(file.stem for file in (self.path / _RECORDS).glob("[!.]*.json"))

    def odd_files(self) -> list[str]:
        """Return the paths of links, pipes and devices, which no run writes into a store."""
        modes = {file: file.lstat().st_mode for file in self.path.rglob("*")}
        odd = (file for file, mode in modes.items() if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode))
        return sorted(file.relative_to(self.path).as_posix() for file in odd)

    def record(self, trial: str) -> Record:
        """Return a trial's record; a BrokenTrialError if there is none, or it cannot be read."""
        file = self._record_file(trial)
        try:
            with open_regular(file, _MOST_RECORD_BYTES) as stream:
                record = Record.from_json(stream.read(), str(file))
        except OSError as error:
            reason = f"cannot be read ({error.strerror or error})"
            raise BrokenTrialError(f"{file}: {reason}; remove that trial and run it again") from error
        if record.trial != trial:
            raise BrokenTrialError(f"{file}: it is the record of another trial, {record.trial}; remove this file")
        return record

    def read(self) -> tuple[tuple[Record, ...], dict[str, str]]:
        """Return the readable records, and the reasons why others are unreadable, by name.

        Oldest first, but those that the last commands planned come last: code may have been changed back.
        """
        records, broken, planned = [], {}, {*self.about().planned.values()}
        for trial in self.trials():
            try:
                records.append(self.record(trial))
            except BrokenTrialError as error:
                broken[trial] = str(error)
        records.sort(key=lambda one: (one.trial in planned, str(one.manifest.get("started")), one.trial))
        return tuple(records), broken

    def records(self) -> tuple[Record, ...]:
        """Return the readable records as `read` does; warn about each other trial (`BrokenTrialWarning`)."""
        records, broken = self.read()
        for trial, reason in broken.items():
            self.pass_over(trial, reason)
        return records

    def find(self, trial: str) -> Record | None:
        """Return the record of the trial with this identity; None if it is absent or broken and must be run."""
        try:
            record = self.record(trial)
        except BrokenTrialError:
            return None
        return record if record.status != "ok" or self.holds(record.scoring) else None

    def pass_over(self, trial: str, reason: object) -> None:
        """Mark a trial as broken, and warn about it once (`BrokenTrialWarning`)."""
        if trial not in self.broken:
            self.broken[trial] = str(reason) if trial in str(reason) else f"trial {trial}: {reason}"
            warnings.warn(BrokenTrialWarning(self.broken[trial]), stacklevel=3)

    def remove(self, trials: Iterable[str]) -> None:
        """Remove trials, and scores that no other trial uses. A StoreError if one is missing or cannot be removed."""
        scorings = set()
        for trial in trials:
            if record := self.find(trial):
                scorings.add(record.scoring)
            with self._reported(f"trial {trial} cannot be removed"):
                _remove(self._record_file(trial))
                (self.path / _LOGS / f"{trial}.txt").unlink(missing_ok=True)
        if scorings:
            scorings -= {record.scoring for record in self.read()[0]}
        for scoring in scorings:
            for folder in (_SCORES, _CONTRIBUTIONS):
                with contextlib.suppress(OSError):
                    _remove(self.path / folder / f"{scoring}.npz")

    def log(self, trial: str) -> str:
        """Return a trial's log as printable text, with the traceback if it failed; "" if there is none."""
        try:
            with open_regular(self.path / _LOGS / f"{trial}.txt", _MOST_LOG_BYTES) as stream:
                return printable(stream.read().decode(errors="replace"), lines=True)
        except OSError:
            return ""

    def holds(self, scoring: str) -> bool:
        """Whether the store has the scores of a scoring identity."""
        return os.path.lexists(self.path / _SCORES / f"{scoring}.npz")

    def has_contributions(self, record: Record) -> bool:
        """Whether the store has a trial's contributions."""
        return "contributions_hash" in record.manifest and os.path.lexists(self._arrays_file(record, _CONTRIBUTIONS))

    def scores(self, record: Record, shapes: Shapes | None = None) -> dict[str, FloatArray]:
        """Return a trial's scores by ``<role>/<episode>/<recording>``, the role train, calibration or test.

        ``shapes`` are those of the arrays to read; None reads all. Raises a BrokenTrialError if they cannot be read,
        are not of these shapes, or are not those of the record (the files of a trial are not written in one step).
        """
        return self._arrays(record, _SCORES, shapes)

    def contributions(self, record: Record, shapes: Shapes | None = None) -> dict[str, Float32Array]:
        """Return a trial's contributions by ``<episode>/<recording>``; empty if there are none. As for `scores`."""
        return self._arrays(record, _CONTRIBUTIONS, shapes) if self.has_contributions(record) else {}

    def _arrays(self, record: Record, folder: str, shapes: Shapes | None) -> dict[str, Any]:
        file = self._arrays_file(record, folder)
        try:
            with open_regular(file, _MOST_ARRAY_BYTES) as stream:
                arrays = read_arrays(stream, shapes)
        except Exception as error:  # corrupt files can raise anything here
            reason = error.strerror if isinstance(error, OSError) and error.strerror else error
            raise BrokenTrialError(
                f"trial {record.trial}: {file}: cannot be read ({reason}); run that trial again"
            ) from error
        if arrays_hash(arrays) != record.manifest.get(f"{folder}_hash"):
            reason = "its arrays are not those of the record: edited, or of another run"
            raise BrokenTrialError(f"trial {record.trial}: {file}: {reason}; run that trial again")
        return arrays

    def _record_file(self, trial: str) -> Path:
        return self.path / _RECORDS / f"{trial}.json"

    def _arrays_file(self, record: Record, folder: str) -> Path:
        return self.path / folder / f"{record.scoring}.npz"

    def _write(self, file: Path, write: Callable[[IO[bytes]], object]) -> None:
        with replacing(file) as stream:
            write(stream)
            if file.is_dir():  # in a damaged store: a file cannot replace a folder
                _remove(file)

    @contextlib.contextmanager
    def _reported(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StoreError(f"{self.path}: {what} ({error.strerror or error})") from error

    def _remove_unfinished(self) -> None:
        """Remove unfinished files of processes of this machine that have ended."""
        ours = re.compile(re.escape(f"{UNFINISHED}{socket.gethostname()}-") + r"(\d+)-")
        for file in self.path.rglob(f"{UNFINISHED}*"):
            if (writer := ours.match(file.name)) and not psutil.pid_exists(int(writer[1])):
                file.unlink(missing_ok=True)

    def _check(self) -> None:
        if (schema := self.about().schema) != SCHEMA:
            raise StoreError(
                f"{self.path}: expected a store of schema {SCHEMA}, found {schema!r:.40}; choose another folder"
            )
        for name in _FOLDERS:
            if (self.path / name).is_symlink():
                raise StoreError(f"{self.path / name}: it is a link, and could lead anywhere; remove it")


def is_store(path: Path) -> bool:
    """Whether a folder is marked as a run store."""
    return (path / _MARKER).is_file()


def require_outside_stores(folder: Path) -> None:
    """Raise a UsageError if tables would be written into a file or a run store."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder}: expected a folder (it may be new), found a file", field="write")
    found = next((one for one in (folder, *folder.resolve().parents) if is_store(one)), None)
    if found is not None:
        raise UsageError(f"{folder}: {found} is a run store; choose another folder for tables", field="write")


def read_arrays(stream: IO[bytes], shapes: Shapes | None = None) -> dict[str, Any]:
    """Return the arrays of a file that `numpy.savez` wrote, float64 or float32.

    ``shapes`` are those of the arrays to read; None reads all. Uses no more memory than the file has bytes. A corrupt
    file can raise any exception.
    """
    with zipfile.ZipFile(stream) as archive:
        members = {one.filename.removesuffix(".npy"): one for one in archive.infolist()}
        if sum(one.file_size for one in members.values()) > os.fstat(stream.fileno()).st_size:
            raise ValueError("its arrays are larger than the file: expected them uncompressed")
        arrays = {}
        for name in members if shapes is None else shapes:
            if fault := label_fault(name) if name in members else "it is missing":
                raise ValueError(f"array {name!r:.200}: {fault}")
            with archive.open(members[name]) as member:
                array = npy.read_array(member, allow_pickle=False, max_header_size=_LONGEST_HEADER)
            if array.dtype not in (np.float64, np.float32):
                raise ValueError(f"{name}: expected floating-point numbers, found {array.dtype}")
            if shapes is not None and array.shape != shapes[name]:
                raise ValueError(f"{name}: expected {list(shapes[name])}, found {list(array.shape)}")
            arrays[name] = array
    return arrays


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
