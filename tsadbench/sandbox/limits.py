"""What a trial may use, and how its end is told where it used more or broke down."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass, field
from typing import BinaryIO

import psutil

from tsadbench.execution.record import Status

# A detector that writes more than this has run wild; the disk belongs to others too.
MAX_LOG_BYTES = 256 * 2**20
# Looking at memory walks over all processes of the machine: seldom, where it only serves the record.
_POLL_SECONDS = 0.1
_MEMORY_SECONDS = 0.5


class BoxFailure(Exception):  # noqa: N818 - not an error of the harness: a result
    """A trial's end without scores.

    Parameters
    ----------
    status
        The record's status.
    reason
        One line.
    traceback
        The detector's, where there is one.
    """

    def __init__(self, status: Status, reason: str, traceback: str = "") -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.traceback = traceback


class Interrupted(BaseException):
    """The run was told to stop."""


@dataclass(slots=True)
class Limits:
    """What one trial may use; its clock starts with its first box.

    Parameters
    ----------
    timeout
        Wall-clock seconds for the whole trial; None does not limit it.
    memory_mib
        Resident size of the box and its children; None does not limit it.
    stop
        Set by whoever wants the trial to end.
    """

    timeout: float | None = None
    memory_mib: float | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    _start: float | None = None

    def watch(self, pid: int, log: BinaryIO) -> Watch:
        """Return a watch over a process and the log it writes, under these limits."""
        if self._start is None:
            self._start = time.monotonic()
        return Watch(self, pid, log)

    @property
    def over_time(self) -> bool:
        """Whether the trial's time is up."""
        if self.timeout is None or self._start is None:
            return False
        return time.monotonic() - self._start > self.timeout


class Watch:
    """Looks after one box: called often, it looks now and then, and raises where a limit is passed.

    Parameters
    ----------
    limits
        The trial's.
    pid
        The box's process.
    log
        The file that it writes to.
    """

    def __init__(self, limits: Limits, pid: int, log: BinaryIO) -> None:
        self.peak_memory_mib = 0.0
        self._limits = limits
        self._pid = pid
        self._log = log
        self._next = 0.0
        self._next_memory = 0.0

    def __call__(self) -> None:
        """Look, where it is time to.

        Raises
        ------
        BoxFailure
            If the time is up, or the memory or the log too large.
        Interrupted
            If the run was told to stop.
        """
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + _POLL_SECONDS
        if self._limits.stop.is_set():
            raise Interrupted
        if self._limits.over_time:
            raise BoxFailure("timeout", f"not done after {self._limits.timeout:g} s (--timeout)")
        if os.fstat(self._log.fileno()).st_size > MAX_LOG_BYTES:
            raise BoxFailure("error", f"it wrote more than {MAX_LOG_BYTES // 2**20} MiB to its log")
        limit = self._limits.memory_mib
        if limit is not None or now >= self._next_memory:
            self._next_memory = now + _MEMORY_SECONDS
            self._look_at_memory(limit)

    def _look_at_memory(self, limit: float | None) -> None:
        used = resident_mib(self._pid)
        self.peak_memory_mib = max(self.peak_memory_mib, used)
        if limit is not None and used > limit:
            raise BoxFailure("memory", f"{used:.0f} MiB resident, more than {limit:g} MiB (--memory)")


def family(pid: int) -> list[psutil.Process]:
    """Return a process and its descendants, as far as they are alive."""
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.Error:
        return []


def resident_mib(pid: int) -> float:
    """Return the resident size of a process and its descendants."""
    total = 0
    for process in family(pid):
        try:
            total += process.memory_info().rss
        except psutil.Error:
            continue
    return total / 2**20
