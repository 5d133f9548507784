"""Resource limits of a trial, and the failure raised when one is exceeded."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass, field
from typing import BinaryIO

from tsadbench.base.status import Status
from tsadbench.sandbox.process_tree import resident_mib
from tsadbench.utils.text import one_line, printable

# A detector that writes more than this is out of control, and others share the disk.
MAX_LOG_BYTES = 256 * 2**20
# Measuring memory walks over all processes of the machine: done less often if there is no limit to check.
_POLL_SECONDS = 0.1
_MEMORY_SECONDS = 0.5


class BoxFailure(Exception):  # noqa: N818 - not an error of the harness: a result
    """A trial ended without scores.

    Parameters
    ----------
    status
        The record's status.
    reason
        One line. What is no printable character of it becomes an escape: the detector may have written it.
    traceback
        The detector's, if it raised an error.
    """

    def __init__(self, status: Status, reason: str, traceback: str = "") -> None:
        super().__init__(one_line(reason))
        self.status = status
        self.reason = one_line(reason)
        self.traceback = printable(traceback, lines=True)


class Interrupted(BaseException):
    """The run was asked to stop."""


@dataclass(slots=True)
class Limits:
    """The limits of one trial; its clock starts with its first box.

    Parameters
    ----------
    timeout
        Wall-clock seconds for the whole trial; None: no limit.
    memory_mib
        Resident size of the box's process tree; None: no limit.
    stop
        Set it to end the trial.
    sealed_only
        Whether a box that the kernel does not seal ends the trial before anything crosses.
    """

    timeout: float | None = None
    memory_mib: float | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    sealed_only: bool = False
    _start: float | None = None

    def watch(self, pid: int, log: BinaryIO, keeper: int = 0) -> Watch:
        """Return a watch over a process and its log, under these limits."""
        if self._start is None:
            self._start = time.monotonic()
        return Watch(self, pid, log, keeper)

    @property
    def over_time(self) -> bool:
        """Whether the trial's time is up."""
        if self.timeout is None or self._start is None:
            return False
        return time.monotonic() - self._start > self.timeout


class Watch:
    """Checks the limits of one box. It may be called often: it measures only now and then.

    The parent calls it while it waits for the box, so a limit needs neither a thread nor the detector's cooperation.

    Parameters
    ----------
    limits
        The trial's limits.
    pid
        The box's process.
    log
        The file that the box writes to.
    keeper
        As for `process_tree`.
    """

    def __init__(self, limits: Limits, pid: int, log: BinaryIO, keeper: int = 0) -> None:
        self.peak_memory_mib = 0.0
        # Copies of the process, which have watches of their own: the memory that they share would count again.
        self.forked: set[int] = set()
        self._limits = limits
        self._pid = pid
        self._keeper = keeper
        self._log = log
        self._next = 0.0
        self._next_memory = time.monotonic() + _MEMORY_SECONDS

    def __call__(self) -> None:
        """Check the limits if the polling interval has passed.

        Raises
        ------
        BoxFailure
            If the time is up, or the memory or the log too large.
        Interrupted
            If the run was asked to stop.
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
            self._check_memory(limit)

    def _check_memory(self, limit: float | None) -> None:
        used = resident_mib(self._pid, self._keeper, self.forked)
        self.peak_memory_mib = max(self.peak_memory_mib, used)
        if limit is not None and used > limit:
            raise BoxFailure("memory", f"{used:.0f} MiB resident, more than {limit:g} MiB (--memory)")
