"""What DPR-GM costs at SKAB's size, and how much memory a long recording takes.

The number of threads is the caller's: OMP_NUM_THREADS.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.noise import PRIOR, noise
from tsadbench_detectors.dprgm import DPRGM


@pytest.mark.parametrize("backbone", ["sage", "gcn", "gat", "transformer"])
def test_one_training_epoch_of_9405_rows(benchmark, backbone):
    training = noise(9_405)
    # The training errors that the fit ends with are part of the time: a fifth of an epoch's.
    benchmark.pedantic(DPRGM(prior=PRIOR, backbone=backbone, epochs=1).fit, args=(training,), rounds=3, warmup_rounds=1)


def test_scoring_37401_rows(benchmark):
    detector = DPRGM(prior=PRIOR, epochs=1).fit(noise(1_000))
    benchmark.pedantic(detector.score, args=(noise(37_401),), rounds=3, warmup_rounds=1)


# The whole process is watched, in one that has done nothing else.
MEMORY = """
import json, resource, time
import psutil
from tests.helpers.noise import PRIOR, noise
from tsadbench_detectors.dprgm import DPRGM

detector = DPRGM(prior=PRIOR, epochs=1).fit(noise(1_000))
recording = noise(10**6)
before = psutil.Process().memory_info().rss
start = time.perf_counter()
detector.score(recording)
seconds = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps({"growth_gib": (peak - before) / 2**30, "score_seconds": seconds}))
"""


def grown(benchmark) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2]
    )
    benchmark.extra_info.update(json.loads(done.stdout))


def test_memory_that_scoring_a_million_rows_adds(benchmark):
    benchmark.pedantic(grown, args=(benchmark,), rounds=1)
    if benchmark.extra_info:
        assert benchmark.extra_info["growth_gib"] <= 1.5
