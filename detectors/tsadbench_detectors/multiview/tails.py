"""How rarely normal rows reach a statistic: the empirical distribution, and a generalised Pareto tail beyond it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from tsadbench.base import FloatArray

# As Peaks-over-Threshold does: the tail begins at this quantile, or lower if too few values lie above it.
_LEVEL = 0.98
_LOWEST_LEVEL = 0.90
_ENOUGH_EXCESSES = 30
_FEWEST_EXCESSES = 5
_KNOTS = 501


@dataclass(frozen=True, slots=True, eq=False)
class Tails:
    """The upper tails of several statistics, learned from normal rows.

    Below its initial threshold a statistic's tail probability is empirical. Beyond, it is that of a generalised Pareto
    distribution, which is fitted to the excesses by probability-weighted moments [1]_.

    References
    ----------
    .. [1] J. R. M. Hosking, J. R. Wallis, "Parameter and Quantile Estimation for the Generalized Pareto Distribution",
       Technometrics 29(3), 1987.

    Examples
    --------
    >>> values = -np.log(np.arange(1, 10_001) / 10_001)[:, None]  # exponential: the evidence is the value itself
    >>> tails = Tails.of(values)
    >>> tails.evidence_of(np.array([[1.0], [6.0], [20.0]])).round(1).ravel().tolist()
    [1.0, 6.0, 20.2]
    """

    quantiles: FloatArray  # [n_statistics, 501] of the values up to the initial threshold
    evidence: FloatArray  # [n_statistics, 501], minus the logarithm of the tail probability at these quantiles
    share: FloatArray  # [n_statistics] of the values that are above the initial threshold
    shape: FloatArray  # [n_statistics], the tail's gamma
    scale: FloatArray  # [n_statistics], the tail's sigma

    @classmethod
    def of(cls, values: FloatArray, least_shape: float = 0.0, least_scale: float = 0.0) -> Self:
        """Learn from values [n_rows, n_statistics] of normal rows; not negative, finite.

        The tails' gamma is at least ``least_shape``, at least 0 and below 1: the heavier the tail, the slower its
        evidence grows far beyond all that was seen. Their sigma is at least ``least_scale``: values that differ by less
        are equal but for rounding.
        """
        ordered = np.sort(values, axis=0).T
        share, shape, scale = np.array([_tail(column, least_shape) for column in ordered]).T
        body = np.linspace(0.0, 1.0, _KNOTS) * (1.0 - share)[:, None]
        quantiles = np.array([np.quantile(column, at) for column, at in zip(ordered, body, strict=True)])
        # Of equal values, all are as usual as the first: a tail probability counts the value itself.
        firsts = [np.searchsorted(column, column, side="left") for column in quantiles]
        body = np.take_along_axis(body, np.array(firsts), axis=1)
        return cls(quantiles, -np.log1p(-body), share, shape, np.maximum(scale, least_scale))

    def evidence_of(self, values: FloatArray) -> FloatArray:
        """Return minus the natural logarithm of the tail probabilities of values [n_rows, n_statistics]."""
        evidence = np.empty_like(values)
        for column, (knots, at_knots) in enumerate(zip(self.quantiles, self.evidence, strict=True)):
            evidence[:, column] = np.interp(values[:, column], knots, at_knots)
        evidence = np.where(values > self.quantiles[:, -1], -np.log(self.share), evidence)
        excess = np.maximum(values - self.quantiles[:, -1], 0.0) / self.scale
        # The limit of log(1 + gamma x) / gamma as gamma goes to 0 is x.
        shape = np.where(self.shape > 0, self.shape, 1.0)
        beyond = np.where(self.shape > 0, np.log1p(shape * excess) / shape, excess)
        return np.asarray(evidence + beyond)


def _tail(ordered: FloatArray, least_shape: float) -> tuple[float, float, float]:
    """Return the share of ascending values in the tail, its shape and its scale."""
    level = _LEVEL
    while level > _LOWEST_LEVEL and np.count_nonzero(ordered > np.quantile(ordered, level)) < _ENOUGH_EXCESSES:
        level -= 0.01
    threshold = np.quantile(ordered, level)
    excesses = ordered[ordered > threshold] - threshold
    n, k = len(ordered), len(excesses)
    share = max(k, 1) / (n + 1)
    if k < _FEWEST_EXCESSES:
        # Nothing to fit: one unit of the statistic, a standard deviation, counts for one step of a heavy tail.
        return share, max(0.5, least_shape), max(1.0, float(excesses.mean()) if k else 1.0)
    mean = float(excesses.mean())
    weighted = float(((1.0 - (np.arange(1, k + 1) - 0.35) / k) * excesses).mean())
    # The excesses rise, and their weights, below 1/2 on average, fall: 0 < 2 weighted < mean, and the shape is below 1.
    difference = mean - 2.0 * weighted
    shape = 2.0 - mean / difference
    if shape >= least_shape:
        return share, shape, 2.0 * mean * weighted / difference
    return share, least_shape, mean * (1.0 - least_shape)  # of the same mean excess
