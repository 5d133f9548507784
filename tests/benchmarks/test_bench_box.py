"""What the box costs beside the same detector called directly; ratios are taken inside one run."""

from __future__ import annotations

import statistics
import time

import numpy as np
import pytest

from tsadbench import Recording
from tsadbench.registry import load_detector
from tsadbench.sandbox import Box, Construction
from tsadbench.sandbox.launch import ForkServer

ROWS = Recording("rows", np.random.default_rng(0).normal(size=(9_405, 8)), tuple("abcdefgh"))
LARGE = Recording("large", np.random.default_rng(0).normal(size=(10**6, 8)), tuple("abcdefgh"))


@pytest.fixture(scope="module")
def unsealed():
    server = ForkServer(seal=False)
    yield server
    server.stop()


def seconds_of(work) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def opened(launcher=None) -> None:
    Box(Construction.of(load_detector("max-z"), {}), threads=1, launcher=launcher).close()


def directly() -> float:
    start = time.perf_counter()
    detector = load_detector("max-z")().fit(ROWS)
    detector.training_scores(ROWS)
    detector.score(ROWS)
    return time.perf_counter() - start


def boxed() -> None:
    with Box(Construction.of(load_detector("max-z"), {}), threads=1) as box:
        box.fit((ROWS,))
        box.training_scores()
        box.score(ROWS)


def test_a_trial_in_a_warm_box(benchmark):
    boxed()  # warms the server
    benchmark(boxed)
    if benchmark.stats is not None:
        benchmark.extra_info["directly_s"] = directly()
        benchmark.extra_info["overhead_s"] = benchmark.stats.stats.mean - benchmark.extra_info["directly_s"]


def test_the_seal(benchmark, unsealed):
    """A box that is opened and closed again, and what of its seconds are the seal's: sealed and unsealed in turn."""
    opened()
    opened(unsealed)
    benchmark(opened)
    if benchmark.stats is not None:
        extra = [seconds_of(opened) - seconds_of(lambda: opened(unsealed)) for _ in range(50)]
        benchmark.extra_info["seal_s"] = statistics.median(extra)


@pytest.mark.parametrize("recording", [ROWS, LARGE], ids=["9405 rows", "1000000 rows"])
def test_rows_cross_and_scores_come_back(benchmark, recording):
    with Box(Construction.of(load_detector("all-positive"), {}), threads=1) as box:
        box.fit((ROWS,))
        benchmark(box.score, recording)
