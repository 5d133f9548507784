"""The ARIMA model of one sensor: its forecasts, its order, its estimates, all by statsmodels."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from tsadbench.base import FloatArray, extra

with extra("arima", "stats"):
    from statsmodels.tsa.arima.estimators.hannan_rissanen import hannan_rissanen
    from statsmodels.tsa.arima.estimators.innovations import innovations_mle
    from statsmodels.tsa.innovations.arma_innovations import arma_innovations
    from statsmodels.tsa.stattools import kpss

MOST_DIFFERENCES = 2
# The critical KPSS statistic for a constant level at 5 % (Kwiatkowski et al. 1992, table 1).
_STATIONARY_BELOW = 0.463
_FEWEST_TESTED = 20
# Largest modulus of a moving average's inverse roots: after 500 rows, less than 1 % of an error is left.
_SLOWEST_ROOT = 0.99


@dataclass(frozen=True, slots=True)
class Model:
    """An ARIMA model of one sensor.

    Parameters
    ----------
    d
        How often the series is differenced.
    ar, ma
        phi and theta of the differenced series.
    """

    d: int
    ar: tuple[float, ...]
    ma: tuple[float, ...]

    def forecast_errors(self, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the forecast errors of a differenced series, and their variances relative to those of late rows."""
        errors, variances = arma_innovations(w, np.array(self.ar), np.array(self.ma))
        return np.atleast_1d(np.asarray(errors, dtype=np.float64)), np.asarray(variances, dtype=np.float64)

    def aic(self, w: FloatArray) -> float:
        """Return Akaike's criterion for a differenced series, up to a constant that is the same for all orders."""
        errors, variances = self.forecast_errors(w)
        with np.errstate(divide="ignore"):
            fit = len(w) * np.log(np.mean(errors**2 / variances)) + np.log(variances).sum()
        return float(fit + 2 * (len(self.ar) + len(self.ma) + 1))


def n_differences(series: FloatArray) -> int:
    """Return the fewest differences of a series for which the KPSS test does not reject stationarity."""
    for d in range(MOST_DIFFERENCES):
        w = np.diff(series, n=d)
        if len(w) < _FEWEST_TESTED or np.ptp(w) == 0:
            return d
        try:
            with _quiet():
                statistic, *_ = kpss(w, regression="c", nlags="auto")
        except (OverflowError, ValueError):  # autocovariances that sum to 0, as those of the differences of a spike
            return d
        if statistic < _STATIONARY_BELOW:
            return d
    return MOST_DIFFERENCES


def regressed(w: FloatArray, d: int, p: int, q: int) -> Model | None:
    """Return a model of these orders by regressions; None if they fail or it is not stationary and invertible."""
    if p == q == 0:
        return Model(d, (), ())
    try:
        with _quiet():
            found, _ = hannan_rissanen(w, ar_order=p, ma_order=q, demean=False, unbiased=False)
    except (ValueError, np.linalg.LinAlgError):  # too few rows for these orders, or residuals of 0
        return None
    usable = np.isfinite(found.params).all() and found.is_stationary and found.is_invertible
    return Model(d, tuple(map(float, found.ar_params)), tuple(map(float, found.ma_params))) if usable else None


def likeliest(w: FloatArray, start: Model) -> Model:
    """Return the maximum-likelihood model of a differenced series, with the orders of the start of the search.

    If an inverse root of its moving average has a modulus above 0.99, all are scaled so that the largest has 0.99.
    """
    p, q = len(start.ar), len(start.ma)
    errors, variances = start.forecast_errors(w)
    variance = float(np.mean(errors**2 / variances))
    if p == q == 0 or variance == 0:
        return start
    try:
        with _quiet():
            found, _ = innovations_mle(
                w, order=(p, 0, q), demean=False, start_params=np.array([*start.ar, *start.ma, variance])
            )
            model = Model(start.d, tuple(map(float, found.ar_params)), tuple(map(float, found.ma_params)))
            better = np.isfinite(found.params).all() and model.aic(w) <= start.aic(w)
    except (ValueError, np.linalg.LinAlgError):  # the search has left the stationary models
        return _forgetting(start)
    return _forgetting(model if better else start)


def _forgetting(model: Model) -> Model:
    roots = np.roots([1.0, *model.ma])
    factor = _SLOWEST_ROOT / max(float(np.abs(roots).max(initial=0.0)), _SLOWEST_ROOT)
    # Coefficient k is, up to its sign, a sum of products of k roots.
    return replace(model, ma=tuple(theta * factor**k for k, theta in enumerate(model.ma, start=1)))


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence statsmodels, which warns of p-values beyond its tables and of searches that stop at a boundary."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
