"""Peaks-over-Threshold (PoT): a threshold that normal scores exceed with a given, small probability.

The scores above a high quantile follow, in the limit, a generalised Pareto distribution (GPD). It is fitted to them,
and its quantile is the threshold [1]_. Scores are only ever those of normal training rows.

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
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from tsadbench import DataError, UsageError
from tsadbench.base import FloatArray, Threshold

ENOUGH_EXCESSES = 30
LOWEST_LEVEL = 0.90
FEWEST_DISTINCT = 10

# Below -0.5 maximum likelihood has no regular theory (and below -1 no maximum); above 1 the GPD has no mean.
GAMMA_MIN, GAMMA_MAX = -0.5, 1.0

_GRID = 70  # points on either side of gamma = 0: neighbours differ by at most 0.4 in gamma on ordinary tails
_NEARLY_ZERO = 1e-8  # (exp(gamma * x) - 1) / gamma = x to double precision there


def fit(scores: FloatArray, level: float = 0.98, q: float = 1e-3) -> Threshold:
    """Return the score that a normal row exceeds with probability ``q``.

    The initial threshold ``t`` is the empirical quantile at ``level``. While fewer than 30 scores lie above it and
    the level is above .90, the level falls by .01. Then, in this order:

    - no score above ``t``: the largest score, status "degenerate";
    - fewer than 10 distinct scores above ``t``: the empirical (1 - q) quantile, status "quantile";
    - ties at ``t`` leave at most the share ``q`` of the scores above it: ``t``, status "quantile". It already is
      an empirical (1 - q) quantile, and the GPD's would lie below it;
    - else the quantile of the GPD fitted by maximum likelihood, gamma in [-0.5, 1]: status "ok", or "clamped"
      if gamma lies at a bound.

    The value is never below ``t``, never rises with ``q``, does not depend on the order of the scores, and follows
    their scale and origin.

    Parameters
    ----------
    scores
        [n] scores of normal rows, finite, higher = more anomalous.
    level
        Quantile level of the initial threshold, in (0, 1).
    q
        Risk: the probability that a normal row is flagged, in (0, 1 - level).

    Raises
    ------
    UsageError
        If ``level`` or ``q`` is out of range.
    DataError
        If there is no score, or one is not finite.

    Examples
    --------
    >>> scores = -np.log(np.arange(1, 10_001) / 10_001)  # exponential: t near ln 50, the value near ln 1000
    >>> threshold = fit(scores, level=0.98, q=1e-3)
    >>> threshold.status, round(threshold.t, 2), round(threshold.value, 1)
    ('ok', 3.91, 6.8)
    """
    check_options(level, q)
    ordered = _checked(scores)
    level, t = _initial_threshold(ordered, level)
    tail = ordered[np.searchsorted(ordered, t, side="right") :]
    n, excesses = len(ordered), len(tail)
    found = partial(Threshold, method="pot", t=t, level=level, q=q, n=n, excesses=excesses)
    if excesses == 0:
        return found(value=float(ordered[-1]), status="degenerate")
    if np.count_nonzero(np.diff(tail)) + 1 < FEWEST_DISTINCT:
        return found(value=float(np.quantile(ordered, 1 - q)), status="quantile")
    if excesses <= q * n:
        return found(value=t, status="quantile")
    pareto = fit_excesses(tail - t)
    reach = pareto.sigma / -pareto.gamma if pareto.gamma < 0 else math.inf
    return found(
        value=tail_quantile(t, pareto.gamma, pareto.sigma, q * n / excesses),
        status="clamped" if pareto.gamma in (GAMMA_MIN, GAMMA_MAX) else "ok",
        **pareto._asdict(),
        endpoint=t + reach if math.isfinite(reach) else None,
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


def tail_quantile(t: float, gamma: float, sigma: float, ratio: float) -> float:
    """Return the score above which the share ``ratio`` of the tail beyond ``t`` lies ([1]_, equation 1).

    Parameters
    ----------
    t
        Initial threshold.
    gamma, sigma
        Shape and scale of the generalised Pareto distribution.
    ratio
        q * n / excesses, in (0, 1]; 1 gives ``t`` itself.
    """
    steps = -math.log(ratio)
    # The textbook form (ratio ** -gamma - 1) / gamma loses all its digits as gamma goes to 0.
    reach = steps if abs(gamma) < _NEARLY_ZERO else math.expm1(gamma * steps) / gamma
    return t + sigma * reach


class Pareto(NamedTuple):
    """A generalised Pareto distribution: shape, scale in units of the score, log-likelihood of the excesses."""

    gamma: float
    sigma: float
    log_likelihood: float


def fit_excesses(excesses: FloatArray) -> Pareto:
    """Return the generalised Pareto distribution that makes these excesses most likely, gamma in [-0.5, 1].

    With x = gamma / sigma, the best gamma for a given x is mean(log(1 + x y)), so the likelihood is searched in x
    alone ([2]_): on a grid, then around its best point. If that leads to a bound of gamma, gamma is exactly this bound
    and only sigma is fitted. Excesses are divided by their mean first, so that no constant in here has a unit.

    Parameters
    ----------
    excesses
        [n] positive, not all equal.
    """
    largest = float(excesses.max())
    scale = largest * float(np.mean(excesses / largest))  # the plain sum could overflow
    y = excesses / scale
    first, last = _solve(_gamma, GAMMA_MIN, y), _solve(_gamma, GAMMA_MAX, y)
    grid = _grid(first, last, float(y.max()))
    costs = [_cost(x, _gamma(x, y), y) for x in grid]
    best = int(np.argmin(costs))
    around = (grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)])
    # A bounded search: the grid spans the allowed range of gamma, and the search must not leave it.
    search = minimize_scalar(
        lambda x: _cost(x, _gamma(x, y), y),
        bounds=around,
        method="bounded",
        options={"xatol": 1e-10 * (around[1] - around[0])},
    )
    cost, x = min((costs[best], grid[best]), (float(search.fun), float(search.x)))
    gamma = _gamma(x, y)
    if x in (first, last):
        gamma = GAMMA_MIN if x == first else GAMMA_MAX
        x = _solve(_slope, gamma / (1 + gamma), y)
        cost = _cost(x, gamma, y)
    return Pareto(gamma, scale * gamma / x if x else scale, -len(y) * (cost + math.log(scale)))


def _gamma(x: float, y: FloatArray) -> float:
    """Return the likeliest gamma for this gamma / sigma; it grows with x."""
    return float(np.mean(np.log1p(x * y)))


def _slope(x: float, y: FloatArray) -> float:
    """Return what is gamma / (1 + gamma) at the likeliest sigma for a fixed gamma; it grows with x."""
    return float(np.mean(x * y / (1 + x * y)))


def _cost(x: float, gamma: float, y: FloatArray) -> float:
    """Return the negative log-likelihood an excess; y has mean 1."""
    return math.log(gamma / x) + (1 + 1 / gamma) * _gamma(x, y) if x else 1.0


def _solve(grows: Callable[[float, FloatArray], float], target: float, y: FloatArray) -> float:
    """Return the x at which a function that grows from 0 at x = 0 reaches the target, or the last x on the way."""
    low, high = 0.0, 10.0
    if target < 0:
        low, high = -(1 - 1e-12) / float(y.max()), 0.0  # 1 + x y must stay positive
        if grows(low, y) >= target:
            return low
    while grows(high, y) < target:  # one decade at a time: x has no natural upper bound
        high *= 10
        if high > 1e300:
            return high
    # An absolute tolerance would stop too early for a small x, so only the relative one counts.
    return float(brentq(lambda x: grows(x, y) - target, low, high, xtol=1e-300, rtol=1e-14, maxiter=1000))


def _grid(first: float, last: float, largest: float) -> list[float]:
    """Return x from first to last. Gamma changes with log(1 + x max(y)) below 0, with log(x) above."""
    below = (np.geomspace(1 + first * largest, 1, _GRID)[1:-1] - 1) / largest
    above = np.geomspace(1e-3, last, _GRID)[:-1]
    return [first, *below.tolist(), 0.0, *above.tolist(), last]


def _initial_threshold(ordered: FloatArray, level: float) -> tuple[float, float]:
    """Return the first level, in steps of .01 downwards, that leaves enough excesses, and its quantile."""
    for steps in count():
        lowered = round(level - steps / 100, 12)  # .01 subtracted again and again would miss .90
        t = float(np.quantile(ordered, lowered))
        excesses = len(ordered) - int(np.searchsorted(ordered, t, side="right"))
        if excesses >= ENOUGH_EXCESSES or lowered <= LOWEST_LEVEL:
            break
    return lowered, t


def _checked(scores: FloatArray) -> FloatArray:
    """Return the scores in ascending order."""
    ordered = np.sort(np.asarray(scores, dtype=np.float64), axis=None)
    with np.errstate(over="ignore", invalid="ignore"):
        # Sorting puts NaN last: one look is enough.
        if len(ordered) == 0 or not np.isfinite(ordered[-1] - ordered[0]):
            wrong = int(np.count_nonzero(~np.isfinite(ordered)))
            raise DataError(
                f"Peaks-over-Threshold: expected at least one score, finite and of finite spread; {wrong} of "
                f"{len(ordered)} are NaN or infinite"
            )
    return ordered
