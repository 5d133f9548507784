"""MTAD-GAT: attention over sensors and over time, then forecast and reconstruction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import ClassVar, cast

import numpy as np

from tsadbench.base import Choice, FloatArray, IntegerRange, RealRange, Recording, Space, Traits, extra
from tsadbench_detectors.standardise import Scaler, UnitRange

with extra("mtad-gat", "deep"):
    import torch
    from torch import Tensor, nn

    from tsadbench_detectors.deep.network_detector import NetworkDetector

_KERNEL = 7
_FORECAST_LAYERS = 3
_LEAK = 0.2
# Keeps the gradient of the root finite: sensors that never move are forecast without any error.
_SMALLEST_LOSS = 1e-12


class MTADGAT(NetworkDetector):
    """Scores a row by how far it is from its forecast and from its reconstruction.

    A window is smoothed by a convolution over time; attention between the sensors (each with its values over the
    window) and between the rows (each with its sensors' values) is laid beside it; a recurrent layer's last state
    gives the forecast of the next row, and by another recurrent layer the window again. The loss is the sum of the
    roots of the two mean squared errors.

    The score of row t is the mean over the sensors of ``(|f - x| + gamma * |r - x|) / (1 + gamma)``: f is the row's
    forecast from the ``window`` rows before it, r the last row of the reconstruction of the window that ends with it.
    Each sensor's share is its contribution.

    Parameters of training, and ``device``: see `NetworkDetector`.

    Parameters
    ----------
    window
        Rows that it sees at once.
    hidden_size
        Width of both recurrent layers and of the forecast's layers.
    gamma
        Weight of the reconstruction in the score.
    dropout
        Share of the attention and of the forecast's activations that are dropped in training.

    References
    ----------
    H. Zhao et al., Multivariate time-series anomaly detection via graph attention network, ICDM 2020 (arXiv
    2009.02040). Reduced for cost: the layers' width (32, not 150 to 300), every fourth window of training in batches
    of 64 (as many steps an epoch as all windows in batches of 256), 20 epochs. The reconstruction is the autoencoder
    of the implementation that is used most, not the paper's variational one.
    """

    horizon = 1
    traits: ClassVar[Traits] = Traits(
        family="graph",
        stochastic=True,
        scoring_parameters=("gamma",),
        extra="deep",
        paper="Zhao et al., ICDM 2020",
    )

    def __init__(
        self,
        *,
        window: int = 100,
        stride: int = 4,
        hidden_size: int = 32,
        gamma: float = 1.0,
        dropout: float = 0.3,
        epochs: int = 20,
        max_steps: int | None = None,
        batch_size: int = 64,
        learning_rate: float = 1e-3,
        held_out: float = 0.1,
        patience: int = 5,
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        self.window = window
        self.stride = stride
        self.hidden_size = hidden_size
        self.gamma = gamma
        self.dropout = dropout
        self.epochs = epochs
        self.max_steps = max_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.held_out = held_out
        self.patience = patience
        self.seed = seed
        self.device = device

    @classmethod
    def search_space(cls) -> Mapping[str, Space]:  # noqa: D102
        return {
            "window": IntegerRange(20, 100, log=True, alters_loss=True),
            "hidden_size": IntegerRange(16, 64, log=True),
            "gamma": RealRange(0.1, 10.0, log=True),
            "dropout": RealRange(0.0, 0.5),
            "batch_size": Choice((32, 64, 128, 256)),
            "learning_rate": RealRange(1e-4, 1e-2, log=True),
        }

    @classmethod
    def test_params(cls) -> dict[str, object]:  # noqa: D102
        return {"window": 10, "stride": 2, "hidden_size": 8, "epochs": 2}

    def _check(self, sensors: tuple[str, ...]) -> None:
        super()._check(sensors)
        self._require_integer("hidden_size", at_least=1)
        self._require(isinstance(self.gamma, Real) and 0 <= self.gamma < np.inf, "gamma", "a number from 0 on")
        self._require(isinstance(self.dropout, Real) and 0 <= self.dropout < 1, "dropout", "a number from 0 to below 1")

    def _learn_scaler(self, recordings: Sequence[Recording]) -> Scaler:
        return UnitRange.of(recordings)

    def _build_network(self, recordings: Sequence[Recording]) -> nn.Module:
        return Network(self.window, recordings[0].n_sensors, self.hidden_size, self.dropout)

    def _loss(self, windows: Tensor) -> Tensor:
        past, future = windows[:, : self.window], windows[:, self.window]
        forecast, reconstruction = self.network_(past)
        squared = (forecast - future).square().mean(), (reconstruction - past).square().mean()
        return torch.stack(squared).add(_SMALLEST_LOSS).sqrt().sum()

    def _contributions(self, recording: Recording) -> FloatArray:
        by_forecast, by_reconstruction = self._errors(recording)
        weighted = (by_forecast + self.gamma * by_reconstruction) / (1 + self.gamma)
        return np.asarray(weighted / recording.n_sensors)

    def _errors(self, recording: Recording) -> tuple[FloatArray, FloatArray]:
        """Return the absolute errors of each row's forecast and of its reconstruction, [n_rows, n_sensors] each.

        One pass over the windows gives both: a window forecasts the row after it and reconstructs its own last one.
        """
        forecasts, reconstructions = (np.full(recording.values.shape, np.nan) for _ in range(2))
        network = cast("Network", self.network_)
        for first, windows in self._scored_windows(recording, self.window):
            forecast, reconstruction = network(windows)
            following = first + self.window
            inside = following < recording.n_rows
            forecasts[following[inside]] = forecast.cpu().numpy()[inside]
            reconstructions[following - 1] = reconstruction[:, -1].cpu().numpy()
        rows = self._rows(recording).cpu().numpy().astype(np.float64)
        return np.abs(forecasts - rows), np.abs(reconstructions - rows)


class Attention(nn.Module):
    """Attention of every node to every node, whose logits see both (Brody et al. 2022): ``sigmoid(A x)``.

    ``A = softmax(e + b)`` with ``e_ij = a . LeakyReLU(W_target x_i + W_source x_j + c)`` and a learned bias b for each
    pair. Averaged are the nodes' own vectors: there is no value map.

    Parameters
    ----------
    n_nodes, n_features
        Nodes, and the width of their vectors.
    dropout
        Share of A that is dropped in training.
    """

    def __init__(self, n_nodes: int, n_features: int, dropout: float) -> None:
        super().__init__()
        # W [x_i; x_j] in two parts: what it makes of x_i and of x_j is computed once a node, not once a pair.
        self.target = nn.Linear(n_features, 2 * n_features)
        self.source = nn.Linear(n_features, 2 * n_features, bias=False)
        self.logit = nn.Parameter(torch.empty(2 * n_features).uniform_(-1, 1) / (2 * n_features) ** 0.5)
        self.pair_bias = nn.Parameter(torch.zeros(n_nodes, n_nodes))
        self.dropout = nn.Dropout(dropout)

    def weights(self, nodes: Tensor) -> Tensor:
        """Return A [batch, n_nodes, n_nodes] for nodes [batch, n_nodes, n_features]; rows are targets."""
        logits = pair_logits(self.target(nodes), self.source(nodes), self.logit)
        return torch.softmax(logits + self.pair_bias, dim=-1)

    def forward(self, nodes: Tensor) -> Tensor:
        """Return [batch, n_nodes, n_features]."""
        return torch.sigmoid(self.dropout(self.weights(nodes)) @ nodes)


def pair_logits(target: Tensor, source: Tensor, weight: Tensor) -> Tensor:
    """Return ``a . LeakyReLU(target_i + source_j)`` for every two nodes, [batch, n_nodes, n_nodes].

    LeakyReLU is a share of the identity and a share of the absolute value. The first gives sums that need no pairs, the
    second distances (p = 1) between target and -source: their kernel never lays out [batch, n_nodes, n_nodes, width],
    which would take most of a training step.

    Parameters
    ----------
    target, source
        [batch, n_nodes, width] each.
    weight
        a [width].
    """
    linear = (target @ weight)[:, :, None] + (source @ weight)[:, None]
    plus, minus = weight.relu(), (-weight).relu()
    absolute = torch.cdist(target * plus, -source * plus, p=1) - torch.cdist(target * minus, -source * minus, p=1)
    return 0.5 * (1 + _LEAK) * linear + 0.5 * (1 - _LEAK) * absolute


class Network(nn.Module):
    """Maps scaled rows [batch, window, n_sensors] to the next row and to themselves.

    Parameters
    ----------
    window, n_sensors, hidden_size, dropout
        As for `MTADGAT`.
    """

    def __init__(self, window: int, n_sensors: int, hidden_size: int, dropout: float) -> None:
        super().__init__()
        self.smoothing = nn.Conv1d(n_sensors, n_sensors, _KERNEL, padding=_KERNEL // 2)
        self.between_sensors = Attention(n_sensors, window, dropout)
        self.between_rows = Attention(window, n_sensors, dropout)
        self.encoder = nn.GRU(3 * n_sensors, hidden_size, batch_first=True)
        layers: list[nn.Module] = []
        for _ in range(_FORECAST_LAYERS):
            layers += [nn.Linear(hidden_size, hidden_size), nn.ReLU(), nn.Dropout(dropout)]
        self.forecast = nn.Sequential(*layers, nn.Linear(hidden_size, n_sensors))
        self.decoder = nn.GRU(hidden_size, hidden_size, batch_first=True)
        self.reconstruction = nn.Linear(hidden_size, n_sensors)

    def forward(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return the forecast [batch, n_sensors] and the reconstruction [batch, window, n_sensors]."""
        smooth = self.smoothing(rows.transpose(1, 2)).relu()
        beside = [smooth.transpose(1, 2), self.between_sensors(smooth).transpose(1, 2)]
        beside.append(self.between_rows(beside[0]))
        last = self.encoder(torch.cat(beside, dim=-1))[0][:, -1]
        states, _ = self.decoder(last[:, None].expand(-1, rows.shape[1], -1))
        return self.forecast(last), self.reconstruction(states)
