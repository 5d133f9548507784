"""Two detectors: hand-computed cases, scipy and scikit-posthocs as oracles, and what must not matter."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scikit_posthocs
from scipy import stats

from tsadbench.analysis.significance.inference import (
    bootstrap_interval,
    compare_pair,
    holm,
    infer,
    rank_biserial,
    wilcoxon,
)

HUNDREDTHS = np.array([1.0, 2.0, 3.0, -4.0, 5.0, 6.0]) / 100


def pair(first, second, **options):
    return SimpleNamespace(**compare_pair(first, second, **options))


def test_wilcoxon_by_hand():
    # Rank sum of the one negative difference: 4. Of the 64 ways to give signs to the ranks 1 to 6, seven have a sum of
    # at most 4: {}, {1}, {2}, {3}, {1, 2}, {4}, {1, 3}.
    assert wilcoxon(HUNDREDTHS) == (pytest.approx(2 * 7 / 64), "exact")
    found = pair(HUNDREDTHS, np.zeros(6))
    assert (found.smallest_p, found.n_different) == (pytest.approx(2 / 64), 6)


def test_differences_of_equal_size_by_hand():
    # Six equal differences, one of them negative: 1 + 6 of 64 signings have at most one of that sign.
    assert wilcoxon(np.array([0.1] * 5 + [-0.1])) == (pytest.approx(2 * 7 / 64), "exact")


def positive_ranks(differences):
    return stats.rankdata(np.abs(differences))[differences > 0].sum()


@pytest.mark.parametrize("n", [2, 5, 8])
def test_ties_are_exact_as_scipys_walk_through_all_signs_is(n):
    differences = np.random.default_rng(n).choice([-0.03, -0.02, -0.01, 0.01, 0.02], size=n)
    expected = stats.permutation_test((differences,), positive_ranks, permutation_type="samples", n_resamples=2**n)
    assert wilcoxon(differences)[0] == pytest.approx(expected.pvalue)


def test_without_ties_the_count_of_signs_is_scipys_exact_test():
    differences = np.random.default_rng(1).normal(0.3, 1.0, size=34)
    assert wilcoxon(differences)[0] == pytest.approx(stats.wilcoxon(differences, method="exact").pvalue, abs=1e-12)


def test_zeros_are_left_out_and_counted():
    assert wilcoxon(np.array([0.0, 0.0, *HUNDREDTHS])) == wilcoxon(HUNDREDTHS)
    nothing = pair(np.zeros(8), np.zeros(8))
    assert (nothing.p, nothing.smallest_p, nothing.n_different, nothing.wilcoxon) == (1.0, 1.0, 0, "no difference")


def test_many_differences_are_approximated_and_said_to_be():
    differences = np.random.default_rng(0).normal(0.1, 1.0, size=60)
    p, method = wilcoxon(differences)
    assert method == "normal approximation"
    ranks = stats.rankdata(np.abs(differences))
    z = (min(ranks[differences < 0].sum(), ranks[differences > 0].sum()) - 60 * 61 / 4) / (60 * 61 * 121 / 24) ** 0.5
    assert p == pytest.approx(2 * stats.norm.cdf(z))


def test_holm_by_hand():
    # .01 * 3, then .03 * 2, then .04 * 1, which may not be below the one before.
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.2]) == [0.2]
    assert holm([0.9, 0.8]) == [1.0, 1.0]


def test_effect_sizes_by_hand():
    assert rank_biserial(HUNDREDTHS) == pytest.approx((17 - 4) / 21)
    assert rank_biserial(np.zeros(3)) == 0.0
    found = pair([0.5, 0.6, 0.7, 0.8], [0.5, 0.59, 0.6, 0.9])
    assert found.mean_difference == pytest.approx(0.01 / 4)
    assert found.median_difference == pytest.approx(0.005)


def test_wins_ties_and_losses_heed_the_region_of_practical_equivalence():
    found = pair([0.50, 0.51, 0.52, 0.50, 0.40], [0.50, 0.50, 0.50, 0.51, 0.50])
    assert (found.wins, found.ties, found.losses) == (1, 3, 1)  # .51 - .50 is a tie, whatever floats make of it
    assert (pair([0.52], [0.50], rope=0.05).ties, pair([0.51], [0.50], rope=0.0).wins) == (1, 1)
    fewer_alarms = pair([0.1, 0.1, 0.1], [0.2, 0.3, 0.05], better="lower")
    assert (fewer_alarms.wins, fewer_alarms.losses) == (2, 1)
    assert fewer_alarms.mean_difference < 0


def test_the_interval_is_scipys_paired_one():
    rng = np.random.default_rng(3)
    first, second = rng.normal(0.7, 0.1, 14), rng.normal(0.6, 0.1, 14)
    order = np.argsort(first - second)
    expected = stats.bootstrap(
        (first[order], second[order]),
        lambda a, b, axis: np.mean(a - b, axis=axis),
        paired=True,
        method="BCa",
        n_resamples=9_999,
        random_state=np.random.default_rng(0),
    ).confidence_interval
    found = pair(first, second)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-9)
    assert found.interval == "BCa"


def test_each_two_detectors_with_holm_as_scikit_posthocs_has_it():
    rng = np.random.default_rng(0)
    units = pd.DataFrame(rng.uniform(size=(12, 4)) + np.array([0.0, 0.1, 0.4, 0.4]), columns=list("xyzw"))
    expected = scikit_posthocs.posthoc_wilcoxon(list(units.to_numpy().T), p_adjust="holm").to_numpy()
    found = infer(units).pairs
    assert list(found["first"] + found["second"]) == ["xy", "xz", "xw", "yz", "yw", "zw"]
    assert list(found["p_holm"]) == pytest.approx(list(expected[np.triu_indices(4, 1)]))
    assert (found["p_holm"] > found["p"]).any()


@pytest.mark.parametrize("n", [1, 2, 5, 6])
def test_below_six_units_a_pair_is_described_and_not_tested(n):
    differences = np.arange(1.0, n + 1) / 10
    found = pair(differences, np.zeros(n))
    assert found.mean_difference == pytest.approx(differences.mean())
    assert (found.wins, found.n_units) == (n, n)
    assert ((found.wilcoxon, found.interval) == (None, None)) is (n < 6)
    assert np.isnan([found.p, found.smallest_p, found.low, found.high]).tolist() == [n < 6] * 4


def test_an_interval_holds_the_mean_whatever_the_order_of_the_units():
    differences = np.random.default_rng(0).normal(1.0, 0.5, size=12)
    low, high, _ = bootstrap_interval(differences)
    assert low < differences.mean() < high
    assert bootstrap_interval(differences[::-1]) == (low, high, "BCa")
