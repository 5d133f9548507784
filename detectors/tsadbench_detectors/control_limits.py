"""Control limits of multivariate process monitoring: what T-squared and Q exceed once in 1 / (1 - confidence) rows."""

from __future__ import annotations

import numpy as np
from scipy import stats

from tsadbench.base import FloatArray


def t2_limit(n_variables: int, n_rows: int, confidence: float) -> float:
    """Return the limit of Hotelling's T-squared for a new row, one that was not used to estimate the covariance.

    ``m (n - 1) (n + 1) / (n (n - m)) F(confidence; m, n - m)``.

    Parameters
    ----------
    n_variables
        m: sensors, or principal components.
    n_rows
        n: training rows, more than m.
    confidence
        Share of normal rows below the limit.

    Examples
    --------
    >>> round(t2_limit(8, 400, 0.999), 2)
    27.35
    """
    m, n = n_variables, n_rows
    return m * (n - 1) * (n + 1) / (n * (n - m)) * float(stats.f.ppf(confidence, m, n - m))


def q_limit(residual_variances: FloatArray, confidence: float) -> float:
    """Return the limit of Q, the squared length of what the principal components leave of a row.

    Jackson and Mudholkar's approximation. It does not hold if its exponent h0 is not positive; then the limit is
    that of the scaled chi-squared distribution with the same mean and variance.

    Parameters
    ----------
    residual_variances
        [n_residual], positive: the variances of the components that were not kept. If there are none, nothing is
        left of a row and the limit is infinite.
    confidence
        Share of normal rows below the limit, at least 0.5.

    References
    ----------
    J. E. Jackson and G. S. Mudholkar, Control procedures for residuals associated with principal component
    analysis, Technometrics 21(3), 1979. The chi-squared form: G. E. P. Box, Some theorems on quadratic forms,
    Annals of Mathematical Statistics 25(2), 1954.

    Examples
    --------
    >>> round(q_limit(np.array([0.5, 0.3, 0.2]), 0.95), 2)
    2.74
    """
    if not len(residual_variances):
        return float("inf")
    theta1, theta2, theta3 = (float(np.sum(residual_variances**power)) for power in (1, 2, 3))
    h0 = 1 - 2 * theta1 * theta3 / (3 * theta2**2)
    if h0 <= 0:
        return theta2 / theta1 * float(stats.chi2.ppf(confidence, theta1**2 / theta2))
    normal = float(stats.norm.ppf(confidence))
    root = 1 + normal * h0 * (2 * theta2) ** 0.5 / theta1 + theta2 * h0 * (h0 - 1) / theta1**2
    return float(theta1 * root ** (1 / h0))
