"""Measures a box's process from outside: what a detector says of its own time and memory counts for nothing."""

from __future__ import annotations

import contextlib
import sys
import time
from pathlib import Path

import psutil

from tsadbench.sandbox.process_tree import descendants

_LINUX = sys.platform == "linux"


class Meter:
    """Reads CPU time and memory of a process and of what it has started.

    A process that has ended, or that this system does not let be measured, keeps its last reading.

    Parameters
    ----------
    pid
        The process, as this process sees it.
    keeper
        As for `process_tree`.
    """

    def __init__(self, pid: int, keeper: int = 0) -> None:
        self._pid = pid
        self._keeper = keeper
        self._process: psutil.Process | None = None
        self._cpu_seconds = 0.0
        self._peak_memory_mib = 0.0

    def cpu_seconds(self) -> float:
        """Return the CPU seconds so far, of all threads, and of descendants whether they have ended or not."""
        with contextlib.suppress(OSError, psutil.Error):
            self._process = self._process or psutil.Process(self._pid)
            of_process = self._process.cpu_times()
            own = of_process.user + of_process.system
            if _LINUX:
                # A process's CPU clock counts nanoseconds; the times in /proc count hundredths of a second.
                own = time.clock_gettime((~self._pid << 3) | 2)  # MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED)
            ended = of_process.children_user + of_process.children_system
            self._cpu_seconds = max(self._cpu_seconds, own + ended + self._of_living_descendants())
        return self._cpu_seconds

    def peak_memory_mib(self) -> float:
        """Return the largest resident size so far of the process by itself."""
        with contextlib.suppress(OSError, psutil.Error):
            self._peak_memory_mib = max(self._peak_memory_mib, _peak_mib(self._pid))
        return self._peak_memory_mib

    def _of_living_descendants(self) -> float:
        total = 0.0
        for process in descendants(self._pid, self._keeper):
            with contextlib.suppress(psutil.Error):
                total += sum(process.cpu_times()[:4])  # user, system, and those of its children that have ended
        return total


def _peak_mib(pid: int) -> float:
    if not _LINUX:
        return psutil.Process(pid).memory_info().rss / 2**20
    lines = Path(f"/proc/{pid}/status").read_bytes().splitlines()
    # Absent if the process has ended and is not reaped yet.
    return max((int(line.split()[1]) / 2**10 for line in lines if line.startswith(b"VmHWM:")), default=0.0)
