"""VUS-PR against aeon, scikit-learn, a case by hand, and what must hold for every score."""

from __future__ import annotations

import importlib.util
import os
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import average_precision_score

from tsadbench.analysis.diagnostics import vus
from tsadbench.analysis.diagnostics.vus import vus_pr
from tsadbench.errors import DataError, UsageError

unhurried = settings(deadline=None, max_examples=40)


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


@pytest.mark.parametrize("seed", range(16))
def test_with_trapezoids_it_is_aeons(seed, aeon_vus):
    rng = np.random.default_rng(seed)
    n_rows, buffer = int(rng.integers(3, 300)), int(rng.integers(0, 12))
    anomalous = labels_with_events(rng, n_rows, n_events=int(rng.integers(1, 8)), longest=int(rng.integers(1, 30)))
    anomalous[rng.integers(0, n_rows)] = False
    scores = rng.normal(size=n_rows) + anomalous * rng.normal()
    if seed % 2:  # ties
        scores = np.round(scores)
    scores[0] = scores.max() + 1  # aeon answers a constant score with a warning
    if not anomalous.any():
        anomalous[-1] = True
    expected = aeon_vus(anomalous.astype(int), scores, buffer)
    assert vus_pr(scores, anomalous, buffer, area="trapezoid") == pytest.approx(expected, abs=1e-12)


def test_many_buffers_at_a_time_or_one_are_the_same(monkeypatch):
    rng = np.random.default_rng(0)
    anomalous, scores = labels_with_events(rng, 3000, 12, 9), rng.normal(size=3000)

    def value_and_memory() -> tuple[float, int]:
        tracemalloc.start()
        try:
            return vus_pr(scores, anomalous, 400), tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    together, memory_together = value_and_memory()
    monkeypatch.setattr(vus, "VALUES_AT_A_TIME", 1)
    alone, memory_alone = value_and_memory()
    assert alone == pytest.approx(together, abs=1e-12)
    assert memory_alone < memory_together / 4


@pytest.mark.parametrize("seed", range(8))
def test_without_buffer_and_with_one_event_it_is_average_precision(seed):
    rng = np.random.default_rng(seed)
    n_rows = int(rng.integers(2, 251))  # as long as every score is a threshold
    anomalous = np.zeros(n_rows, dtype=bool)
    start = int(rng.integers(0, n_rows))
    anomalous[start : start + int(rng.integers(1, n_rows))] = True
    anomalous[start - 1] = False
    scores = np.round(rng.normal(size=n_rows), seed % 3)
    expected = average_precision_score(anomalous, scores)
    assert vus_pr(scores, anomalous, buffer=0) == pytest.approx(expected, abs=1e-12)


def test_by_hand():
    # Event: row 2 of 5. Buffer 2: row 1 gets sqrt(1 - 1/2) = .7071, row 3 none (its ramp is one row shorter).
    anomalous = np.array([False, False, True, False, False])
    scores = np.array([1.0, 5.0, 4.0, 3.0, 2.0])
    # Buffers 0, 1. Flagged rows 1 | 1,2 | ...: TP 0, 1, 1, ...; existence 0, 1, ...: recall 0 at precision 0, then
    # 1 at 1/2.
    plain = 1 / 2
    # Buffer 2. TP .7071, 1.7071, ...; expected positives (1 + 1.7071) / 2 = 1.3536; the widened event holds row 1.
    # Recall .5224 at precision .7071, then 1 at 1.7071 / 2.
    ramp = 0.5**0.5
    first = ramp / ((2 + ramp) / 2)
    widened = first * ramp + (1 - first) * (1 + ramp) / 2
    assert vus_pr(scores, anomalous, buffer=0) == pytest.approx(plain)
    assert vus_pr(scores, anomalous, buffer=2) == pytest.approx((2 * plain + widened) / 3)


def test_half_the_events_are_half_the_recall():
    # Two events of one row each; the first ranks highest, the other lowest: recall 1/2 * 1/2, then 1.
    anomalous = np.array([True, False, False, True])
    scores = np.array([4.0, 3.0, 2.0, 1.0])
    assert vus_pr(scores, anomalous, buffer=0) == pytest.approx(1 / 4 * 1 + 3 / 4 * 2 / 4)


def test_a_score_that_ranks_nothing_gets_the_share_of_the_anomalous_rows():
    anomalous = np.arange(10) < 3
    assert vus_pr(np.ones(10), anomalous, buffer=0) == pytest.approx(0.3)
    assert vus_pr(np.ones(10), anomalous, buffer=0, area="trapezoid") == pytest.approx(0.65)


cases = st.integers(2, 40).flatmap(
    lambda n: st.tuples(arrays(np.float64, n, elements=st.integers(-5, 5).map(float)), arrays(bool, n))
)
buffers = st.integers(0, 12)


@unhurried
@given(cases, buffers)
def test_bounds_and_one_class(case, buffer):
    scores, anomalous = case
    found = vus_pr(scores, anomalous, buffer)
    if anomalous.all() or not anomalous.any():
        assert found is None
    else:
        assert 0 <= found <= 1 + 1e-12


@unhurried
@given(cases, buffers)
def test_only_the_order_of_the_scores_counts(case, buffer):
    scores, anomalous = case
    found = vus_pr(scores, anomalous, buffer)
    for mapped in (3 * scores + 1, np.exp(scores), scores**3 - 1e6, scores / 1e-9):
        assert vus_pr(mapped, anomalous, buffer) == found


@unhurried
@given(cases, buffers)
def test_a_row_without_a_score_leaves_it_undefined(case, buffer):
    scores, anomalous = case
    assert vus_pr(np.where(scores == scores.min(), np.nan, scores), anomalous, buffer) is None


@unhurried
@given(arrays(bool, st.integers(2, 40)))
def test_without_a_buffer_a_perfect_detector_has_all_and_an_inverted_one_the_share(anomalous):
    if anomalous.all() or not anomalous.any():
        return
    assert vus_pr(anomalous.astype(float), anomalous, buffer=0) == pytest.approx(1.0)
    reversed_score = vus_pr((~anomalous).astype(float), anomalous, buffer=0)
    assert reversed_score == pytest.approx(anomalous.mean())


@unhurried
@given(st.integers(1, 20), st.integers(0, 12), st.booleans())
def test_an_event_at_a_border_is_as_good_as_another(length, buffer, at_the_end):
    anomalous = np.zeros(40, dtype=bool)
    anomalous[-length:] = True
    anomalous = anomalous if at_the_end else anomalous[::-1]
    perfect, worst = anomalous.astype(float), (~anomalous).astype(float)
    assert 0 <= vus_pr(worst, anomalous, buffer) < vus_pr(perfect, anomalous, buffer) <= 1


@pytest.mark.parametrize("row", [True, False])
def test_one_row_is_of_one_class(row):
    assert vus_pr(np.array([1.0]), np.array([row])) is None


@pytest.mark.parametrize("buffer", [-1, 2.5, True, "10"])
def test_a_wrong_buffer_is_refused(buffer):
    with pytest.raises(UsageError, match="integer of at least 0 rows"):
        vus_pr(np.array([1.0, 2.0]), np.array([True, False]), buffer)


def test_arrays_of_other_rows_are_refused():
    with pytest.raises(DataError, match="same rows"):
        vus_pr(np.zeros(3), np.zeros(4, dtype=bool))
