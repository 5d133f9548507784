"""Pairs of detectors on the same recordings: is there a difference, how large is it, and how often.

Every number is over independent units (sessions), of the differences first - second in the metric's own unit.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal, TypeAlias

import numpy as np
import pandas as pd
from scipy import stats

from tsadbench.utils.arrays import FloatArray
from tsadbench.utils.extras import extra

ALPHA = 0.05
POWER = 0.8
# The difference, in the metric's own unit, for which sessions are counted.
EFFECT = 0.05
# Fewer give no p-value below .05, whatever the differences: 2 / 2^5 = .0625.
LEAST_FOR_TESTS = 6
# Wilcoxon's test needs so many units for one of the t-test's, if differences are normal (Pitman's efficiency, 3 / pi).
_WILCOXON = math.pi / 3
# Differences of at most this much are a tie: the region of practical equivalence.
ROPE = 0.01
# Fewer are too few for the corrections of BCa.
LEAST_FOR_BCA = 10
_LEVEL = 0.95
_RESAMPLES = 9_999
_DECIMALS = 12
# As in scipy.
_MOST_FOR_EXACT = 50

Better: TypeAlias = Literal["higher", "lower"]
WilcoxonMethod: TypeAlias = Literal["exact", "exact with ties", "normal approximation", "no difference"]
IntervalMethod: TypeAlias = Literal["BCa", "percentile"]


@dataclass(frozen=True, slots=True)
class Interval:
    """A 95 % bootstrap interval of the mean difference.

    Parameters
    ----------
    low, high
        Its ends.
    method
        "BCa" (bias-corrected and accelerated); "percentile" if units are too few for it or all differences are
        equal.
    """

    low: float
    high: float
    method: IntervalMethod


@dataclass(frozen=True, slots=True)
class Wilcoxon:
    """Wilcoxon's signed-rank test, two-sided; units that do not differ are left out of it.

    Parameters
    ----------
    p
        The p-value.
    smallest
        The smallest p-value that so many differences of these sizes can have: all in the same direction.
    n_different
        Units that differ.
    method
        "exact"; "exact with ties": given the sizes that tie; "normal approximation": more than 50 differences; "no
        difference": p = 1.
    """

    p: float
    smallest: float
    n_different: int
    method: WilcoxonMethod


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two detectors compared over units; ``differences`` are first - second, one a session.

    ``sessions_needed`` is how many sessions a mean difference of .05 would need, by the spread of the differences; None
    for one session. Below six sessions nothing is tested: ``interval`` (of the mean difference) and ``wilcoxon`` are
    None. ``rank_biserial``, -1 to 1, is the share of the rank sum where first is higher, less the share where second
    is. A tie is a unit within the region of practical equivalence. ``p_holm`` is corrected for all pairs of the
    comparison.
    """

    first: str
    second: str
    n_units: int
    differences: tuple[float, ...]
    mean_difference: float
    median_difference: float
    sessions_needed: int | None
    interval: Interval | None
    rank_biserial: float
    wins: int
    ties: int
    losses: int
    wilcoxon: Wilcoxon | None
    p_holm: float | None

    @property
    def significant(self) -> bool:
        """Whether p after Holm's correction is below .05; False if nothing is tested."""
        return self.p_holm is not None and self.p_holm < ALPHA


def compare_pairs(units: pd.DataFrame, *, better: Better = "higher", rope: float = ROPE) -> tuple[Pair, ...]:
    """Compare each two detectors: described below six units, else tested, corrected by Holm's method.

    Parameters and errors as for `infer`.
    """
    pairs = [
        compare_pair(first, second, units[first].to_numpy(), units[second].to_numpy(), better=better, rope=rope)
        for first, second in combinations(units.columns, 2)
    ]
    tested = [pair.wilcoxon.p for pair in pairs if pair.wilcoxon is not None]
    if not tested:
        return tuple(pairs)
    return tuple(replace(pair, p_holm=p) for pair, p in zip(pairs, holm(tested), strict=True))


def compare_pair(
    first: str,
    second: str,
    first_values: FloatArray,
    second_values: FloatArray,
    *,
    better: Better = "higher",
    rope: float = ROPE,
) -> Pair:
    """Compare two detectors by their values on the same units, [n_units] each, without NaN; no test below six."""
    differences: FloatArray = np.round(first_values - second_values, _DECIMALS)
    gains = differences if better == "higher" else -differences
    test = wilcoxon(differences) if len(differences) >= LEAST_FOR_TESTS else None
    return Pair(
        first=first,
        second=second,
        n_units=len(differences),
        differences=tuple(differences.tolist()),
        mean_difference=float(np.mean(differences)),
        median_difference=float(np.median(differences)),
        sessions_needed=sessions_needed(differences),
        interval=None if test is None else bootstrap_interval(differences),
        rank_biserial=rank_biserial(differences),
        wins=int(np.count_nonzero(gains > rope)),
        ties=int(np.count_nonzero(np.abs(gains) <= rope)),
        losses=int(np.count_nonzero(gains < -rope)),
        wilcoxon=test,
        p_holm=None if test is None else test.p,
    )


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected for their number by Holm's step-down method.

    A MissingExtraError if there are several and statsmodels is not installed.
    """
    if len(p_values) < 2:
        return list(p_values)
    with extra("comparing more than two detectors", "stats"):
        from statsmodels.stats.multitest import multipletests
    corrected = multipletests(p_values, method="holm")[1]
    return [float(p) for p in corrected]


def wilcoxon(differences: FloatArray) -> Wilcoxon:
    """Return Wilcoxon's signed-rank test of differences, [n_units]; zeros are left out, as Wilcoxon did."""
    different = differences[differences != 0.0]
    if len(different) == 0:
        return Wilcoxon(1.0, 1.0, 0, "no difference")
    method = _wilcoxon_method(different)
    p, smallest = (_wilcoxon_p(values, method) for values in (different, np.abs(different)))
    return Wilcoxon(p, smallest, len(different), method)


def _wilcoxon_method(different: FloatArray) -> WilcoxonMethod:
    if len(different) > _MOST_FOR_EXACT:
        return "normal approximation"
    return "exact" if len(np.unique(np.abs(different))) == len(different) else "exact with ties"


def _wilcoxon_p(different: FloatArray, method: WilcoxonMethod) -> float:
    if method == "exact with ties":
        return _exact_with_ties(different)
    # "auto" is the approximation for so many: scipy has had two names for it.
    return float(stats.wilcoxon(different, method="exact" if method == "exact" else "auto").pvalue)


def _exact_with_ties(different: FloatArray) -> float:
    """Return the share of the 2^n ways to give the differences signs whose rank sum is as extreme, two-sided.

    scipy enumerates them, for up to 13 differences, and approximates beyond that. Here the ways that lead to each
    rank sum are counted, one difference after another; ranks of ties are multiples of one half, so they are doubled.
    """
    doubled = np.round(2 * stats.rankdata(np.abs(different))).astype(np.int64)
    ways = np.zeros(int(doubled.sum()) + 1)
    ways[0] = 1.0
    for rank in doubled.tolist():
        ways[rank:] += ways[:-rank].copy()
    positive = int(doubled[different > 0].sum())
    smaller = min(positive, len(ways) - 1 - positive)
    return min(1.0, 2 * float(ways[: smaller + 1].sum() / ways.sum()))


def rank_biserial(differences: FloatArray) -> float:
    """Return the matched-pairs rank-biserial correlation (Kerby 2014) of differences, [n_units]; 0 if none differ."""
    different = differences[differences != 0.0]
    if len(different) == 0:
        return 0.0
    ranks = stats.rankdata(np.abs(different))
    return float(np.sum(np.sign(different) * ranks) / np.sum(ranks))


def bootstrap_interval(differences: FloatArray) -> Interval | None:
    """Return a bootstrap interval of the mean of paired differences, [n_units]; None for fewer than two.

    Units are drawn with replacement, each with both detectors' values: the pairing holds. The draws are the same
    whatever the order of the units, and mirrored if the detectors change places.
    """
    if len(differences) < 2:
        return None
    ordered, mirrored = np.sort(differences), np.sort(-differences)
    if tuple(ordered) < tuple(mirrored):
        low, high, method = _interval(mirrored)
        return Interval(-high, -low, method)
    return Interval(*_interval(ordered))


def _interval(differences: FloatArray) -> tuple[float, float, IntervalMethod]:
    enough = len(differences) >= LEAST_FOR_BCA and bool(np.ptp(differences) > 0.0)
    method: IntervalMethod = "BCa" if enough else "percentile"
    interval = stats.bootstrap(
        (differences,),
        np.mean,
        n_resamples=_RESAMPLES,
        confidence_level=_LEVEL,
        method=method,
        random_state=np.random.default_rng(0),  # the name that scipy before 1.15 knows, too
    ).confidence_interval
    return float(interval.low), float(interval.high), method


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
    with np.errstate(divide="ignore"):  # of which scipy 1.11 warns where the power is close to 1, and goes on
        upper, lower = stats.nct.sf(limit, n - 1, shift), stats.nct.cdf(-limit, n - 1, shift)
    # Far from its centre, scipy 1.17 finds no value for the tail on the other side: it is below 1e-16.
    return float(upper + np.nan_to_num(lower))
