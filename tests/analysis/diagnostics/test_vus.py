"""VUS-PR against its definition, row by row, and against aeon."""

from __future__ import annotations

import importlib.util
import os

import numpy as np
import pytest

from tsadbench.analysis.diagnostics.measures import vus_pr


@pytest.fixture(scope="module")
def aeon_vus():
    """aeon's VUS-PR: skipped loudly where it is not installed, but never in CI."""
    if importlib.util.find_spec("aeon") is None:
        message = "aeon is not here, so VUS-PR is not checked against it: pip install --no-deps aeon==1.6.0"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    from aeon.benchmarking.metrics.anomaly_detection import range_pr_vus_score

    return range_pr_vus_score


def labels_with_events(rng: np.random.Generator, n_rows: int, n_events: int, longest: int) -> np.ndarray:
    labels = np.zeros(n_rows, dtype=bool)
    for start in rng.integers(0, n_rows, n_events):
        labels[start : start + rng.integers(1, longest + 1)] = True
    return labels


def by_definition(scores: np.ndarray, anomalous: np.ndarray, largest: int, *, trapezoids: bool = False) -> float:
    """Return VUS-PR by the formula in the module's docstring, row by row."""
    n_rows, values = len(scores), []
    events = [tuple(np.flatnonzero(part)[[0, -1]]) for part in _events(anomalous)]
    thresholds = np.sort(scores)[::-1][np.linspace(0, n_rows - 1, 250, dtype=int)]
    for buffer in range(largest + 1):
        before, after = buffer // 2, max(buffer // 2 - 1, 0)
        labels, widened = anomalous.astype(float), np.zeros(n_rows, dtype=bool)
        for first, last in events:
            widened[max(first - before, 0) : last + after + 1] = True
            for row in range(n_rows):
                distance = first - row if row < first else row - last
                if not anomalous[row] and distance <= (before if row < first else after):
                    labels[row] = min(1.0, labels[row] + np.sqrt(1 - distance / buffer))
        expected, wide = (anomalous.sum() + labels.sum()) / 2, _events(widened)
        area, recall, precision = 0.0, 0.0, 1.0
        for threshold in thresholds:
            flagged = scores >= threshold
            share = np.mean([(flagged & one).any() for one in wide])
            now = min(1.0, labels[flagged].sum() / expected) * share
            here = labels[flagged].sum() / flagged.sum()
            area += (now - recall) * ((here + precision) / 2 if trapezoids else here)
            recall, precision = now, here
        values.append(area)
    return float(np.mean(values))


def _events(rows: np.ndarray) -> list[np.ndarray]:
    numbers = np.cumsum(np.diff(rows.astype(int), prepend=0) == 1) * rows
    return [numbers == number for number in range(1, numbers.max() + 1)]


def drawn(seed: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Draw scores, labels and a buffer."""
    rng = np.random.default_rng(seed)
    n_rows, buffer = int(rng.integers(3, 200)), int(rng.integers(0, 12))
    anomalous = labels_with_events(rng, n_rows, n_events=int(rng.integers(1, 8)), longest=int(rng.integers(1, 30)))
    anomalous[0], anomalous[-1] = False, True
    scores = rng.normal(size=n_rows) + anomalous * rng.normal()
    if seed % 2:  # ties
        scores = np.round(scores)
    scores[0] = scores.max() + 1  # aeon warns about constant scores
    return scores, anomalous, buffer


@pytest.mark.parametrize("seed", range(8))
def test_it_matches_its_definition(seed):
    assert vus_pr(*drawn(seed)) == pytest.approx(by_definition(*drawn(seed)), rel=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_the_definition_with_trapezoids_is_that_of_aeon(seed, aeon_vus):
    scores, anomalous, buffer = drawn(seed)
    aeons = aeon_vus(anomalous.astype(int), scores, buffer)
    assert by_definition(scores, anomalous, buffer, trapezoids=True) == pytest.approx(aeons, rel=1e-9)
