"""ARIMA residual charts: how far a sensor is from what its own past forecasts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Annotated, ClassVar, Literal

import numpy as np

from tsadbench import DataError
from tsadbench.base import Cheap, Choice, Detector, FloatArray, Ge, Le, Recording, Traits, Tune, detector, extra
from tsadbench_detectors.control_limits import Smoothing
from tsadbench_detectors.rows import trailing_median
from tsadbench_detectors.standardise import Standardiser

with extra("arima", "stats"):
    from tsadbench_detectors.arima_model import MOST_DIFFERENCES, Model, likeliest, n_differences, regressed

# In the sensor's standard deviations: a series that its model forecasts exactly has no residuals to divide by.
_SMALLEST_DEVIATION = 1e-6


@detector
class ARIMA(Detector):
    """Scores the distance of each sensor from the forecast of its own ARIMA model; the largest distance counts.

    Each sensor has its own model, which forecasts the next row from the sensor's past rows: an autoregressive moving
    average of the series or of its differences. If the model holds, its residuals are independent, as a control chart
    needs. A sensor's contribution is its residual, divided by the standard deviation of its residuals over the training
    rows. The largest contribution is the row's score, before smoothing. A sensor that is constant over the training
    rows contributes its distance from that constant, in its own unit.

    With a moving average, a residual depends on all earlier rows, with decreasing weights. Before it is differenced, a
    recording is extended at its start by copies of its first row.

    Parameters
    ----------
    p
        Order of the autoregression, at least 0.
    d
        How often the series is differenced, 0 to 2. None: until the KPSS test no longer rejects stationarity at 5 %.
    q
        Order of the moving average, at least 0.
    selection
        "aic": p and q are upper bounds, and each sensor gets the orders with the smallest AIC; "none": every sensor
        gets the orders p and q.
    estimation_rows
        Rows from which a sensor's model is estimated, at least 20: the first ones of the longest training recording
        in which they vary.
    smoothing
        Rows of the trailing median over the score; 1: none.

    Notes
    -----
    Equations
        With w the d-th differences of a sensor's z-scores: ``w_t = phi_1 w_{t-1} + ... + phi_p w_{t-p} + e_t + theta_1
        e_{t-1} + ... + theta_q e_{t-q}``. The residuals e_t are those of the innovations algorithm: exact forecast
        errors, also at a recording's start, divided there by the root of their larger variance relative to later rows'.
        The score is the largest ``|e_t| / s`` of all sensors, s the root mean square of the sensor's residuals over the
        training rows, without each recording's first two. ``AIC = n log(sigma^2) + sum of log(v_t) + 2 (p + q + 1)``,
        v_t these relative variances, at Hannan and Rissanen's estimates; the chosen model is estimated by maximum
        likelihood.
    Differences
        Box and Jenkins choose a model by eye, from autocorrelations; here a test and AIC choose it. Orders whose
        estimates are not stationary and invertible are left out, and the inverse roots of a moving average have a
        modulus of 0.99 at most, so that old rows lose their influence. Residual charts watch one sensor; here the
        largest residual counts. The mean of w is the training mean if d is 0, otherwise 0 (no drift). A differenced
        model sees that a sensor shifts, not that it stays there.
    Defaults
        Orders up to 2: Box and Jenkins find that more is seldom needed. 2,000 ``estimation_rows`` for cost.

    References
    ----------
    G. E. P. Box and G. M. Jenkins, Time Series Analysis: Forecasting and Control, Holden-Day, 1970; L. C. Alwan and
    H. V. Roberts, Time-series modeling for statistical process control, Journal of Business and Economic Statistics
    6(1), 1988; E. J. Hannan and J. Rissanen, Recursive estimation of mixed autoregressive-moving average order,
    Biometrika 69(1), 1982; P. J. Brockwell and R. A. Davis, Time Series: Theory and Methods, Springer, 1991 (the
    innovations algorithm); D. Kwiatkowski et al., Testing the null hypothesis of stationarity against the alternative
    of a unit root, Journal of Econometrics 54, 1992.
    """

    traits: ClassVar[Traits] = Traits(
        family="forecast", extra="stats", paper="Box and Jenkins, Time Series Analysis: Forecasting and Control, 1970"
    )

    p: Annotated[int, Ge(0), Tune(0, 4), Cheap(1)] = 2
    d: Annotated[int | None, Ge(0), Le(MOST_DIFFERENCES), Choice((None, 0, 1))] = None
    q: Annotated[int, Ge(0), Tune(0, 4), Cheap(1)] = 2
    selection: Literal["aic", "none"] = "aic"
    estimation_rows: Annotated[int, Ge(20), Cheap(300)] = 2_000
    smoothing: Smoothing = 1

    def declared_traits(self) -> Traits:  # noqa: D102
        if self.q > 0:
            return self.traits
        d = MOST_DIFFERENCES if self.d is None else self.d
        return replace(self.traits, memory=self.p + d + self.smoothing - 1)

    def _fit(self, recordings: tuple[Recording, ...]) -> None:
        self.standardiser_ = Standardiser.of(recordings)
        self.standardiser_.require_variation("ARIMA")
        longest = max(recordings, key=lambda recording: recording.n_rows)
        least = self.p + self.q + 2 + MOST_DIFFERENCES
        if longest.n_rows < least:
            raise DataError(
                f"ARIMA: expected a training recording of at least {least} rows, the longest has {longest.n_rows}; "
                f"train on more rows or make p or q smaller"
            )
        z = [self.standardiser_.varying_z_scores(recording.values) for recording in recordings]
        models = [self._estimated(_stretch(z, sensor, self.estimation_rows)) for sensor in range(z[0].shape[1])]
        errors = [_errors(rows, models)[MOST_DIFFERENCES:] for rows in z]
        deviations = np.sqrt(np.mean(np.concatenate(errors) ** 2, axis=0))
        self.deviations_ = np.maximum(deviations, _SMALLEST_DEVIATION)
        self.models_ = tuple(models)

    def _score(self, recording: Recording) -> FloatArray:
        return trailing_median(self._contributions(recording).max(axis=1), self.smoothing)

    def _contributions(self, recording: Recording) -> FloatArray:
        residuals = np.abs(self.standardiser_.z_scores(recording.values))
        errors = _errors(self.standardiser_.varying_z_scores(recording.values), self.models_)
        residuals[:, self.standardiser_.varies] = np.abs(errors) / self.deviations_
        return residuals

    def _held_out_loss(self, recordings: tuple[Recording, ...], first: int) -> float:
        """Return the mean squared error of the forecasts, in z-scores, of the sensors that vary in training."""
        z = [self.standardiser_.varying_z_scores(recording.values) for recording in recordings]
        return float(np.mean(np.concatenate([_errors(rows, self.models_)[first:] for rows in z]) ** 2))

    def _estimated(self, series: FloatArray) -> Model:
        """Return the model of one sensor, from a stretch of its z-scores [n_rows]."""
        d = n_differences(series) if self.d is None else self.d
        w = np.diff(series, n=d)
        if np.ptp(w) == 0:  # nothing is left to model: the series or its differences are constant
            return Model(d, (), ())
        w = w / np.sqrt(np.mean(w**2))  # the model does not depend on the scale, but the search for it does
        if self.selection == "none":
            unknown = Model(d, (0.0,) * self.p, (0.0,) * self.q)
            return likeliest(w, regressed(w, d, self.p, self.q) or unknown)
        models = [regressed(w, d, p, q) for p, q in product(range(self.p + 1), range(self.q + 1))]
        return likeliest(w, min((model for model in models if model is not None), key=lambda model: model.aic(w)))


def _stretch(z: Sequence[FloatArray], sensor: int, n_rows: int) -> FloatArray:
    """Return a sensor's first rows in the longest recording in which they vary, or else in the longest one."""
    starts = [rows[:n_rows, sensor] for rows in sorted(z, key=len, reverse=True)]
    return next((start for start in starts if np.ptp(start) > 0), starts[0])


def _errors(z: FloatArray, models: Sequence[Model]) -> FloatArray:
    """Return the forecast errors for z-scores [n_rows, n_sensors], scaled to equal variance in all rows."""
    by_sensor = np.empty_like(z)
    for sensor, model in enumerate(models):
        series = np.concatenate([np.repeat(z[:1, sensor], model.d), z[:, sensor]])
        errors, variances = model.forecast_errors(np.diff(series, n=model.d))
        by_sensor[:, sensor] = errors / np.sqrt(variances)
    return by_sensor
