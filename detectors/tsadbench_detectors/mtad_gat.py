"""MTAD-GAT: attention over sensors and over time, then forecast and reconstruction."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Annotated, ClassVar

import numpy as np

from tsadbench.base import Cheap, Choice, FloatArray, Ge, Lt, Recording, Traits, Tune, detector, extra
from tsadbench_detectors.standardise import UnitRange

with extra("mtad-gat", "deep"):
    import torch
    from torch import Tensor, nn

    from tsadbench_detectors.deep.network_detector import NetworkDetector, Size

_KERNEL = 7
_FORECAST_LAYERS = 3
# Keeps the gradient of the root finite: sensors that never move are forecast without any error.
_SMALLEST_LOSS = 1e-12


@detector
class MTADGAT(NetworkDetector):
    """Scores a row by how far it is from its forecast and from its reconstruction.

    A convolution smooths a window over time. The outputs of attention between the sensors (each with its values over
    the window) and between the rows (each with its sensors' values) are concatenated to it. A recurrent layer's last
    state gives the forecast of the next row and, through another recurrent layer, the reconstruction. Each sensor's
    share of the score is its contribution.

    Parameters of training, ``size`` and ``device``: see `NetworkDetector`.

    Parameters
    ----------
    window
        Rows that the network sees at once.
    hidden_size
        Width of both recurrent layers and of the forecast's layers. None: 32, or twice as many as there are sensors if
        that is more; at size "paper" 300.
    gamma
        Weight of the reconstruction in the score.
    dropout
        Share of the attention and of the forecast's activations that are dropped in training.

    Notes
    -----
    Equations
        Attention between sensors and between rows: ``h_i = sigmoid(sum_j alpha_ij v_j)``, alpha the softmax over j of
        ``LeakyReLU(w' [v_i; v_j])``. Loss: ``RMSE(forecast) + RMSE(reconstruction)``. Score of row x: the mean over
        the sensors of ``(|f - x| + gamma |r - x|) / (1 + gamma)``, f its forecast from the ``window`` rows before it, r
        the last row of the reconstruction of the window that ends with it.
    Differences
        The authors published no code. In the paper, the reconstruction is a variational autoencoder's: its bound is
        part of the loss, and the score is ``sum ((f - x)^2 + gamma (1 - p)) / (1 + gamma)`` with p the reconstruction's
        probability. The most used implementation has a plain autoencoder, as here, but GATv2 as attention
        (``a' LeakyReLU(W [v_i; v_j])``, with a learned bias for each pair). It holds out windows that overlap those it
        trains on, and keeps the last epoch; here the last windows are held out and the best network is kept. Training
        rows are not cleaned by spectral residuals.
    Defaults
        window = 100, kernel 7, dropout 0.3 and learning rate 1e-3 are the paper's or that implementation's; gamma = 1
        is the latter's (the paper has 0.8). For cost: width 32 (size "paper": 300), every fourth window in batches of
        64 (as many steps an epoch as all windows in batches of 256), 20 epochs (that implementation 30, the paper 100).

    References
    ----------
    H. Zhao et al., Multivariate time-series anomaly detection via graph attention network, ICDM (arXiv 2009.02040),
    2020.
    """

    traits: ClassVar[Traits] = Traits(
        family="graph", stochastic=True, scoring_parameters=("gamma",), extra="deep", paper="Zhao et al., ICDM 2020"
    )
    paper: ClassVar[Mapping[str, int]] = {"hidden_size": 300}
    _scaling = UnitRange

    window: Annotated[int, Tune(20, 100, log=True, alters_loss=True), Cheap(10)] = 100
    horizon: int = field(default=1, init=False)
    stride: Annotated[int, Cheap(2)] = 4
    size: Size = "default"
    hidden_size: Annotated[int | None, Ge(1), Choice((None, 16, 64, 128)), Cheap(8)] = None
    gamma: Annotated[float, Ge(0), Lt(math.inf), Tune(0.1, 10.0, log=True)] = 1.0
    dropout: Annotated[float, Ge(0), Lt(1), Tune(0.0, 0.5)] = 0.3
    epochs: Annotated[int, Cheap(2)] = 20
    batch_size: Annotated[int, Choice((32, 64, 128, 256))] = 64
    patience: int = 5
    network_: Network = field(init=False)

    def _build_network(self, recordings: Sequence[Recording]) -> nn.Module:
        n_sensors = recordings[0].n_sensors
        return Network(self.window, n_sensors, self._given_or("hidden_size", max(32, 2 * n_sensors)), self.dropout)

    def _loss(self, windows: Tensor) -> Tensor:
        past, future = windows[:, : self.window], windows[:, self.window]
        forecast, reconstruction = self.network_(past)
        squared = (forecast - future).square().mean(), (reconstruction - past).square().mean()
        return torch.stack(squared).add(_SMALLEST_LOSS).sqrt().sum()

    def _contributions(self, recording: Recording) -> FloatArray:
        # One pass gives both: a window forecasts the row after it and reconstructs its own last one.
        batches = self._scored_windows(recording, self.window, before=self.window)
        outputs = [(forecast, window[:, -1]) for forecast, window in (self.network_(rows) for _, rows in batches)]
        forecasts, reconstructions = (torch.cat(parts) for parts in zip(*outputs, strict=True))
        rows = self._rows(recording)
        errors = (forecasts[:-1] - rows).abs() + self.gamma * (reconstructions[1:] - rows).abs()
        return np.asarray(errors.double().cpu()) / ((1 + self.gamma) * recording.n_sensors)


class Attention(nn.Module):
    """Attention of every node to every node (Velickovic et al. 2018), of the nodes' own vectors: ``sigmoid(A v)``.

    ``A`` is the softmax over j of ``LeakyReLU(w' [v_i; v_j])``.
    """

    def __init__(self, n_features: int, dropout: float) -> None:
        super().__init__()
        # The two halves of w.
        self.target = nn.Linear(n_features, 1, bias=False)
        self.source = nn.Linear(n_features, 1, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, nodes: Tensor) -> Tensor:
        """Return [batch, n_nodes, n_features] for nodes [batch, n_nodes, n_features]."""
        logits = nn.functional.leaky_relu(self.target(nodes) + self.source(nodes).mT, 0.2)
        return torch.sigmoid(self.dropout(logits.softmax(dim=-1)) @ nodes)


class Network(nn.Module):
    """Maps scaled rows [batch, window, n_sensors] to the next row and to themselves."""

    def __init__(self, window: int, n_sensors: int, hidden_size: int, dropout: float) -> None:
        super().__init__()
        self.smoothing = nn.Conv1d(n_sensors, n_sensors, _KERNEL, padding=_KERNEL // 2)
        self.between_sensors = Attention(window, dropout)
        self.between_rows = Attention(n_sensors, dropout)
        self.encoder = nn.GRU(3 * n_sensors, hidden_size)
        layers: list[nn.Module] = []
        for _ in range(_FORECAST_LAYERS):
            layers += [nn.Linear(hidden_size, hidden_size), nn.ReLU(), nn.Dropout(dropout)]
        self.forecast = nn.Sequential(*layers, nn.Linear(hidden_size, n_sensors))
        self.decoder = nn.GRU(hidden_size, hidden_size)
        self.reconstruction = nn.Linear(hidden_size, n_sensors)

    def forward(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return the forecast [batch, n_sensors] and the reconstruction [batch, window, n_sensors]."""
        by_sensor = self.smoothing(rows.mT).relu()
        by_row = by_sensor.mT
        features = torch.cat([by_row, self.between_sensors(by_sensor).mT, self.between_rows(by_row)], dim=2)
        last = self.encoder(features.transpose(0, 1))[1]
        states = self.decoder(last.expand(rows.shape[1], -1, -1))[0]
        return self.forecast(last[0]), self.reconstruction(states).transpose(0, 1)
