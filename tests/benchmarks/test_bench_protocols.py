"""How long thresholds and metrics take: Peaks-over-Threshold, all metrics at once, shared training rows."""

from __future__ import annotations

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from tsadbench.base.recording import Recording
from tsadbench_protocols import pot
from tsadbench_protocols.metrics import METRICS, evaluate
from tsadbench_protocols.overlap import without_shared_rows

SIZES = (10**4, 10**5, 10**6)


@pytest.mark.parametrize("n", SIZES)
def test_peaks_over_threshold(benchmark: BenchmarkFixture, n: int) -> None:
    scores = np.random.default_rng(0).gamma(2.0, size=n)
    found = benchmark(pot.fit, scores)
    assert found.status == "ok"


@pytest.mark.parametrize("n", SIZES)
def test_all_metrics(benchmark: BenchmarkFixture, n: int) -> None:
    rng = np.random.default_rng(0)
    anomalous = rng.random(n) < 0.35
    scores = rng.normal(size=n) + anomalous
    found = benchmark(evaluate, scores, anomalous, 1.0)
    assert len(found) == len(METRICS)


@pytest.mark.parametrize("n", SIZES)
def test_shared_training_rows(benchmark: BenchmarkFixture, n: int) -> None:
    rng = np.random.default_rng(0)
    sensors = tuple(f"s{i}" for i in range(8))
    train = Recording("train", rng.normal(size=(n, 8)), sensors, np.arange(float(n)))
    test = Recording("test", rng.normal(size=(n, 8)), sensors, np.arange(float(n)))
    assert benchmark(without_shared_rows, [train], [test, train.rows(n - 100, n, id="shared")])[0].n_rows == n - 100
