"""What the box costs beside the same detector called directly; ratios are taken inside one run."""

from __future__ import annotations

import time

import numpy as np
import pytest

from tsadbench import Recording
from tsadbench.registry import load_detector
from tsadbench.sandbox import Box, Construction

ROWS = Recording("rows", np.random.default_rng(0).normal(size=(9_405, 8)), tuple("abcdefgh"))
LARGE = Recording("large", np.random.default_rng(0).normal(size=(10**6, 8)), tuple("abcdefgh"))


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


@pytest.mark.parametrize("recording", [ROWS, LARGE], ids=["9405 rows", "1000000 rows"])
def test_rows_cross_and_scores_come_back(benchmark, recording):
    with Box(Construction.of(load_detector("all-positive"), {}), threads=1) as box:
        box.fit((ROWS,))
        benchmark(box.score, recording)
