"""ARIMA residual charts, against the Kalman filter of statsmodels' state-space models."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter
from statsmodels.tsa.statespace.sarimax import SARIMAX

from tsadbench.utils.arrays import FloatArray
from tsadbench_detectors.arima import ARIMA
from tsadbench_detectors.arima_model import Model, likeliest, n_differences, regressed


def _arma(n_rows: int, ar: tuple[float, ...] = (), ma: tuple[float, ...] = (), seed: int = 0) -> FloatArray:
    noise = np.random.default_rng(seed).normal(size=n_rows + 200)
    return np.asarray(lfilter([1, *ma], [1, *(-np.array(ar))], noise))[200:]


def _sensors(n_rows: int, seed: int = 0) -> FloatArray:
    """Three sensors: an autoregression, a random walk with a moving average, a moving average."""
    columns = [
        _arma(n_rows, ar=(0.9,), seed=seed),
        0.02 * _arma(n_rows, ma=(-0.5,), seed=seed + 1).cumsum(),
        _arma(n_rows, ma=(0.6,), seed=seed + 2),
    ]
    return np.asarray(np.stack(columns, axis=1) * [1.0, 40.0, 0.1] + [5.0, 0.0, -3.0])


# The second recording is too short to fit a model to, and the last is the longest.
TRAIN, TEST = [_sensors(300), _sensors(4, 10), _sensors(700, 20)], _sensors(150, 30)
ORDERS = [(1, 0), (0, 2), (2, 2)]


def _state_space(w: FloatArray, model: Model) -> SARIMAX:
    return SARIMAX(w, order=(len(model.ar), 0, len(model.ma)))


@pytest.mark.parametrize("orders", ORDERS)
def test_forecast_errors_match_the_kalman_filter(orders) -> None:
    model = Model(0, (0.6, 0.2)[: orders[0]], (-0.5, 0.3)[: orders[1]])
    w = _arma(300, model.ar, model.ma)
    errors, variances = model.forecast_errors(w)
    filtered = _state_space(w, model).filter([*model.ar, *model.ma, 1.0]).filter_results
    np.testing.assert_allclose(errors, filtered.forecasts_error[0], atol=1e-8)
    np.testing.assert_allclose(variances, filtered.forecasts_error_cov[0, 0], rtol=1e-8)


def _by_state_space(rows: FloatArray, model: Model, unit: float) -> FloatArray:
    """Return a sensor's standardised errors, from a Kalman filter on its differences."""
    w = np.diff(np.concatenate([rows[:1]] * model.d + [rows]), n=model.d) / unit
    filtered = _state_space(w, model).filter([*model.ar, *model.ma, 1.0]).filter_results
    return np.asarray(filtered.standardized_forecasts_error[0])


def test_the_score_is_the_largest_residual_in_training_deviations() -> None:
    detector = ARIMA().fit(TRAIN)
    mean, spread = (np.concatenate(TRAIN).mean(axis=0), np.concatenate(TRAIN).std(axis=0))
    expected = []
    for sensor, model in enumerate(detector.models_):
        one = [_by_state_space(rows[:, sensor] - mean[sensor], model, spread[sensor]) for rows in [*TRAIN, TEST]]
        deviation = np.sqrt(np.mean(np.concatenate([errors[2:] for errors in one[:-1]]) ** 2))
        expected.append(np.abs(one[-1]) / deviation)
    np.testing.assert_allclose(detector.contributions(TEST), np.stack(expected, axis=1), atol=1e-6)
    np.testing.assert_array_equal(detector.score(TEST), detector.contributions(TEST).max(axis=1))


@pytest.mark.parametrize("orders", ORDERS)
def test_estimates_are_those_of_maximum_likelihood(orders) -> None:
    w = _arma(400, (0.6, 0.2)[: orders[0]], (-0.5, 0.3)[: orders[1]])
    start = regressed(w, 0, *orders)
    assert start is not None
    found = likeliest(w, start)
    assert found.aic(w) <= start.aic(w)
    best = _state_space(w, found)
    # The likelihood at our estimates, with the variance that is best for them, against statsmodels' own search.
    errors, variances = found.forecast_errors(w)
    ours = best.loglike([*found.ar, *found.ma, np.mean(errors**2 / variances)])
    assert ours >= best.fit(disp=0).llf - 0.01


@pytest.mark.filterwarnings("ignore:Non-invertible starting MA")  # of statsmodels' search
@pytest.mark.parametrize(("ar", "ma"), [((), ()), ((0.7,), (0.5,))])
def test_aic_chooses_the_orders_that_statsmodels_chooses(ar, ma) -> None:
    rows = _arma(400, ar, ma, seed=3)[:, None]
    (found,) = ARIMA(p=1, d=0, q=1).fit(rows).models_
    z = (rows[:, 0] - rows.mean()) / rows.std()
    by_order = {(p, q): SARIMAX(z, order=(p, 0, q)).fit(disp=0).aic for p in (0, 1) for q in (0, 1) if p + q}
    by_order[0, 0] = len(z) * (np.log(2 * np.pi) + 1) + 2  # z has the variance 1
    assert (len(found.ar), len(found.ma)) == min(by_order, key=lambda order: by_order[order])


def test_differences_until_the_series_is_stationary() -> None:
    noise = _arma(500)
    assert [n_differences(w) for w in (noise, noise.cumsum(), noise.cumsum().cumsum())] == [0, 1, 2]
    assert n_differences(np.arange(300.0) ** 2) == 2  # twice differenced it is constant
    assert n_differences(noise.cumsum()[:10]) == 0  # too few rows to tell
    spikes = np.zeros(2_000)
    spikes[[1_706, 1_981]] = 50.0
    assert n_differences(spikes) == 1  # the KPSS statistic of its differences is not defined


def test_the_held_out_loss_is_the_mean_squared_forecast_error() -> None:
    detector = ARIMA(p=0, d=1, q=0).fit(TRAIN)
    errors = np.diff(TEST, axis=0) / np.concatenate(TRAIN).std(axis=0)
    assert detector.held_out_loss(TEST, 10) == pytest.approx((errors[9:] ** 2).mean())
    assert ARIMA().fit(TRAIN).held_out_loss(TEST, 10) < detector.held_out_loss(TEST, 10)
