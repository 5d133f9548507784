"""What `multiview` costs: a fit on as many rows as SKAB trains on, one on a million rows of 50 sensors, and scoring."""

from __future__ import annotations

import numpy as np
import pytest

from tsadbench.base import FloatArray
from tsadbench_detectors.multiview import MultiView


def plant(n_rows: int, n_sensors: int) -> FloatArray:
    """Return rows [n_rows, n_sensors] of noisy mixtures of four slow signals."""
    rng = np.random.default_rng(0)
    signals = np.sin(0.01 * np.cumsum(rng.normal(size=(n_rows, 4)), axis=0) + rng.normal(size=(n_rows, 4)))
    return signals @ rng.normal(size=(4, n_sensors)) + 0.1 * rng.normal(size=(n_rows, n_sensors))


@pytest.mark.parametrize(("n_rows", "n_sensors"), [(9_000, 8), (1_000_000, 50)], ids=["skab", "large"])
def test_fit(benchmark, n_rows, n_sensors):
    rows = plant(n_rows, n_sensors)
    benchmark.pedantic(lambda: MultiView().fit(rows), rounds=1 if n_rows > 100_000 else 5)


def test_score_a_million_rows(benchmark):
    detector = MultiView().fit(plant(9_000, 8))
    rows = plant(1_000_000, 8)
    scores = benchmark.pedantic(lambda: detector.score(rows), rounds=1)
    assert np.isfinite(scores).all()
