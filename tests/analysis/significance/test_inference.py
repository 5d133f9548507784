"""Paired values of detectors: hand-computed cases, scipy, statsmodels and scikit-posthocs as oracles."""

from __future__ import annotations

import math
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scikit_posthocs
from scipy import stats
from statsmodels.stats.power import TTestPower

from tsadbench.analysis.significance.inference import (
    bootstrap_interval,
    compare_pair,
    compare_pairs,
    conclusions,
    friedman,
    paired_t_power,
    rank_biserial,
    sessions_needed,
    wilcoxon,
)

HUNDREDTHS = np.array([1.0, 2.0, 3.0, -4.0, 5.0, 6.0]) / 100


def pair(first, second, **options):
    return SimpleNamespace(**compare_pair(first, second, **options))


class TestWilcoxon:
    def test_by_hand(self):
        # Rank sum of the one negative difference: 4. Of the 64 ways to give signs to the ranks 1 to 6, seven have a sum
        # of at most 4: {}, {1}, {2}, {3}, {1, 2}, {4}, {1, 3}.
        assert wilcoxon(HUNDREDTHS) == (pytest.approx(2 * 7 / 64), "exact")
        found = pair(HUNDREDTHS, np.zeros(6))
        assert (found.smallest_p, found.n_different) == (pytest.approx(2 / 64), 6)
        # Six equal differences, one of them negative: 1 + 6 of 64 signings have at most one of that sign.
        assert wilcoxon(np.array([0.1] * 5 + [-0.1])) == (pytest.approx(2 * 7 / 64), "exact")

    @pytest.mark.parametrize("n", [2, 5, 8])
    def test_ties_are_exact_like_scipys_permutation_test(self, n):
        def positive_ranks(differences):
            return stats.rankdata(np.abs(differences))[differences > 0].sum()

        differences = np.random.default_rng(n).choice([-0.03, -0.02, -0.01, 0.01, 0.02], size=n)
        expected = stats.permutation_test((differences,), positive_ranks, permutation_type="samples", n_resamples=2**n)
        assert wilcoxon(differences)[0] == pytest.approx(expected.pvalue)

    def test_without_ties_the_count_of_signs_is_scipys_exact_test(self):
        differences = np.random.default_rng(1).normal(0.3, 1.0, size=34)
        assert wilcoxon(differences)[0] == pytest.approx(stats.wilcoxon(differences, method="exact").pvalue, abs=1e-12)


class TestPairs:
    def test_effect_sizes_by_hand(self):
        assert rank_biserial(HUNDREDTHS) == pytest.approx((17 - 4) / 21)
        assert rank_biserial(np.zeros(3)) == 0.0
        found = pair([0.5, 0.6, 0.7, 0.8], [0.5, 0.59, 0.6, 0.9])
        assert (found.mean_difference, found.median_difference) == pytest.approx((0.01 / 4, 0.005))

    def test_wins_ties_and_losses_heed_the_region_of_practical_equivalence(self):
        found = pair([0.50, 0.51, 0.52, 0.50, 0.40], [0.50, 0.50, 0.50, 0.51, 0.50])
        assert (found.wins, found.ties, found.losses) == (1, 3, 1)  # .51 - .50 is a tie despite rounding
        assert (pair([0.52], [0.50], rope=0.05).ties, pair([0.51], [0.50], rope=0.0).wins) == (1, 1)
        fewer_alarms = pair([0.1, 0.1, 0.1], [0.2, 0.3, 0.05], better="lower")
        assert (fewer_alarms.wins, fewer_alarms.losses) == (2, 1)
        assert fewer_alarms.mean_difference < 0

    def test_the_interval_is_scipys_paired_one_whatever_the_order_of_the_units(self):
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
        low, high, method = bootstrap_interval(first - second)
        assert (low, high) == pytest.approx((expected.low, expected.high), abs=1e-9)
        assert bootstrap_interval((first - second)[::-1]) == (low, high, method) == (low, high, "BCa")

    def test_all_pairs_with_holm_match_scikit_posthocs(self):
        rng = np.random.default_rng(0)
        units = pd.DataFrame(rng.uniform(size=(12, 4)) + np.array([0.0, 0.1, 0.4, 0.4]), columns=list("xyzw"))
        expected = scikit_posthocs.posthoc_wilcoxon(list(units.to_numpy().T), p_adjust="holm").to_numpy()
        found = compare_pairs(units)
        assert list(found["first"] + found["second"]) == ["xy", "xz", "xw", "yz", "yw", "zw"]
        assert list(found["p_holm"]) == pytest.approx(list(expected[np.triu_indices(4, 1)]))
        assert (found["p_holm"] > found["p"]).any()


class TestPower:
    @pytest.mark.parametrize(("n", "effect"), [(2, 0.5), (7, 0.3), (12, 1.5), (40, 0.45)])
    def test_it_is_statsmodels(self, n, effect):
        assert paired_t_power(n, effect) == pytest.approx(TTestPower().power(effect, n, 0.05), abs=1e-9)

    @pytest.mark.parametrize("spread", [0.03, 0.06, 0.1, 0.4, 40.0])
    def test_sessions_needed_are_the_t_tests_over_the_efficiency_of_wilcoxons(self, spread):
        differences = np.array([-1.0, 1.0, 3.0, -3.0])
        differences *= spread / differences.std(ddof=1)
        of_t_test = math.ceil(TTestPower().solve_power(0.05 / spread, alpha=0.05, power=0.8))
        assert sessions_needed(differences + 0.7) == max(6, math.ceil(of_t_test * math.pi / 3))


class TestFriedman:
    def test_by_hand(self):
        # Ranks 1 2 3, 1 2 3, 1 3 2, 2 1 3, sums 5, 8, 11: chi-squared = 12 / (4 * 3 * 4) * (25 + 64 + 121) - 48 = 4.5,
        # F = 3 * 4.5 / (8 - 4.5).
        found = friedman(pd.DataFrame([[0.9, 0.8, 0.7], [0.5, 0.4, 0.3], [0.9, 0.1, 0.2], [0.5, 0.6, 0.1]]))
        assert (found["chi_squared"], found["f"]) == pytest.approx((4.5, 13.5 / 3.5))
        assert (found["df1"], found["df2"]) == (2, 6)
        assert found["p"] == pytest.approx((1 + 2 * found["f"] / 6) ** -3)  # F(2, 6) has this closed form

    def test_chi_squared_is_scipys_with_ties(self):
        values = np.random.default_rng(0).integers(0, 4, size=(9, 4)) / 4
        found, expected = friedman(pd.DataFrame(values)), stats.friedmanchisquare(*values.T)
        assert found["chi_squared"] == pytest.approx(expected.statistic)
        f = 8 * expected.statistic / (9 * 3 - expected.statistic)  # Iman and Davenport (1980)
        assert found["p"] == pytest.approx(stats.f.sf(f, 3, 24))

    def test_full_agreement_has_no_finite_f(self):
        found = friedman(pd.DataFrame([[0.3, 0.2, 0.1]] * 5))
        assert (found["f"], found["chi_squared"]) == (np.inf, pytest.approx(10.0))
        assert found["p"] == pytest.approx(np.exp(-5.0))  # chi-squared with two degrees of freedom


class TestConclusions:
    @staticmethod
    def of(n: int, *gaps: float, better: str = "higher") -> list[str]:
        """Return the conclusions on a base detector and, for each gap, one that is higher by about that gap."""
        rng = np.random.default_rng(0)
        base = rng.uniform(0.3, 0.5, size=n)
        columns = [base, *(base + gap + rng.uniform(0.0, 0.02, size=n) for gap in gaps)]
        units = pd.DataFrame(np.stack(columns, axis=1), columns=list("abc"[: len(columns)]))
        return [*conclusions(compare_pairs(units, better=better), None, better)]

    @pytest.mark.parametrize(("n", "conclusive"), [(1, False), (5, False), (6, True)])
    def test_six_units_are_the_fewest_that_two_detectors_can_differ_on(self, n, conclusive):
        found = self.of(n, 0.3)
        assert found[0].startswith("Described, not tested") is not conclusive
        assert any("is better than" in sentence for sentence in found) is conclusive

    def test_holm_asks_for_more_units(self):
        # Three pairs: 3 * 2 / 2^6 = .094, 3 * 2 / 2^7 = .047.
        assert ".094" in self.of(6, 0.2, 0.4)[0]
        found = self.of(7, 0.2, 0.4)
        beaten = {line[:2]: re.findall(r"(\w) \(p = (\.\d+)\)", line) for line in found if "better" in line}
        assert beaten == {"b ": [("a", ".047")], "c ": [("a", ".047"), ("b", ".047")]}

    def test_where_lower_is_better_the_lower_one_is(self):
        assert any(re.match(r"a .*better.* b \(p = \.016\)", line) for line in self.of(7, 0.3, better="lower"))
