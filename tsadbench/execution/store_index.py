"""What lists of trials need of a store's records, kept beside them so that a large store is listed in a second.

The index is a cache: an entry counts only as long as the record's file is the one it was made from, and without the
index everything is read again. Small stores have none.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from tsadbench.base.status import Status
from tsadbench.errors import BrokenTrialError
from tsadbench.execution.record import Record
from tsadbench.execution.stored_files import open_regular
from tsadbench.utils.text import one_line

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_INDEX = ".index.json"
_FORMAT = 1
# From how many trials a store has an index, and what share of them is read again before it is written anew.
_LEAST = 1000
_SHARE = 0.01
# An entry has some 300 bytes.
_MOST_BYTES = 2**30
# A file system's clock ticks every few milliseconds: a file that is younger may change again within one tick.
_YOUNG_NS = 2_000_000_000


class Listed(NamedTuple):
    """What lists show of a trial: fields of its record, and when it started."""

    trial: str
    dataset: str
    protocol: str
    detector: str
    label: str
    seed: int
    threads: int
    status: Status
    fit_seconds: float | None
    score_seconds: float | None
    started: str | None
    scoring: str

    @classmethod
    def of(cls, record: Record) -> Listed:
        """Return what lists show of a record."""
        fields = {name: getattr(record, name) for name in cls._fields if name != "started"}
        started = record.manifest.get("started")
        return cls(started=None if started is None else one_line(str(started)), **fields)


# Inode, size, time of content and time of any change: no program can set the last.
_Stamp: TypeAlias = tuple[int, int, int, int]
_Entries: TypeAlias = dict[str, tuple[_Stamp, Listed]]


def listed(
    folder: Path,
    trials: Sequence[str],
    record_file: str,
    read: Callable[[str], Record],
    new_folder: Callable[[], Path],
) -> tuple[list[Listed], dict[str, str]]:
    """Return what lists need of every trial, and why some cannot be read, by their names.

    Parameters
    ----------
    folder, trials
        The store's folder, and the trials' names.
    record_file
        The name of a record's file in a trial's folder.
    read
        Returns a trial's record, or raises a StoreError.
    new_folder
        Makes a folder in the store that the store removes if this process is killed.
    """
    known = _read(folder / _INDEX) if len(trials) >= _LEAST else {}
    fresh: _Entries = {}
    broken: dict[str, str] = {}
    found: list[Listed] = []
    n_new = 0
    young = time.time_ns() - _YOUNG_NS
    for trial in trials:
        stamp = _stamp(os.path.join(folder, trial, record_file))
        entry = known.get(trial)
        if entry is None or entry[0] != stamp:
            try:
                entry = stamp, Listed.of(read(trial))
            except BrokenTrialError as error:
                broken[trial] = str(error)
                continue
            n_new += max(stamp[2:]) < young
        if max(stamp[2:]) < young:
            fresh[trial] = entry
        found.append(entry[1])
    n_gone = len(known.keys() - fresh.keys())
    if len(trials) >= _LEAST and n_new + n_gone > _SHARE * len(trials):
        _write(folder, fresh, new_folder)
    return found, broken


def _stamp(file: str) -> _Stamp:
    try:
        found = os.stat(file)
    except OSError:
        return 0, 0, 0, sys.maxsize  # never old enough to be kept; reading it says what is wrong
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _read(file: Path) -> _Entries:
    """Return an index; an empty one if there is none, or it is not one."""
    try:
        with open_regular(file, _MOST_BYTES) as content:
            version, rows = _adapter().validate_json(content.read())
    except (OSError, ValueError):
        return {}
    known = {trial: (stamp, row) for trial, stamp, row in rows if row.trial == trial}
    return known if version == _FORMAT else {}


def _write(folder: Path, entries: _Entries, new_folder: Callable[[], Path]) -> None:
    """Replace the index, whole or not at all; a store that cannot be written to goes without."""
    rows = [(trial, stamp, row) for trial, (stamp, row) in entries.items()]
    text = json.dumps([_FORMAT, rows], separators=(",", ":"))
    with contextlib.suppress(OSError):
        aside = new_folder()
        try:
            (aside / _INDEX).write_text(text, encoding="utf-8")
            os.replace(aside / _INDEX, folder / _INDEX)
        finally:
            shutil.rmtree(aside, ignore_errors=True)


@cache
def _adapter() -> TypeAdapter[tuple[int, list[tuple[str, _Stamp, Listed]]]]:
    from pydantic import TypeAdapter

    return TypeAdapter(tuple[int, list[tuple[str, _Stamp, Listed]]])
