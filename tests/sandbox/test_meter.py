"""Time and memory of a box are measured from outside: what a detector does to its own clocks changes nothing."""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np
import pytest

from tests.helpers.boxed import Sums
from tsadbench import Recording
from tsadbench.sandbox import Box, Construction

pytestmark = pytest.mark.processes
ROWS = Recording("r", np.zeros((3, 2)), ("a", "b"))


def burn(seconds: float) -> None:
    start = time.process_time()
    while time.process_time() - start < seconds:
        sum(range(10_000))


class StopsTheClocks(Sums):
    """Works for half a second of CPU time, with all clocks of Python standing still for everybody else."""

    def _fit(self, recordings):
        burn(0.5)
        time.perf_counter = time.process_time = time.monotonic = time.time = lambda: 0.0


class LetsOthersWork(Sums):
    """Has another process do the work; waits for it when it is fitted, not when it scores."""

    code = "import time\nwhile time.process_time() < {}: pass\n{}"

    def _fit(self, recordings):
        subprocess.run([sys.executable, "-c", self.code.format(0.5, "")], check=True)

    def _score(self, recording):
        code = self.code.format(0.5, "print('done', flush=True); time.sleep(60)")
        worker = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        worker.stdout.readline()
        return super()._score(recording)


class Swells(Sums):
    def _fit(self, recordings):
        np.ones(20 * 2**20).sum()  # 160 MiB, gone when it returns


def fitted(cls):
    box = Box(Construction.of(cls, {}), threads=1)
    box.fit((ROWS,))
    return box


def test_a_detector_that_stops_its_clocks_is_timed_all_the_same():
    with fitted(StopsTheClocks) as box:
        assert box.costs.fit_seconds >= 0.5
        assert box.costs.fit_cpu_seconds >= 0.5


def test_work_of_other_processes_counts_whether_they_have_ended_or_not():
    with fitted(LetsOthersWork) as box:
        # /proc counts the times of other processes in hundredths of a second.
        assert box.costs.fit_cpu_seconds >= 0.47
        before = box.costs.fit_cpu_seconds
        box.score(ROWS)
        assert box.costs.score_cpu_seconds >= 0.47
        assert box.costs.fit_cpu_seconds == before


def test_memory_that_was_freed_again_counts():
    with fitted(Sums) as plain, fitted(Swells) as swollen:
        assert swollen.costs.peak_memory_mib - plain.costs.peak_memory_mib > 100
