"""Several detectors on the same recordings: do they differ at all."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

from tsadbench.analysis.significance.matrix import Matrix
from tsadbench.analysis.significance.pairs import Better
from tsadbench.analysis.significance.power import ALPHA


@dataclass(frozen=True, slots=True)
class Friedman:
    """Friedman's test, by the F statistic of Iman and Davenport (1980), as its chi-squared is too cautious.

    Parameters
    ----------
    chi_squared
        Friedman's statistic, corrected for ties.
    f
        (n - 1) chi_squared / (n (k - 1) - chi_squared); None if all units rank the detectors alike: it is infinite.
    degrees
        Of freedom of F: k - 1 and (k - 1)(n - 1).
    p
        By F; by chi-squared if F is infinite.
    """

    chi_squared: float
    f: float | None
    degrees: tuple[int, int]
    p: float

    @property
    def significant(self) -> bool:
        """Whether p is below .05."""
        return self.p < ALPHA


def mean_ranks(matrix: Matrix, better: Better = "higher") -> dict[str, float]:
    """Return each detector's mean rank over the units of a matrix: 1 is the best, equal values share theirs."""
    oriented = -matrix.values if better == "higher" else matrix.values
    means = stats.rankdata(oriented, axis=1).mean(axis=0)
    return dict(zip(matrix.detectors, means.tolist(), strict=True))


def friedman(matrix: Matrix) -> Friedman | None:
    """Return Friedman's test over the units of a matrix, [n_units, n_detectors] without NaN.

    None if it is undefined: fewer than three detectors or two units, or no unit distinguishes any of them.
    """
    n, k = matrix.values.shape
    if k < 3 or n < 2 or not np.ptp(matrix.values, axis=1).any():
        return None
    chi_squared = float(stats.friedmanchisquare(*matrix.values.T).statistic)
    degrees = (k - 1, (k - 1) * (n - 1))
    rest = n * (k - 1) - chi_squared
    if math.isclose(rest, 0.0, abs_tol=1e-9):
        return Friedman(chi_squared, None, degrees, float(stats.chi2.sf(chi_squared, k - 1)))
    f = (n - 1) * chi_squared / rest
    return Friedman(chi_squared, f, degrees, float(stats.f.sf(f, *degrees)))
