"""Rates of false alarms: against processes whose extremal index is known, exact Poisson limits, and simulation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binom, poisson

from tests.helpers.scripts import load_script
from tsadbench.analysis.calibration.clusters import (
    FlaggedNormal,
    cross_fitted,
    extremal_index,
    flagged_normal,
    run_length,
    run_of,
)
from tsadbench.base.protocol import Threshold
from tsadbench.utils.markdown import fill_blocks

COVERAGE = load_script(Path(__file__).parents[3] / "docs" / "studies" / "coverage.py")


def held(records) -> int:
    """Return how many intervals hold the true rate, as the study counts them."""
    return int(COVERAGE.covered(records).split()[0])


def largest(scores) -> Threshold:
    """Return a threshold at the largest score."""
    return Threshold(value=float(scores.max()), method="pot", status="ok", t=float(scores.max()))


@pytest.mark.parametrize("width", [1, 2, 4])
def test_the_extremal_index_of_moving_maxima_is_known(width):
    """Each large shock of unit Frechet noise gives ``width`` equal maxima in a row: the index is 1 / width."""
    shocks = 1 / -np.log(np.random.default_rng(width).random(1_000_000))
    maxima = np.lib.stride_tricks.sliding_window_view(shocks, width).max(axis=1)
    rows = np.flatnonzero(maxima > np.quantile(maxima, 0.998))
    assert extremal_index(rows) == pytest.approx(1 / width, rel=0.12)
    sizes = flagged_normal(maxima > np.quantile(maxima, 0.998), run_length(rows)).sizes
    assert np.mean(sizes) == pytest.approx(width, rel=0.12)


def test_neighbours_further_apart_than_the_run_length_are_two_clusters():
    flagged = np.zeros(100, dtype=bool)
    flagged[[3, 4, 7, 11, 50, 53]] = True
    assert flagged_normal(flagged, 3).sizes == (3, 1, 2)
    assert flagged_normal(flagged, 4).sizes == (4, 2)
    assert flagged_normal(flagged, 0).sizes == (1,) * 6
    assert flagged_normal(np.zeros(5, dtype=bool), 3) == FlaggedNormal(5, ())


def test_rows_say_themselves_how_they_cluster_if_no_score_lies_above_the_initial_threshold():
    flagged = np.zeros(1000, dtype=bool)
    flagged[100:120] = flagged[500:520] = flagged[900:920] = True
    nothing = run_of(np.zeros(10), Threshold(value=0.0, method="pot", status="degenerate", t=0.0))
    assert nothing is None
    assert flagged_normal(flagged, nothing).sizes == (20, 20, 20)


@pytest.mark.parametrize("n_clusters", [1, 10, 40])
@pytest.mark.parametrize("size", [1, 3])
def test_the_interval_of_equal_clusters_is_the_exact_one_of_a_poisson_count(n_clusters, size):
    """The limits are the means at which so many clusters, or more, or fewer, have a probability of 5 %."""
    low = brentq(lambda mean: poisson.sf(n_clusters - 1, mean) - 0.05, 1e-9, 1000)
    high = brentq(lambda mean: poisson.cdf(n_clusters, mean) - 0.05, 1e-9, 1000)
    found = FlaggedNormal(10_000, (size,) * n_clusters)
    assert found.interval == pytest.approx((size * low / 10_000, size * high / 10_000))
    assert found.too_few == (n_clusters < 10)


def test_unequal_clusters_are_worth_fewer():
    equal, unequal = FlaggedNormal(1000, (3, 3, 3, 3)), FlaggedNormal(1000, (1, 1, 1, 9))
    assert (equal.worth, unequal.worth) == (4.0, 144 / 84)
    assert unequal.interval[0] < equal.interval[0] < equal.share < equal.interval[1] < unequal.interval[1]


def test_without_a_flagged_row_the_rate_is_at_most_three_rows():
    low, high = FlaggedNormal(1000, ()).interval
    assert (low, high) == (0.0, pytest.approx(-np.log(0.05) / 1000))
    assert FlaggedNormal(10, (9,)).interval[1] == 1.0


def test_a_tenth_is_compared_with_the_threshold_of_the_others():
    """With the largest score as the threshold, only the block that holds it is above the others' threshold."""
    scores = np.arange(100.0)
    scores[[42, 44]] = 500.0, 400.0
    found = cross_fitted(scores, largest)
    assert (found.n_rows, found.n_flagged) == (100, 2)
    scores[99] = 450.0
    assert cross_fitted(scores, largest).n_flagged == 1


@pytest.mark.parametrize(("phi", "q"), [(0.0, 1e-3), (0.5, 1e-2), (0.9, 1e-2)])
def test_nine_in_ten_intervals_hold_the_true_rate_of_the_threshold_that_was_set(phi, q):
    """A small version of docs/studies/coverage.md: as many as a coverage of 85 % gives in all but one of 100 runs."""
    records = list(COVERAGE.simulated(phi, q, repetitions=40))
    assert np.median([record["true"] for record in records]) == pytest.approx(q, rel=0.3)
    assert held(records) >= binom.ppf(0.01, 40, 0.85)


@pytest.mark.parametrize("phi", COVERAGE.PHIS)
@pytest.mark.parametrize("q", COVERAGE.RISKS)
def test_the_committed_study_covers_85_to_95_percent(phi, q):
    """Of the intervals that are shown; with phi = .9 and q = .001 nearly none is."""
    records = [one for one in COVERAGE.read() if (one["phi"], one["q"], one["rows"]) == (phi, q, 10_000)]
    shown = [one for one in records if len(one["sizes"]) >= 10]
    assert len(records) == 200
    if (phi, q) == (0.9, 1e-3):
        assert len(shown) < 10
    else:
        assert len(shown) >= 100
        assert 0.85 <= held(shown) / len(shown) <= 0.95


def test_the_page_is_made_of_its_records():
    page = COVERAGE.PAGE.read_text(encoding="utf-8")
    assert fill_blocks(page, COVERAGE.block) == page
