"""Peaks-over-Threshold (PoT): a threshold that normal scores exceed with a given, small probability.

Scores above a high quantile follow, in the limit, a generalised Pareto distribution (GPD). It is fitted to the scores
of normal training rows, and its quantile is the threshold [1]_.

References
----------
.. [1] A. Siffer, P.-A. Fouque, A. Termier, C. Largouët, "Anomaly Detection in Streams with Extreme Value Theory",
   KDD 2017, section 3.
.. [2] S. D. Grimshaw, "Computing Maximum Likelihood Estimates for the Generalized Pareto Distribution",
   Technometrics 35(2), 1993: the likelihood as a function of gamma / sigma alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import count

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import boxcox

from tsadbench import DataError, UsageError
from tsadbench.base import FloatArray, Threshold

ENOUGH_EXCESSES = 30
LOWEST_LEVEL = 0.90
FEWEST_DISTINCT = 10

# Below -0.5 maximum likelihood has no regular theory (and below -1 no maximum); above 1 the GPD has no mean.
GAMMA_MIN, GAMMA_MAX = -0.5, 1.0

_GRID = 70  # points on either side of gamma = 0: neighbours differ by at most 0.4 in gamma on ordinary tails


def fit(scores: FloatArray, level: float = 0.98, q: float = 1e-3) -> Threshold:
    """Return the score that a normal row exceeds with probability ``q``.

    The initial threshold ``t`` is the quantile of the scores at ``level``, which falls by .01 at a time, down to
    .90, while fewer than 30 scores lie above ``t``. The value is

    - the largest score if none lies above ``t``: status "degenerate";
    - the empirical (1 - q) quantile if fewer than 10 distinct scores lie above ``t``: status "quantile";
    - ``t`` if ties leave at most the share ``q`` of the scores above it: status "quantile", because ``t`` already is an
      empirical (1 - q) quantile;
    - else the quantile of the fitted GPD, gamma in [-0.5, 1]: status "ok", or "clamped" if gamma lies at a bound.

    It is never below ``t``, never rises with ``q``, and follows the scale and origin of the scores.

    Parameters
    ----------
    scores
        [n] scores of normal rows, finite, in any order; higher is more anomalous.
    level
        Quantile level of the initial threshold, in (0, 1); else a UsageError.
    q
        Probability that a normal row is flagged, in (0, 1 - level); else a UsageError.

    Examples
    --------
    >>> scores = -np.log(np.arange(1, 10_001) / 10_001)  # exponential: t near ln 50, the value near ln 1000
    >>> threshold = fit(scores, level=0.98, q=1e-3)
    >>> threshold.status, round(threshold.t, 2), round(threshold.value, 1)
    ('ok', 3.91, 6.8)
    """
    check_options(level, q)
    ordered = _checked(scores)
    n = len(ordered)
    for step in count():
        lowered = round(level - step / 100, 12)  # subtracting .01 repeatedly would miss .90
        t = float(np.quantile(ordered, lowered))
        tail = ordered[ordered > t]
        if len(tail) >= ENOUGH_EXCESSES or lowered <= LOWEST_LEVEL:
            break
    found = partial(Threshold, method="pot", t=t, level=lowered, q=q, n=n, excesses=len(tail))
    if len(tail) == 0:
        return found(value=float(ordered[-1]), status="degenerate")
    if len(np.unique(tail)) < FEWEST_DISTINCT:
        return found(value=float(np.quantile(ordered, 1 - q)), status="quantile")
    if len(tail) <= q * n:
        return found(value=t, status="quantile")
    gamma, sigma, log_likelihood = fit_excesses(tail - t)
    endpoint = t - sigma / gamma if gamma < 0 else math.inf
    return found(
        value=t - sigma * float(boxcox(q * n / len(tail), -gamma)),  # [1]_, equation 1, exact for gamma near 0
        status="clamped" if gamma in (GAMMA_MIN, GAMMA_MAX) else "ok",
        gamma=gamma,
        sigma=sigma,
        log_likelihood=log_likelihood,
        endpoint=endpoint if math.isfinite(endpoint) else None,
    )


def check_options(level: float, q: float) -> None:
    """Raise a UsageError unless 0 < level < 1 and 0 < q < 1 - level."""
    if not 0 < level < 1:
        raise UsageError(f"level must lie between 0 and 1, found {level!r}; .98 is usual")
    # Rounded, because 1 - .98 is a little more than .02 in binary.
    if not (q > 0 and round(level + q, 12) < 1):
        raise UsageError(
            f"q must lie between 0 and 1 - level = {1 - level:.6g}, or the threshold would fall below the initial one; "
            f"found {q!r}"
        )


def fit_excesses(excesses: FloatArray) -> tuple[float, float, float]:
    """Return gamma, sigma and log-likelihood of the likeliest GPD of excesses [n], positive and not all equal.

    With x = gamma / sigma, the best gamma for a given x is mean(log(1 + x y)), so the likelihood is searched in x
    alone ([2]_): on a grid, then around its best point. At a bound of gamma only sigma is fitted.
    """
    largest = float(excesses.max())
    scale = largest * float(np.mean(excesses / largest))  # the plain sum could overflow
    y = excesses / scale  # has mean 1, so that no constant below has a unit
    largest = float(y.max())
    lowest, highest = _solve(_gamma, GAMMA_MIN, y), _solve(_gamma, GAMMA_MAX, y)
    # Gamma changes with log(1 + x max(y)) below 0, with log(x) above.
    below = (np.geomspace(1 + lowest * largest, 1, _GRID)[1:] - 1) / largest
    grid = [lowest, *below.tolist(), *np.geomspace(1e-3, highest, _GRID).tolist()]
    costs = [_cost(x, _gamma(x, y), y) for x in grid]
    best = int(np.argmin(costs))
    around = (grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)])
    search = minimize_scalar(
        lambda x: _cost(x, _gamma(x, y), y),
        bounds=around,
        method="bounded",  # never leaves the allowed range of gamma
        options={"xatol": 1e-10 * (around[1] - around[0])},
    )
    cost, x = min((costs[best], grid[best]), (float(search.fun), float(search.x)))
    gamma = _gamma(x, y)
    if x in (lowest, highest):
        gamma = GAMMA_MIN if x == lowest else GAMMA_MAX
        x = _solve(_slope, gamma / (1 + gamma), y)
        cost = _cost(x, gamma, y)
    return gamma, scale * gamma / x if x else scale, -len(y) * (cost + math.log(scale))


def _gamma(x: float, y: FloatArray) -> float:
    """Return the likeliest gamma for this gamma / sigma; it grows with x."""
    return float(np.mean(np.log1p(x * y)))


def _slope(x: float, y: FloatArray) -> float:
    """Return a value that is gamma / (1 + gamma) at the likeliest sigma for a fixed gamma; it grows with x."""
    return float(np.mean(x * y / (1 + x * y)))


def _cost(x: float, gamma: float, y: FloatArray) -> float:
    """Return the mean negative log-likelihood of excesses with mean 1."""
    return math.log(gamma / x) + (1 + 1 / gamma) * _gamma(x, y) if x else 1.0


def _solve(grows: Callable[[float, FloatArray], float], target: float, y: FloatArray) -> float:
    """Return the x at which a function that grows from 0 at x = 0 reaches the target, or the end of its range."""
    low, high = (-(1 - 1e-12) / float(y.max()), 0.0) if target < 0 else (0.0, 10.0)  # 1 + x y must stay positive
    while grows(high, y) < target and high <= 1e300:
        high *= 10
    if grows(low, y) >= target or grows(high, y) < target:
        return low if target < 0 else high
    # An absolute tolerance would stop too early for a small x.
    return float(brentq(lambda x: grows(x, y) - target, low, high, xtol=1e-300, rtol=1e-14, maxiter=1000))


def _checked(scores: FloatArray) -> FloatArray:
    """Return the scores in ascending order; a DataError unless there is at least one and all are finite."""
    ordered = np.sort(np.asarray(scores, dtype=np.float64), axis=None)
    with np.errstate(over="ignore", invalid="ignore"):
        if len(ordered) == 0 or not np.isfinite(ordered[-1] - ordered[0]):  # NaN is sorted to the end
            wrong = int(np.count_nonzero(~np.isfinite(ordered)))
            raise DataError(
                f"Peaks-over-Threshold: expected at least one score, finite and of finite spread; {wrong} of "
                f"{len(ordered)} are NaN or infinite"
            )
    return ordered
