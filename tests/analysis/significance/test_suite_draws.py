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
    draw_datasets,
    estimates,
    interval_of,
    ranks_among,
    wins,
)

NAN, WORST = np.nan, -np.inf
# Three detectors on three data sets; the second failed on the last one.
GAINS = [np.array([[0.9], [0.5], [0.7]]), np.array([[0.4], [0.4], [0.6]]), np.array([[0.2], [WORST], [0.1]])]
ALL = np.array([True, True, True])
whole = hnp.arrays(np.float64, (6, 4), elements=st.sampled_from([WORST, 0.1, 0.2, 0.3, 0.4, 0.5]))


def mean_ranks(gains, complete=ALL):
    ranks = ranks_among(wins(np.hstack(gains)), complete)
    return np.nanmean(ranks, axis=1).tolist()


def test_mean_ranks_by_hand():
    of_each = ranks_among(wins(np.hstack(GAINS)), ALL).T.tolist()
    assert of_each == [[1, 3, 2], [2.5, 2.5, 1], [1, 3, 2]]
    assert mean_ranks(GAINS) == pytest.approx([4.5 / 3, 8.5 / 3, 5 / 3])


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
def test_ranks_and_friedman_are_scipys(gains):
    complete = np.ones(6, dtype=bool)
    of_each = ranks_among(wins(gains), complete).T
    np.testing.assert_allclose(of_each, stats.rankdata(-gains.T, axis=1))
    n, k = len(of_each), 6
    spread = sum(np.square(one - (k + 1) / 2).sum() for one in of_each)
    if spread > 0:
        means = np.mean(of_each, axis=0)
        chi_squared = n**2 * (k - 1) * np.square(means - (k + 1) / 2).sum() / spread
        finite = np.where(np.isinf(gains), -1.0, gains)
        assert chi_squared == pytest.approx(stats.friedmanchisquare(*finite).statistic)


@given(whole)
def test_a_dominated_row_moves_no_mean_rank_and_an_incomplete_one_no_rank_at_all(gains):
    gains = np.where(np.isinf(gains), 0.0, gains)
    columns = [column[:, None] for column in gains.T]
    before = mean_ranks(columns, np.ones(6, dtype=bool))
    dominated = [np.vstack([column, column.min(keepdims=True) - 1]) for column in columns]
    assert mean_ranks(dominated, np.ones(7, dtype=bool)) == pytest.approx([*before, 7.0])
    partial = [np.vstack([column, [[1.0]] if i else [[NAN]]]) for i, column in enumerate(columns)]
    complete = np.array([True] * 6 + [False])
    # Better than all six on what it has, and counted against nobody.
    assert mean_ranks(partial, complete) == pytest.approx([*before, 1.0])


def test_estimates_over_draws_are_those_of_a_loop():
    rng = np.random.default_rng(1)
    values = rng.normal(size=(3, 3))
    values[1, 0], values[2] = NAN, NAN  # the second row lacks the first data set, the third all
    times = draw_datasets(3, 40, seed=2)
    assert times.sum(axis=0).tolist() == [3] * 40
    assert draw_datasets(3, 3000, seed=0).mean(axis=1) == pytest.approx(np.ones(3), abs=0.06)
    means = np.full((2, 40), NAN)
    for draw in range(40):
        for row in range(2):
            taken = np.repeat(values[row], times[:, draw].astype(int))
            if not np.isnan(taken).all():
                means[row, draw] = np.nanmean(taken)
    of = estimates("x", values, times)
    assert of["x"][:2] == pytest.approx([values[0].mean(), values[1, 1:].mean()])
    assert of["x_low"][:2] == pytest.approx(np.nanquantile(means, 0.05, axis=1))
    assert of["x_high"][:2] == pytest.approx(np.nanquantile(means, 0.95, axis=1))
    assert np.isnan([of["x"][2], of["x_low"][2], of["x_high"][2]]).all()
    assert np.isnan(interval_of("x", np.empty((2, 0)))["x_low"]).all()


def test_intervals_hold_the_mean_as_often_as_they_say():
    """Data sets drawn from a population: the 90 % interval of a mean rank of 30 of them holds its expectation."""
    rng = np.random.default_rng(0)
    held = 0
    for repetition in range(200):
        ranks = ranks_among(wins(rng.normal(size=(4, 30))), np.ones(4, dtype=bool))
        of = estimates("x", ranks, draw_datasets(30, 200, seed=repetition))
        held += bool(of["x_low"][0] <= 2.5 <= of["x_high"][0])
    assert 0.83 <= held / 200 <= 0.95


@pytest.mark.parametrize(("rows", "datasets", "quantile"), [(2, 12, 1.960), (4, 10, 2.569), (10, 8, 3.164)])
def test_nemenyis_critical_difference_is_demsars(rows, datasets, quantile):
    """Demsar 2006, table 5a."""
    expected = quantile * np.sqrt(rows * (rows + 1) / (6 * datasets))
    assert critical_difference(rows, datasets) == pytest.approx(expected, abs=2e-3)
