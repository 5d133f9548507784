"""What the floors and the statistics cost at a plant's size: time in passes over the data, memory in copies of it.

100,000 rows of 50 sensors to learn from and as many to score; TSADBENCH_BENCH_ROWS=1000000 asks for a million. One
pass sums the training rows by sensor. Each detector runs in its own process, on one thread.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tsadbench.registry import floors

N_ROWS = int(os.environ.get("TSADBENCH_BENCH_ROWS", "100000"))
STATISTICS = ("t2", "t2-q", "isolation-forest")

# Rows of four slow cycles, noise, and sensors that are on or off. The kernel's peak is reset before each call.
PROGRAM = """
import gc, json, sys, time
import numpy as np
from tsadbench import Recording
from tests.helpers.detectors import load_detector

def plant(n_rows, seed):
    generator = np.random.default_rng(seed)
    cycles = np.sin(np.arange(n_rows)[:, None] / [40, 300, 2000, 9000] + seed)
    values = cycles @ np.random.default_rng(9).normal(size=(4, 50)) + 0.3 * generator.normal(size=(n_rows, 50))
    values[:, 40:] = values[:, 40:] > 0.5
    values.flags.writeable = False
    return Recording("plant", values, tuple(f"s{i}" for i in range(50)))

def resident(line):
    return next(int(text.split()[1]) for text in open("/proc/self/status") if text.startswith(line)) * 1024

def measured(work):
    gc.collect()
    with open("/proc/self/clear_refs", "w") as peak:
        peak.write("5")
    before, start = resident("VmRSS"), time.process_time()
    work()
    return time.process_time() - start, (resident("VmHWM") - before) / training.values.nbytes

cls, training, test = load_detector(sys.argv[1]), plant(int(sys.argv[2]), 0), plant(int(sys.argv[2]), 1)
cls().fit(training.rows(0, 500)).score(test.rows(0, 500))  # imports and first calls do not count
detector, found = cls(), {}
one_pass = min(measured(lambda: training.values.sum(axis=0))[0] for _ in range(5))
for name, work in (
    ("fit", lambda: detector.fit(training)),
    ("training_scores", lambda: detector.training_scores(training)),
    ("score", lambda: detector.score(test)),
):
    seconds, growth = measured(work)
    found |= {f"{name}_passes": round(seconds / one_pass, 1), f"{name}_memory": round(growth, 2)}
    found[f"{name}_cpu_seconds"] = round(seconds, 2)
print(json.dumps(found))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of one call is read from /proc")
@pytest.mark.parametrize("name", [*floors(), *STATISTICS])
def test_a_plants_rows(benchmark, name):
    def run() -> dict[str, float]:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, name, str(N_ROWS)],
            capture_output=True,
            text=True,
            check=True,
            cwd=Path(__file__).parents[2],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        return json.loads(done.stdout)

    found = benchmark.pedantic(run, rounds=1)
    benchmark.extra_info.update(found)
    print(name, found)
    assert all(found[f"{call}_memory"] <= 2 for call in ("fit", "training_scores", "score"))
