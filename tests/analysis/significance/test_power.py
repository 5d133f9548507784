"""How many sessions: an integral and statsmodels as the oracles, and what a simulation finds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats
from statsmodels.stats.power import TTestPower

from tsadbench.analysis.significance.inference import paired_t_power, sessions_needed


@pytest.mark.parametrize("n", [2, 3, 6, 10, 50, 400])
@pytest.mark.parametrize("effect", [0.05, 0.3, 1.0, 2.5])
def test_the_power_is_the_integral_over_what_the_spread_may_be(n, effect):
    """By the definition: given the spread s that is found, a normal mean exceeds t s. statsmodels takes scipy.special's
    noncentral distribution, which is off by 3e-5 in SciPy 1.11.
    """
    limit, shift = stats.t.isf(0.025, n - 1), effect * math.sqrt(n)
    spread = stats.chi(n - 1, scale=1 / math.sqrt(n - 1))

    def exceeded(s):
        return (stats.norm.sf(limit * s - shift) + stats.norm.cdf(-limit * s - shift)) * spread.pdf(s)

    # The density peaks near 1; beyond these bounds lie less than 1e-15 of it.
    low, high = spread.ppf(1e-16), spread.isf(1e-16)
    expected, error = integrate.quad(exceeded, low, high, points=[shift / limit], epsabs=0, epsrel=1e-11, limit=500)
    assert error < 1e-10
    assert paired_t_power(n, effect) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("spread", [0.03, 0.06, 0.1, 0.2, 0.4])
def test_the_number_is_the_t_tests_over_the_efficiency_of_wilcoxons(spread):
    differences = np.array([-1.0, 1.0, 3.0, -3.0])
    differences *= spread / differences.std(ddof=1)
    of_t_test = math.ceil(TTestPower().solve_power(0.05 / spread, alpha=0.05, power=0.8))
    assert sessions_needed(differences + 0.7) == max(6, math.ceil(of_t_test * math.pi / 3))


def test_with_so_many_sessions_wilcoxons_test_finds_it_in_four_of_five_cases():
    generator = np.random.default_rng(0)
    spread = 0.08
    needed = sessions_needed(np.array([-1.0, 1.0]) * spread / math.sqrt(2))
    drawn = generator.normal(0.05, spread, size=(1000, needed))
    found = np.mean(stats.wilcoxon(drawn, axis=1).pvalue < 0.05)
    assert 0.77 <= found <= 0.87
