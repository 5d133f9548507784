"""Ranks, wins and floors over data sets: by hand, and against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from tsadbench.analysis.significance.suite_draws import (
    Draws,
    above_floors,
    interval,
    mean_over_datasets,
    ranks,
    wins,
)
from tsadbench.analysis.significance.suite_rank import critical_difference

NAN, WORST = np.nan, -np.inf
# Three detectors on three data sets; the second failed on the last one.
GAINS = [np.array([[0.9], [0.5], [0.7]]), np.array([[0.4], [0.4], [0.6]]), np.array([[0.2], [WORST], [0.1]])]
ALL = np.array([True, True, True])
whole = hnp.arrays(np.float64, (6, 4), elements=st.sampled_from([WORST, 0.1, 0.2, 0.3, 0.4, 0.5]))


def mean_ranks(gains, complete=ALL):
    return mean_over_datasets([ranks(wins(one), complete) for one in gains]).tolist()


def test_mean_ranks_by_hand():
    of_each = [ranks(wins(one), ALL)[:, 0].tolist() for one in GAINS]
    assert of_each == [[1, 3, 2], [2.5, 2.5, 1], [1, 3, 2]]
    assert mean_ranks(GAINS) == pytest.approx([4.5 / 3, 8.5 / 3, 5 / 3])


def test_win_rates_by_hand():
    rates = mean_over_datasets([wins(one) for one in GAINS])
    assert rates[0, 1] == pytest.approx(2.5 / 3)
    assert rates[1, 0] == pytest.approx(0.5 / 3)
    assert rates[0, 2] == pytest.approx(2 / 3)
    assert rates[1, 2] == 0.0
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
    of_each = [ranks(wins(column[:, None]), complete)[:, 0] for column in gains.T]
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
    draws = Draws.of([1, 4, 2], 3000, seed=0)
    assert draws.datasets.shape == draws.columns.shape == (3, 3000)
    shares = np.bincount(draws.datasets.ravel()) / 9000
    assert shares == pytest.approx([1 / 3] * 3, abs=0.02)
    for dataset, columns in ((0, [0]), (1, [1, 2, 3]), (2, [1])):
        drawn = draws.columns[draws.datasets == dataset]
        assert sorted(set(drawn.tolist())) == columns
    within = np.bincount(draws.columns[draws.datasets == 1])[1:]
    assert within / within.sum() == pytest.approx([1 / 3] * 3, abs=0.03)


def test_means_over_draws_are_those_of_a_loop():
    rng = np.random.default_rng(1)
    values = [rng.normal(size=(2, 1)), rng.normal(size=(2, 5)), rng.normal(size=(2, 3))]
    values[0][1] = NAN  # the second row lacks the first data set
    draws = Draws.of([1, 5, 3], 40, seed=2)
    found = draws.means(values)
    for draw in range(40):
        taken = [values[d][:, c] for d, c in zip(draws.datasets[:, draw], draws.columns[:, draw], strict=True)]
        assert found[0, draw] == pytest.approx(np.mean([one[0] for one in taken]))
        second = [one[1] for one in taken if not np.isnan(one[1])]
        assert np.isnan(found[1, draw]) if not second else found[1, draw] == pytest.approx(np.mean(second))
    low, high = interval(found)
    assert low[0] == pytest.approx(np.quantile(found[0], 0.05))
    assert high[1] == pytest.approx(np.quantile(found[1][~np.isnan(found[1])], 0.95))
    assert np.isnan(interval(np.full((2, 3), NAN))).all()


def test_intervals_hold_the_mean_as_often_as_they_say():
    """Data sets drawn from a population: the 90 % interval of a mean rank of 30 of them holds its expectation."""
    rng = np.random.default_rng(0)
    held = 0
    for repetition in range(200):
        gains = [rng.normal(size=(4, 1)) for _ in range(30)]
        draws = Draws.of([1] * 30, 200, seed=repetition)
        low, high = interval(draws.means([ranks(wins(one), np.ones(4, dtype=bool)) for one in gains]))
        held += bool(low[0] <= 2.5 <= high[0])
    assert 0.83 <= held / 200 <= 0.95


@pytest.mark.parametrize(("rows", "datasets", "quantile"), [(2, 12, 1.960), (4, 10, 2.569), (10, 8, 3.164)])
def test_nemenyis_critical_difference_is_demsars(rows, datasets, quantile):
    """Demsar 2006, table 5a."""
    expected = quantile * np.sqrt(rows * (rows + 1) / (6 * datasets))
    assert critical_difference(rows, datasets) == pytest.approx(expected, abs=2e-3)
