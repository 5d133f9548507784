"""Statistical inference from paired values of independent units: pure functions without stores or data sets.

Differences are first - second, in the metric's own unit.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

from tsadbench.analysis.significance import ROPE
from tsadbench.leaderboard.render import number
from tsadbench.leaderboard.table import LEAST_FOR_TESTS
from tsadbench.utils.arrays import FloatArray
from tsadbench.utils.extras import extra

ALPHA, POWER = 0.05, 0.8
# The difference for which the required number of sessions is computed.
EFFECT = 0.05
# With fewer units, BCa's corrections are unreliable, and a diagram of mean ranks would mislead.
LEAST_FOR_BCA = LEAST_FOR_DIAGRAM = 10
# Wilcoxon's test needs this many units for one of the t-test's on normal differences (Pitman's efficiency, 3 / pi).
_WILCOXON = math.pi / 3
_DECIMALS = 12
_MOST_FOR_EXACT = 50
_MOST_SESSIONS = 10**9

Better: TypeAlias = Literal["higher", "lower"]


def compare_pairs(units: pd.DataFrame, *, better: Better = "higher", rope: float = ROPE) -> pd.DataFrame:
    """Return a row per pair of detectors: `compare_pair` and ``p_holm``, corrected for all pairs.

    ``units`` are [n_units, n_detectors], two or more detectors on one unit or more, without NaN. A MissingExtraError if
    more than two detectors are tested and statsmodels is not installed.
    """
    pairs = pd.DataFrame(
        {"first": first, "second": second, **compare_pair(units[first], units[second], better=better, rope=rope)}
        for first, second in combinations(units.columns, 2)
    )
    pairs["p_holm"] = pairs["p"]
    if len(pairs) > 1 and len(units) >= LEAST_FOR_TESTS:
        with extra("comparing more than two detectors", "stats"):
            from statsmodels.stats.multitest import multipletests
        pairs["p_holm"] = multipletests(pairs["p"], method="holm")[1]
    return pairs


def friedman(units: pd.DataFrame) -> dict[str, float] | None:
    """Return Friedman's test over units, [n_units, n_detectors] without NaN, by Iman and Davenport's F (1980).

    If all units rank the detectors equally, F is infinite, and p comes from chi-squared. None if the test is undefined:
    fewer than three detectors or two units, or only ties.
    """
    n, k = units.shape
    if k < 3 or n < 2 or not np.ptp(units.to_numpy(), axis=1).any():
        return None
    chi_squared = float(stats.friedmanchisquare(*units.to_numpy().T).statistic)
    found = {"chi_squared": chi_squared, "df1": k - 1, "df2": (k - 1) * (n - 1)}
    if math.isclose(rest := n * (k - 1) - chi_squared, 0.0, abs_tol=1e-9):
        return {**found, "f": math.inf, "p": float(stats.chi2.sf(chi_squared, k - 1))}
    f = (n - 1) * chi_squared / rest
    return {**found, "f": f, "p": float(stats.f.sf(f, found["df1"], found["df2"]))}


def compare_pair(
    first: ArrayLike, second: ArrayLike, *, better: Better = "higher", rope: float = ROPE
) -> dict[str, Any]:
    """Compare two detectors by their values on the same units, [n_units] each, without NaN; no test below six.

    ``low`` and ``high`` bound a 95 % bootstrap interval of the mean difference, ``smallest_p`` is the p-value if all
    differences had the same direction, and a tie is a difference within ``rope``.
    """
    differences: FloatArray = np.round(np.asarray(first) - np.asarray(second), _DECIMALS)
    gains = differences if better == "higher" else -differences
    tested = len(differences) >= LEAST_FOR_TESTS
    low, high, interval = bootstrap_interval(differences) if tested else (math.nan, math.nan, None)
    p, method = wilcoxon(differences) if tested else (math.nan, None)
    return {
        **{"n_units": len(differences), "mean_difference": float(np.mean(differences))},
        **{"low": low, "high": high, "interval": interval},
        **{"median_difference": float(np.median(differences)), "rank_biserial": rank_biserial(differences)},
        **{"wins": (gains > rope).sum(), "ties": (abs(gains) <= rope).sum(), "losses": (gains < -rope).sum()},
        **{"sessions_needed": sessions_needed(differences), "p": p},
        "smallest_p": wilcoxon(np.abs(differences))[0] if tested else math.nan,
        **{"n_different": int(np.count_nonzero(differences)), "wilcoxon": method},
    }


def wilcoxon(differences: FloatArray) -> tuple[float, str]:
    """Return the two-sided p-value of Wilcoxon's signed-rank test, [n_units], and its method; zeros are left out.

    Exact up to 50 differences, even with ties, for which scipy approximates from 14 on. Counts the ways to reach each
    rank sum, one difference after another. Ranks are doubled, because ties have half-integer ranks.
    """
    different = differences[differences != 0.0]
    if len(different) == 0:
        return 1.0, "no difference"
    if len(different) > _MOST_FOR_EXACT:
        return float(stats.wilcoxon(different).pvalue), "normal approximation"
    doubled = np.round(2 * stats.rankdata(np.abs(different))).astype(np.int64)
    ways = np.zeros(int(doubled.sum()) + 1)
    ways[0] = 1.0
    for rank in doubled.tolist():
        ways[rank:] += ways[:-rank].copy()
    positive = int(doubled[different > 0].sum())
    smaller = min(positive, len(ways) - 1 - positive)
    return min(1.0, 2 * float(ways[: smaller + 1].sum() / ways.sum())), "exact"


def rank_biserial(differences: FloatArray) -> float:
    """Return the matched-pairs rank-biserial correlation (Kerby 2014), -1 to 1, of differences; 0 if all are 0."""
    different = differences[differences != 0.0]
    ranks = stats.rankdata(np.abs(different))
    return float(np.sign(different) @ ranks / ranks.sum()) if len(different) else 0.0


def bootstrap_interval(differences: FloatArray) -> tuple[float, float, str]:
    """Return a 95 % bootstrap interval of the mean of differences, [n_units] in any order, and its method."""
    enough = len(differences) >= LEAST_FOR_BCA and bool(np.ptp(differences) > 0.0)
    name: Literal["BCa", "percentile"] = "BCa" if enough else "percentile"
    generator = np.random.default_rng(0)  # scipy before 1.15 calls it random_state
    found = stats.bootstrap((np.sort(differences),), np.mean, method=name, random_state=generator).confidence_interval
    return float(found.low), float(found.high), name


def sessions_needed(differences: FloatArray, effect: float = EFFECT) -> int | None:
    """Return how many sessions Wilcoxon's signed-rank test needs to show a mean difference; None for one session.

    The number for the paired t-test (two-sided at .05, power .8) divided by Wilcoxon's efficiency; at least six.
    """
    if len(differences) < 2:
        return None
    if (spread := float(np.std(differences, ddof=1))) == 0.0:
        return LEAST_FOR_TESTS
    enough = 2 + bisect_left(range(2, _MOST_SESSIONS), POWER, key=lambda n: paired_t_power(n, effect / spread))
    return max(LEAST_FOR_TESTS, math.ceil(_WILCOXON * enough))


def paired_t_power(n: int, effect: float) -> float:
    """Return the power of the two-sided paired t-test at .05 for n differences; ``effect`` is mean / deviation."""
    limit = stats.t.isf(ALPHA / 2, n - 1)
    shift = effect * math.sqrt(n)
    with np.errstate(divide="ignore"):  # scipy 1.11 warns where the power is close to 1
        upper, lower = stats.nct.sf(limit, n - 1, shift), stats.nct.cdf(-limit, n - 1, shift)
    # Far from the centre, scipy 1.17 returns NaN for the opposite tail, which is below 1e-16.
    return float(upper + np.nan_to_num(lower))


def conclusions(pairs: pd.DataFrame, test: Mapping[str, float] | None, better: Better = "higher") -> Iterator[str]:
    """Yield sentences: whether there are enough sessions, whether detectors differ, and which do.

    ``pairs`` are those of `compare_pairs`, and ``test`` is what `friedman` found.
    """
    n, conclusive = int(pairs["n_units"].iloc[0]), False
    if n < LEAST_FOR_TESTS:
        yield (
            f"Described, not tested: {n} session{'s are' if n > 1 else ' is'} too few. With fewer than "
            f"{LEAST_FOR_TESTS} no difference, however large, has a p-value below .05."
        )
    else:
        different, least = pairs["n_different"].max(), min(1.0, len(pairs) * pairs["smallest_p"].min())
        conclusive = least < ALPHA
        units = f"{n} sessions{'' if different == n else f', {different} of which differ,'}"
        smallest = f"{p_value(least)}{' after Holm' if len(pairs) > 1 else ''}"
        few = "Too few to conclude anything (nothing can be significant at .05): " * (not conclusive)
        yield f"{few}{units} can give no p-value below {smallest}."
    if n > 1:
        low, high = pairs["sessions_needed"].min(), pairs["sessions_needed"].max()
        yield (
            f"Detecting a difference of {number(EFFECT, 2)} takes {low}{f' to {high}' if low < high else ''} sessions "
            f"(estimate, two-sided at .05, power {number(POWER, 1)}, a single pair; spread as between these {n})."
        )
    if test is not None:
        shown = "the detectors are not all alike" if test["p"] < ALPHA else "no difference among the detectors is shown"
        f = f"Iman-Davenport F({test['df1']:.0f}, {test['df2']:.0f}) = {test['f']:.2f}"
        yield f"Friedman: {shown} ({f}, p = {p_value(test['p'])})."
    beaten: dict[str, list[str]] = {}
    significant = pairs[pairs["p_holm"] < ALPHA]
    for first, second, p, effect in significant[["first", "second", "p_holm", "rank_biserial"]].to_numpy().tolist():
        winner, loser = (first, second) if (effect > 0) == (better == "higher") else (second, first)
        beaten.setdefault(winner, []).append(f"{loser} (p = {p_value(p)})")
    yield from (f"{winner} is better than {', '.join(losers)}." for winner, losers in beaten.items())
    if conclusive and (rest := len(pairs) - len(significant)):
        yield f"Not significant at .05: {rest} of {len(pairs)} differences. That does not show equality."


def p_value(p: float) -> str:
    """Return a p-value as text: two significant digits, without the zero before the decimal point."""
    return f"{p:.1e}" if p < 1e-4 else number(float(f"{p:.2g}"), max(2, 1 - math.floor(math.log10(p))))
