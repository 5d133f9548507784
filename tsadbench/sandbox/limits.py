"""The limits of a trial, and the resources its boxes use, measured from outside without trusting the detector."""

from __future__ import annotations

import contextlib
import math
import os
import stat
import sys
import threading
import time
from dataclasses import dataclass, field
from glob import glob
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import psutil

from tsadbench.base.status import Status
from tsadbench.sandbox.seal.walls import LARGEST_FILE
from tsadbench.utils.text import one_line, printable

# Fixed limits against detectors out of control, because others share the machine.
MAX_LOG_BYTES = 256 * 2**20
_MAX_FILES = 50_000
# The kernel's own limit (RLIMIT_NPROC) would not do: it counts all boxes of a user together, and never binds root.
_MAX_PROCESSES, _MAX_OPEN_FILES = 1024, 16_384
# Measuring memory and files visits all processes of the machine, so it happens less often without a limit.
_POLL_SECONDS = 0.1
_MEASURE_SECONDS = 0.25


class BoxFailure(Exception):  # noqa: N818 - not an error of the harness: a result
    """A trial ended without scores: its status, the reason in one line, and the detector's traceback if it raised.

    Unprintable characters are escaped. ``forbidden``: the detector opened something in a forbidden folder.
    """

    def __init__(self, status: Status, reason: str, traceback: str = "", *, forbidden: bool = False) -> None:
        super().__init__(one_line(reason))
        self.status, self.forbidden = status, forbidden
        self.reason = one_line(reason)
        self.traceback = printable(traceback, lines=True)


class Interrupted(BaseException):
    """The run was asked to stop."""


@dataclass(slots=True)
class Limits:
    """The limits of one trial; its clock starts with its first box, which sets ``start``.

    ``timeout`` are seconds for the whole trial, ``memory_mib`` the resident size of all processes of a box (None: no
    limit). Setting ``stop`` ends the trial. ``sealed_only`` fails the trial if the kernel does not seal its box.
    """

    timeout: float | None = None
    memory_mib: float | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    sealed_only: bool = False
    start: float | None = None


class Watch:
    """Measures one box and checks its limits. Call it as often as you like: it measures at intervals.

    The parent calls it while it waits for the box, so a limit needs neither a thread nor the detector's cooperation.
    It counts all processes in the process group of ``pid``, and the files in its ``room``. The copy of a box's process
    has no room and names the ``origin``'s watch.
    """

    def __init__(
        self, limits: Limits, pid: int, log: BinaryIO, room: str | None = None, origin: Watch | None = None
    ) -> None:
        self.peak_memory_mib = 0.0
        # The box's main process and its copies. They share memory, so each counts in its own watch only.
        self._mains: set[int] = set() if origin is None else origin._mains
        self._mains.add(pid)
        self._limits = limits
        self._pid = pid
        self._group: int = pid if origin is None else origin._group
        self._log = log
        self._room = room
        self._cpu_seconds = 0.0
        self._next = 0.0
        self._next_measure = time.monotonic() + _MEASURE_SECONDS

    def __call__(self) -> None:
        """Check the limits if the polling interval has passed; raise a BoxFailure, or Interrupted if asked to stop."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + _POLL_SECONDS
        if self._limits.stop.is_set():
            raise Interrupted
        self._limits.start = self._limits.start or now
        if self._limits.timeout is not None and now - self._limits.start > self._limits.timeout:
            raise BoxFailure("timeout", f"not finished after {self._limits.timeout:g} s (--timeout)")
        if os.fstat(self._log.fileno()).st_size > MAX_LOG_BYTES:
            raise BoxFailure("error", f"it wrote more than {MAX_LOG_BYTES // 2**20} MiB to its log")
        if self._limits.memory_mib is not None or now >= self._next_measure:
            self._next_measure = now + _MEASURE_SECONDS
            self._check_size()

    def cpu_seconds(self) -> float:
        """Return the CPU seconds of all threads and child processes so far, including ended ones.

        The total never falls: if processes can no longer be measured, it keeps its largest value so far.
        """
        with contextlib.suppress(OSError, psutil.Error):
            found = psutil.Process(self._pid).cpu_times()
            own = found.user + found.system
            if sys.platform == "linux":
                # A process's CPU clock counts nanoseconds; the times in /proc count hundredths of a second.
                own = time.clock_gettime((~self._pid << 3) | 2)  # MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED)
            total = own + found.children_user + found.children_system
            for pid in self.pids() - {self._pid}:
                with contextlib.suppress(psutil.Error):
                    total += sum(psutil.Process(pid).cpu_times()[:4])  # user, system, and those of its ended children
            self._cpu_seconds = max(self._cpu_seconds, total)
        return self._cpu_seconds

    def read_peak(self) -> float:
        """Return the peak resident size in MiB: of all processes when polled, of the box's main process at any time."""
        with contextlib.suppress(OSError, psutil.Error):
            self.peak_memory_mib = max(self.peak_memory_mib, _peak_mib(self._pid))
        return self.peak_memory_mib

    def _check_size(self) -> None:
        pids = self.pids()
        memory, tasks = 0, len(pids)
        opened: list[tuple[tuple[int, int], int]] = []
        for pid in pids:
            with contextlib.suppress(OSError, psutil.Error):  # just ended
                process = psutil.Process(pid)
                memory += process.memory_info().rss
                tasks += process.num_threads() - 1
                opened += _open_files(pid)
            if tasks > _MAX_PROCESSES:  # at once: more start while this measures
                raise BoxFailure("error", f"it runs more than {_MAX_PROCESSES} processes and threads")
            if len(opened) > _MAX_OPEN_FILES:
                raise BoxFailure("error", f"it keeps more than {_MAX_OPEN_FILES} files open")
        log = os.fstat(self._log.fileno())
        nameless = {**dict(opened), (log.st_dev, log.st_ino): 0}
        files = sum(nameless.values()) + (0 if self._room is None else _bytes_below(self._room))
        used, limit = memory / 2**20, self._limits.memory_mib
        self.peak_memory_mib = max(self.peak_memory_mib, used)
        if limit is not None and used > limit:
            raise BoxFailure("memory", f"{used:.0f} MiB resident, more than {limit:g} MiB (--memory)")
        if files > LARGEST_FILE:
            raise BoxFailure("error", f"it keeps more than {LARGEST_FILE // 2**20} MiB in files")

    def pids(self) -> set[int]:
        """Return the processes of the box's group that this watch counts."""
        found = set()
        for pid in psutil.pids():
            with contextlib.suppress(OSError):
                if os.getpgid(pid) == self._group:
                    found.add(pid)
        return found - (self._mains - {self._pid})


def _open_files(pid: int) -> list[tuple[tuple[int, int], int]]:
    """Return a process's open files, with their sizes if in memory or deleted and else 0; Linux only."""
    opened = []
    for path in glob(f"/proc/{pid}/fd/*"):
        with contextlib.suppress(OSError):
            found = os.stat(path)
            nameless = stat.S_ISREG(found.st_mode) and not found.st_nlink
            opened.append(((found.st_dev, found.st_ino), 512 * found.st_blocks * nameless))
    return opened


def _bytes_below(folder: str) -> float:
    """Return the size of all files below a folder; infinity if it cannot be read or has too many files."""
    total, n_files, waiting = 0, 0, [folder]
    while waiting and n_files < _MAX_FILES:
        try:
            with os.scandir(waiting.pop()) as found:
                for entry in islice(found, _MAX_FILES):
                    total += 512 * entry.stat(follow_symlinks=False).st_blocks
                    n_files += 1
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except (FileNotFoundError, NotADirectoryError):
            pass  # just removed
        except OSError:
            return math.inf
    return math.inf if n_files >= _MAX_FILES else total


def _peak_mib(pid: int) -> float:
    if sys.platform != "linux":
        return psutil.Process(pid).memory_info().rss / 2**20
    lines = Path(f"/proc/{pid}/status").read_bytes().splitlines()
    # Absent if the process has ended and is not reaped yet.
    return max((int(line.split()[1]) / 2**10 for line in lines if line.startswith(b"VmHWM:")), default=0.0)
