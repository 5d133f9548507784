"""Clocks and meters: its own seconds and memory, as it would like them."""

from __future__ import annotations

import os
import resource
import time

import numpy as np

from tests.hostile.preamble import Hostile

SLOW = 0.5  # seconds, a little more than `takes_seconds`: the harness starts its clock after sending everything


class StopsTheClock(Hostile):
    """replaces the clocks of its process, then takes its time"""

    ends = ("ok",)
    takes_seconds = 0.4

    def steal(self):
        end = time.monotonic() + SLOW
        real = time.monotonic
        for name in ("time", "perf_counter", "process_time", "thread_time", "monotonic"):
            setattr(time, name, lambda: 0.0)
            setattr(time, f"{name}_ns", lambda: 0)
        while real() < end:
            sum(range(1000))
        return ()


class WorksElsewhere(Hostile):
    """has a child do the work, so that its own process has no CPU seconds"""

    ends = ("ok",)
    takes_seconds = 0.4

    def steal(self):
        pid = os.fork()
        if pid == 0:
            end = time.monotonic() + SLOW
            while time.monotonic() < end:
                pass
            os._exit(0)
        os.waitpid(pid, 0)
        return ()


class HidesItsMemory(Hostile):
    """says that it has used no memory"""

    ends = ("ok",)
    takes_mib = 300.0

    def steal(self):
        class Nothing:
            ru_maxrss = 0

        resource.getrusage = lambda who: Nothing()
        hoard = np.ones(2**23 * 5)
        time.sleep(1.2)
        del hoard
        return ()
