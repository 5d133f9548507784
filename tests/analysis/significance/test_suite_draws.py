"""Ranks, wins and floors over data sets: by hand, and against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from tsadbench.analysis.significance.ranking import (
    above_floors,
    critical_difference,
    ranks_among,
    wins,
)

NAN, WORST = np.nan, -np.inf
# Three detectors on three data sets; the second failed on the last one.
GAINS = [np.array([[0.9], [0.5], [0.7]]), np.array([[0.4], [0.4], [0.6]]), np.array([[0.2], [WORST], [0.1]])]
whole = hnp.arrays(np.float64, (6, 4), elements=st.sampled_from([WORST, 0.1, 0.2, 0.3, 0.4, 0.5]))


def test_win_rates_by_hand():
    won = wins(np.hstack(GAINS))
    rates = won.mean(axis=2)
    assert (rates[0, 1], rates[1, 0], rates[0, 2], rates[1, 2]) == pytest.approx((2.5 / 3, 0.5 / 3, 2 / 3, 0.0))
    assert np.isnan(np.diag(rates)).all()


def test_the_best_floor_is_that_of_each_data_set_and_column():
    gains = np.array([[0.5, 0.5], [0.4, 0.6], [0.3, 0.55], [WORST, NAN], [0.4, 0.1]])
    floors = np.array([False, True, True, False, False])
    found = above_floors(gains, floors)
    np.testing.assert_array_equal(found, [[1, 0], [NAN, NAN], [NAN, NAN], [0, NAN], [0, 0]])
    assert np.isnan(above_floors(gains, np.zeros(5, dtype=bool))).all()
    # A floor that failed is beaten by whatever did not.
    np.testing.assert_array_equal(above_floors(np.array([[WORST], [0.1]]), np.array([True, False])), [[NAN], [1]])


@given(whole)
def test_ranks_are_scipys(gains):
    complete = np.ones(6, dtype=bool)
    of_each = ranks_among(wins(gains), complete).T
    np.testing.assert_allclose(of_each, stats.rankdata(-gains.T, axis=1))


@pytest.mark.parametrize(("rows", "datasets", "quantile"), [(2, 12, 1.960), (4, 10, 2.569), (10, 8, 3.164)])
def test_nemenyis_critical_difference_is_demsars(rows, datasets, quantile):
    """Demsar 2006, table 5a."""
    expected = quantile * np.sqrt(rows * (rows + 1) / (6 * datasets))
    assert critical_difference(rows, datasets) == pytest.approx(expected, abs=2e-3)
