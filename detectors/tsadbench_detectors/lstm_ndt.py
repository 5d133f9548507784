"""LSTM-NDT: two recurrent layers forecast the next row; errors are smoothed over time and compared with training."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, ClassVar

import numpy as np
from scipy.signal import lfilter

from tsadbench.base import Cheap, Choice, FloatArray, Ge, Lt, Recording, Traits, Tune, detector, extra, mask_runs

with extra("lstm-ndt", "deep"):
    import torch
    from torch import Tensor, nn

    from tsadbench_detectors.deep.forecaster import Forecaster

_NEGLIGIBLE_WEIGHT = 1e-3  # share of the weight of the oldest errors, which are left out
_SMALLEST_ERROR = 1e-3  # in standard deviations of the training rows: only a constant sensor is forecast better
# The candidates for z, and the z if all are rejected, as in the reference code.
_DEVIATIONS, _LARGEST_DEVIATIONS = np.arange(2.5, 12.0, 0.5), 12.0
_MOST_RUNS = 5


@detector
class LSTMNDT(Forecaster):
    """Scores the largest smoothed forecast error of two LSTM layers, each sensor's relative to its training rows.

    Each sensor's absolute forecast error is averaged over time with exponentially falling weights, and divided by the
    mean plus the standard deviation of the same average over the training rows. The score is the largest of these
    ratios: the paper raises an alarm if any channel does. The ratios are the contributions.

    Parameters of training, and ``device``: see `NetworkDetector`.

    Parameters
    ----------
    window
        Rows that a forecast sees.
    hidden_size
        Width of both layers. None: 80, or twice as many as there are sensors if that is more.
    dropout
        Share of both layers' outputs that is dropped in training.
    span
        Rows over which errors are smoothed: a new error has the weight 2 / (span + 1); 1 = no smoothing.
    severity
        Subtract each sensor's dynamic threshold, found on the training errors, before errors are divided: the paper's
        severity. A score below 0 means that no sensor is above its threshold.
    separate_networks
        One network for each sensor, as in the paper, instead of one that forecasts all sensors.

    Notes
    -----
    Equations
        ``e[t] = |x[t] - f(x[t-w], ..., x[t-1])|`` for each sensor, f two LSTM layers of 80 units and a linear layer.
        ``s[t] = a e[t] + (1 - a) s[t-1]``, ``a = 2 / (span + 1)``, from ``s[0] = e[0]`` on in each recording. Score:
        ``max over sensors of s[t] / (mu + sigma)``; with ``severity``, of ``(s[t] - eps) / (mu + sigma)``. Mean mu and
        standard deviation sigma are those of s over the training rows, and ``eps = mu + z sigma`` with the z of 2.5, 3,
        ..., 11.5 that maximises ``((mu - mu') / mu + (sigma - sigma') / sigma) / (runs^2 + rows)``: mu' and sigma' are
        those of the errors up to eps; ``rows`` are above eps, in ``runs`` runs. A z with more than 5 runs, no row or
        half of the rows above eps does not count; if none is left, z is 12.
    Differences
        One network forecasts all sensors, at a fraction of the cost of one network a sensor
        (``separate_networks=on``), and there are no commands among the inputs. The paper finds its threshold on the
        last 2,100 errors, which include the rows that it judges, so a long fault raises its own limit. Here protocols
        set thresholds, and ``severity`` uses training errors alone. Pruning is left out because it has to know an
        event's end. The oldest errors, with less than a thousandth of the weight, are left out, so a score depends on a
        known number of rows. The reference code shuffles windows before it holds some of them out, replaces a
        recording's first errors by an average over later ones, widens each alarm by 100 rows on both sides, also alarms
        at unusually small errors, and ignores errors that are small beside the channel's range; none of this is
        repeated. Of several z with the same maximum it takes the largest, ours the smallest.
    Defaults
        Two layers of 80 units, dropout 0.3, batches of 64, a horizon of one row and a fifth of the windows held out are
        the paper's. A window of 30 rows is this project's (paper: 250, more than half of what SKAB's protocol trains
        on); the span keeps the paper's ratio to it (105 of 250). For cost: every second window, and 10 epochs instead
        of 35; by then the loss on held-out training rows has levelled.

    References
    ----------
    K. Hundman, V. Constantinou, C. Laporte, I. Colwell and T. Soderstrom, Detecting spacecraft anomalies using LSTMs
    and nonparametric dynamic thresholding, KDD 2018.
    """

    traits: ClassVar[Traits] = Traits(
        family="forecast",
        stochastic=True,
        extra="deep",
        paper="Hundman et al., KDD 2018",
        scoring_parameters=("severity",),
        differs=("schedule differs",),
    )

    window: Annotated[int, Tune(10, 60, log=True), Cheap(8)] = 30
    stride: int = 2
    hidden_size: Annotated[int | None, Ge(1), Choice((None, 16, 32, 64, 128)), Cheap(8)] = None
    dropout: Annotated[float, Ge(0), Lt(1), Tune(0.0, 0.5)] = 0.3
    span: Annotated[int, Ge(1), Tune(1, 50, log=True), Cheap(3)] = 13
    severity: Annotated[bool, Choice((False, True))] = False
    separate_networks: bool = False
    epochs: Annotated[int, Cheap(2)] = 10
    batch_size: Annotated[int, Choice((32, 64, 128, 256))] = 64
    held_out: float = 0.2
    patience: int = 5

    def declared_traits(self) -> Traits:  # noqa: D102
        return replace(super().declared_traits(), memory=self.window + len(falling_weights(self.span)) - 1)

    def _build_network(self, recordings: Sequence[Recording]) -> nn.Module:
        n_sensors = recordings[0].n_sensors
        hidden_size = self._given_or("hidden_size", max(80, 2 * n_sensors))
        n_outputs = [1] * n_sensors if self.separate_networks else [n_sensors]
        return Networks([Network(n_sensors, hidden_size, n, self.dropout) for n in n_outputs])

    def _fit(self, recordings: tuple[Recording, ...]) -> None:
        super()._fit(recordings)
        smoothed = [self._smoothed(errors) for errors in self._consecutive_errors(recordings)]
        rows = np.concatenate(smoothed)
        self.scale_ = np.maximum(rows.mean(axis=0) + rows.std(axis=0), _SMALLEST_ERROR)
        self.threshold_ = np.array([dynamic_threshold([part[:, i] for part in smoothed]) for i in range(rows.shape[1])])

    def _consecutive_errors(self, recordings: Sequence[Recording]) -> Iterator[FloatArray]:
        """Yield the absolute errors [n_rows, n_sensors] of each recording, or with ``max_steps`` of parts of it."""
        gap = self._statistics_stride(recordings, 1)
        length = self.window + 10 * len(falling_weights(self.span))
        for recording in recordings:
            n_rows = recording.n_rows
            for first in range(0, n_rows - self.window, n_rows if gap == 1 else gap * length):
                part = recording if gap == 1 else recording.rows(first, min(first + length, n_rows))
                windows = self._full_windows(part, self.window + self.horizon)
                yield np.concatenate([self._row_terms(batch).double().sqrt().cpu().numpy() for _, batch in windows])

    def _smoothed(self, errors: FloatArray) -> FloatArray:
        return exponential_mean(errors, falling_weights(self.span))

    def _contributions(self, recording: Recording) -> FloatArray:
        # Over a horizon of one row the mean squared error is that row's.
        smoothed = self._smoothed(np.sqrt(self._errors(recording)))
        return np.asarray((smoothed - self.threshold_ if self.severity else smoothed) / self.scale_)

    def _score(self, recording: Recording) -> FloatArray:
        return np.asarray(self._contributions(recording).max(axis=1))


def falling_weights(span: int) -> FloatArray:
    """Return the weights of the newest value, the one before it, ..., [n_weights]; they sum to 1.

    Examples
    --------
    >>> falling_weights(1)
    array([1.])
    >>> falling_weights(3)[:3].round(3)
    array([0.5  , 0.25 , 0.125])
    """
    kept = 1.0 - 2.0 / (span + 1.0)
    n_weights = 1 if kept == 0.0 else math.ceil(math.log(_NEGLIGIBLE_WEIGHT) / math.log(kept))
    weights = kept ** np.arange(n_weights)
    return np.asarray(weights / weights.sum())


def exponential_mean(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the weighted mean of each row and those before it; copies of the first row stand in for earlier ones."""
    n_before = len(weights) - 1
    padded = np.concatenate([np.repeat(values[:1], n_before, axis=0), values])
    return np.asarray(lfilter(weights, [1.0], padded, axis=0)[n_before:])


def dynamic_threshold(parts: Sequence[FloatArray]) -> float:
    """Return the dynamic threshold of a sensor's smoothed errors (Hundman et al., equations 1 to 5), parts [n_rows]."""
    errors = np.concatenate(parts)
    mean, deviation = float(errors.mean()), float(errors.std())
    best, chosen = -math.inf, _LARGEST_DEVIATIONS
    for deviations in _DEVIATIONS if deviation > 0.0 else ():
        threshold = mean + deviations * deviation
        n_above = int((errors > threshold).sum())
        n_runs = sum(len(mask_runs(part > threshold)) for part in parts)
        if not 0 < n_above < len(errors) / 2 or n_runs > _MOST_RUNS:
            continue
        below = errors[errors <= threshold]
        falls = (mean - below.mean()) / mean + (deviation - below.std()) / deviation
        if falls / (n_runs**2 + n_above) > best:
            best, chosen = falls / (n_runs**2 + n_above), deviations
    return mean + chosen * deviation


class Network(nn.Module):
    """Maps [batch, window, n_sensors] to the next row of some of them, [batch, 1, n_outputs]."""

    def __init__(self, n_sensors: int, hidden_size: int, n_outputs: int, dropout: float) -> None:
        super().__init__()
        # Not one LSTM of two layers: its dropout between the layers would keep PyTorch from using oneDNN.
        self.first = nn.LSTM(n_sensors, hidden_size)
        self.second = nn.LSTM(hidden_size, hidden_size)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(hidden_size, n_outputs)

    def forward(self, past: Tensor) -> Tensor:
        """Return the forecast."""
        states = self.dropout(self.first(past.transpose(0, 1))[0])
        _, (last, _) = self.second(states)
        forecast: Tensor = self.head(self.dropout(last[0]))[:, None]
        return forecast


class Networks(nn.ModuleList):
    """Parallel networks, each of which forecasts its own sensors."""

    def forward(self, past: Tensor) -> Tensor:
        """Return the forecast of all sensors, [batch, 1, n_sensors]."""
        return torch.cat([network(past) for network in self], dim=2)
