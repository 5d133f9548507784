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
    means,
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


def test_draws_take_as_many_data_sets_as_there_are_and_resamples_of_those_that_have_some():
    draws = draw_datasets([1, 4, 2], 3000, seed=0)
    assert draws.shape == (3, 3000)
    # Columns 1 to 4 are of the second data set, 5 and 6 of the third; none but the first is drawn as it is.
    shares = np.bincount(draws.ravel(), minlength=7) / 9000
    assert shares == pytest.approx([1 / 3, 0, 1 / 9, 1 / 9, 1 / 9, 0, 1 / 3], abs=0.02)
    assert (shares[1], shares[5]) == (0, 0)


def test_means_over_draws_are_those_of_a_loop():
    rng = np.random.default_rng(1)
    values = rng.normal(size=(3, 9))
    values[1, 0], values[2] = NAN, NAN  # the second row lacks the first data set, the third all
    draws = draw_datasets([1, 5, 3], 40, seed=2)
    found = means(values, draws)
    for draw in range(40):
        taken = values[:2, draws[:, draw]]
        assert found[0, draw] == pytest.approx(taken[0].mean())
        second = taken[1][~np.isnan(taken[1])]
        assert np.isnan(found[1, draw]) if not len(second) else found[1, draw] == pytest.approx(np.mean(second))
    of = estimates("x", values, np.array([0, 1, 6]), draws)
    assert of["x"][:2] == pytest.approx([values[0, [0, 1, 6]].mean(), values[1, [1, 6]].mean()])
    assert of["x_low"][0] == pytest.approx(np.quantile(found[0], 0.05))
    assert of["x_high"][1] == pytest.approx(np.quantile(found[1][~np.isnan(found[1])], 0.95))
    assert np.isnan([of["x"][2], of["x_low"][2], of["x_high"][2]]).all()


def test_intervals_hold_the_mean_as_often_as_they_say():
    """Data sets drawn from a population: the 90 % interval of a mean rank of 30 of them holds its expectation."""
    rng = np.random.default_rng(0)
    held = 0
    for repetition in range(200):
        ranks = ranks_among(wins(rng.normal(size=(4, 30))), np.ones(4, dtype=bool))
        of = estimates("x", ranks, np.arange(30), draw_datasets([1] * 30, 200, seed=repetition))
        held += bool(of["x_low"][0] <= 2.5 <= of["x_high"][0])
    assert 0.83 <= held / 200 <= 0.95


@pytest.mark.parametrize(("rows", "datasets", "quantile"), [(2, 12, 1.960), (4, 10, 2.569), (10, 8, 3.164)])
def test_nemenyis_critical_difference_is_demsars(rows, datasets, quantile):
    """Demsar 2006, table 5a."""
    expected = quantile * np.sqrt(rows * (rows + 1) / (6 * datasets))
    assert critical_difference(rows, datasets) == pytest.approx(expected, abs=2e-3)
