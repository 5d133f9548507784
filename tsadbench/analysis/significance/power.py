"""How many sessions a difference would take to show."""

from __future__ import annotations

import math
from bisect import bisect_left

import numpy as np
from scipy import stats

from tsadbench.utils.arrays import FloatArray

ALPHA = 0.05
POWER = 0.8
# The difference, in the metric's own unit, for which sessions are counted.
EFFECT = 0.05
# Fewer give no p-value below .05, whatever the differences: 2 / 2^5 = .0625.
LEAST_FOR_TESTS = 6
# Wilcoxon's test needs so many units for one of the t-test's, if differences are normal (Pitman's efficiency, 3 / pi).
_WILCOXON = math.pi / 3


def sessions_needed(differences: FloatArray, effect: float = EFFECT) -> int | None:
    """Return how many sessions Wilcoxon's signed-rank test needs to show a mean difference, one pair alone.

    The number that the paired t-test needs, two-sided at .05 with power .8, over Wilcoxon's efficiency; at least six.

    Parameters
    ----------
    differences
        [n_sessions]; their standard deviation (ddof 1) is taken for that between all sessions.
    effect
        The mean difference.

    Returns
    -------
    int or None
        None for a single session, which has no spread.
    """
    if len(differences) < 2:
        return None
    spread = float(np.std(differences, ddof=1))
    if spread == 0.0:
        return LEAST_FOR_TESTS
    most = 2
    while paired_t_power(most, effect / spread) < POWER:
        most *= 2
    enough = 2 + bisect_left(range(2, most), POWER, key=lambda n: paired_t_power(n, effect / spread))
    return max(LEAST_FOR_TESTS, math.ceil(_WILCOXON * enough))


def paired_t_power(n: int, effect: float) -> float:
    """Return the power of the two-sided paired t-test at .05, for n differences of this mean in standard deviations."""
    limit = stats.t.isf(ALPHA / 2, n - 1)
    shift = effect * math.sqrt(n)
    return float(stats.nct.sf(limit, n - 1, shift) + stats.nct.cdf(-limit, n - 1, shift))
