"""Vanilla LSTM: two recurrent layers forecast the next row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar

from tsadbench.base import Cheap, Choice, Ge, Recording, Traits, Tune, detector, extra

with extra("vanilla-lstm", "deep"):
    import torch
    from torch import Tensor, nn

    from tsadbench_detectors.deep.forecaster import Forecaster


@detector
class VanillaLSTM(Forecaster):
    """Scores how far a row is from its forecast by two LSTM layers: the sum of the absolute errors.

    Parameters of training, and ``device``: see `NetworkDetector`.

    Parameters
    ----------
    window
        Rows that a forecast sees.
    hidden_size
        Width of both layers. None: 100, or twice as many as there are sensors if that is more.

    Notes
    -----
    Equations
        ``f(t) = W h(t - 1) + b``, h the second LSTM layer's last state after the ``window`` rows before t; the loss is
        the mean of ``|x(t) - f(t)|``, the score ``sum_i |x_i(t) - f_i(t)|``.
    Differences
        The paper smooths the error (exponentially weighted); the score here is the error itself. The SKAB benchmark
        replaces the LSTM's tanh by a ReLU, which makes it unstable, and does not shuffle its training windows.
    Defaults
        Width 100, learning rate 1e-3, 25 epochs, patience 10 and a fifth of the windows held out are the SKAB
        benchmark's, which also lowers the rate when the loss stops falling; here it is constant. The window of 30 rows
        (not 5) is this project's. For cost: every second window of training, in
        batches of 64 (not 32).

    References
    ----------
    P. Filonov, A. Lavrentyev and A. Vorontsov, Multivariate industrial time series with cyber-attack simulation: fault
    detection using an LSTM-based predictive data model, arXiv 1612.06676, 2016.
    """

    traits: ClassVar[Traits] = Traits(
        family="forecast", stochastic=True, extra="deep", paper="Filonov et al., arXiv 1612.06676, 2016"
    )

    window: Annotated[int, Tune(10, 60, log=True), Cheap(8)] = 30
    stride: int = 2
    hidden_size: Annotated[int | None, Ge(1), Choice((None, 16, 32, 64, 128)), Cheap(8)] = None
    epochs: Annotated[int, Cheap(2)] = 25
    batch_size: Annotated[int, Choice((32, 64, 128, 256))] = 64
    held_out: float = 0.2
    patience: int = 10

    def _build_network(self, recordings: Sequence[Recording]) -> nn.Module:
        n_sensors = recordings[0].n_sensors
        return Network(n_sensors, self._given_or("hidden_size", max(100, 2 * n_sensors)))

    def _loss(self, windows: Tensor) -> Tensor:
        past, future = self._past_and_future(windows)
        return nn.functional.l1_loss(self.network_(past), future)

    def _row_terms(self, windows: Tensor) -> Tensor:
        past, future = self._past_and_future(windows)
        return torch.as_tensor(self.network_(past) - future)[:, 0].abs()


class Network(nn.Module):
    """Maps [batch, window, n_sensors] to the next row, [batch, 1, n_sensors]."""

    def __init__(self, n_sensors: int, hidden_size: int) -> None:
        super().__init__()
        self.recurrent = nn.LSTM(n_sensors, hidden_size, num_layers=2, batch_first=True)
        self.head = nn.Linear(hidden_size, n_sensors)

    def forward(self, past: Tensor) -> Tensor:
        """Return the forecast."""
        forecast: Tensor = self.head(self.recurrent(past)[0][:, -1:])
        return forecast
