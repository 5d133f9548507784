"""MTAD-GAT: attention over sensors and over time, then forecast and reconstruction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import ClassVar, cast

import numpy as np

from tsadbench.base import Choice, FloatArray, Recording, Space, Traits, Tune, extra
from tsadbench_detectors.standardise import Scaler, UnitRange

with extra("mtad-gat", "deep"):
    import torch
    from torch import Tensor, nn

    from tsadbench_detectors.deep.dropout import Dropout
    from tsadbench_detectors.deep.long_gru import LongGRU
    from tsadbench_detectors.deep.pair_logits import pair_logits
    from tsadbench_detectors.deep.sizes import Size, SizedNetwork, Width

_KERNEL = 7
_FORECAST_LAYERS = 3
# Keeps the gradient of the root finite: sensors that never move are forecast without any error.
_SMALLEST_LOSS = 1e-12
# Windows whose attention is computed at once in scoring.
_WINDOWS_AT_ONCE = 32


class MTADGAT(SizedNetwork):
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
    size
        "default", or "paper": the published width of what is None. What is given counts at either size.
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
        Attention between sensors and between rows: ``h_i = sigmoid(sum_j alpha_ij x_j)``, alpha the softmax over j of
        ``a' LeakyReLU(W [x_i; x_j])``. Loss: ``RMSE(forecast) + RMSE(reconstruction)``. Score: mean over the sensors of
        ``(|f - x| + gamma |r - x|) / (1 + gamma)``.
    Differences
        The authors published no code. The reconstruction is the autoencoder of the implementation that is used most,
        not the paper's variational one; so its term is an error, not a probability. That implementation holds out
        windows that overlap those it trains on, and always keeps the last epoch; here the last windows are held out and
        the best network is kept. Training rows are not cleaned by spectral residuals.
    Defaults
        window = 100, kernel 7, dropout 0.3 and learning rate 1e-3 are the paper's or that implementation's; gamma = 1
        is the latter's (the paper has 0.8). By cost: width 32 (size "paper": 300), every fourth window in batches of 64
        (as many steps an epoch as all windows in batches of 256), 20 epochs.

    References
    ----------
    H. Zhao et al., Multivariate time-series anomaly detection via graph attention network, ICDM (arXiv 2009.02040),
    2020.
    """

    horizon = 1
    widths: ClassVar[Mapping[str, Width]] = {"hidden_size": Width(32, per_sensor=2, paper=300)}
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
        size: Size = "default",
        hidden_size: int | None = None,
        gamma: float = 1.0,
        dropout: float = 0.3,
        epochs: int = 20,
        min_steps: int = 500,
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
        self.size = size
        self.hidden_size = hidden_size
        self.gamma = gamma
        self.dropout = dropout
        self.epochs = epochs
        self.min_steps = min_steps
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
            "window": Tune(20, 100, log=True, alters_loss=True),
            "hidden_size": Choice((None, 16, 64, 128)),
            "gamma": Tune(0.1, 10.0, log=True),
            "dropout": Tune(0.0, 0.5),
            "batch_size": Choice((32, 64, 128, 256)),
            "learning_rate": Tune(1e-4, 1e-2, log=True),
        }

    @classmethod
    def test_params(cls) -> dict[str, object]:  # noqa: D102
        return {"window": 10, "stride": 2, "hidden_size": 8, "epochs": 2, "min_steps": 1}

    def _check(self, sensors: tuple[str, ...]) -> None:
        super()._check(sensors)
        self._require(isinstance(self.gamma, Real) and 0 <= self.gamma < np.inf, "gamma", "a number from 0 on")
        self._require(isinstance(self.dropout, Real) and 0 <= self.dropout < 1, "dropout", "a number from 0 to below 1")

    def _learn_scaler(self, recordings: Sequence[Recording]) -> Scaler:
        return UnitRange.of(recordings)

    def _build_network(self, recordings: Sequence[Recording]) -> nn.Module:
        n_sensors = recordings[0].n_sensors
        return Network(self.window, n_sensors, self._width("hidden_size", n_sensors), self.dropout)

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
        The first window, all of it padding, has no last row to reconstruct; the last one no row after it.
        """
        forecasts, reconstructions = (np.empty(recording.values.shape) for _ in range(2))
        network = cast("Network", self.network_)
        for first, windows in self._scored_windows(recording, self.window, before=self.window):
            forecast, reconstruction = network(windows, last_only=True)
            following = first + self.window
            inside, begun = following < recording.n_rows, following > 0
            forecasts[following[inside]] = forecast.cpu().numpy()[inside]
            reconstructions[following[begun] - 1] = reconstruction[:, -1].cpu().numpy()[begun]
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
        self.dropout = Dropout(dropout)

    def weights(self, nodes: Tensor) -> Tensor:
        """Return A [batch, n_nodes, n_nodes] for nodes [batch, n_nodes, n_features]; rows are targets."""
        logits = pair_logits(self.target(nodes), self.source(nodes), self.logit, self.pair_bias)
        return torch.softmax(logits, dim=-1)

    def forward(self, nodes: Tensor) -> Tensor:
        """Return [batch, n_nodes, n_features]."""
        # Scoring goes by few windows: their weights stay in the cache.
        at_once = len(nodes) if torch.is_grad_enabled() else _WINDOWS_AT_ONCE
        return torch.cat([self._mixed(some) for some in torch.split(nodes, at_once)]).sigmoid()

    def _mixed(self, nodes: Tensor) -> Tensor:
        # Transposed, the product has its short side first and takes a third of the time.
        weights: Tensor = self.dropout(self.weights(nodes))
        return (nodes.transpose(1, 2) @ weights.transpose(1, 2)).transpose(1, 2)


class Network(nn.Module):
    """Maps scaled rows [batch, window, n_sensors] to the next row and to themselves.

    Parameters
    ----------
    window, hidden_size, dropout
        As for `MTADGAT`.
    n_sensors
        Sensors of a row.
    """

    def __init__(self, window: int, n_sensors: int, hidden_size: int, dropout: float) -> None:
        super().__init__()
        self.smoothing = nn.Conv1d(n_sensors, n_sensors, _KERNEL, padding=_KERNEL // 2)
        self.between_sensors = Attention(n_sensors, window, dropout)
        self.between_rows = Attention(window, n_sensors, dropout)
        self.encoder = LongGRU(3 * n_sensors, hidden_size)
        layers: list[nn.Module] = []
        for _ in range(_FORECAST_LAYERS):
            layers += [nn.Linear(hidden_size, hidden_size), nn.ReLU(), nn.Dropout(dropout)]
        self.forecast = nn.Sequential(*layers, nn.Linear(hidden_size, n_sensors))
        self.decoder = LongGRU(hidden_size, hidden_size)
        self.reconstruction = nn.Linear(hidden_size, n_sensors)

    def forward(self, rows: Tensor, *, last_only: bool = False) -> tuple[Tensor, Tensor]:
        """Return the forecast [batch, n_sensors] and the reconstruction [batch, window, n_sensors].

        With ``last_only``, the reconstruction is that of the last row, [batch, 1, n_sensors].
        """
        window = rows.shape[1]
        smooth = self.smoothing(rows.transpose(1, 2)).relu()
        by_rows = self.between_rows(smooth.transpose(1, 2)).transpose(1, 2)
        beside = torch.cat([smooth, self.between_sensors(smooth), by_rows], dim=1)
        # Recurrent layers have time first and windows last.
        last = self.encoder(beside.permute(2, 1, 0).contiguous(), window, last_only=True)
        states = self.decoder(last, window, last_only=last_only)
        return self.forecast(last[0].t()), self.reconstruction(states.transpose(1, 2)).transpose(0, 1)
