"""Anomaly Transformer: the less a row attends beyond its neighbours, the more its reconstruction error counts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import ClassVar, cast

import numpy as np

from tsadbench.base import Choice, FloatArray, Recording, Space, Traits, Tune, extra

with extra("anomaly-transformer", "deep"):
    import torch
    from torch import Tensor, nn

    from tsadbench_detectors.deep.anomaly_attention import anomaly_attention
    from tsadbench_detectors.deep.row_embedding import RowEmbedding
    from tsadbench_detectors.deep.sizes import Size, SizedNetwork, Width


class AnomalyTransformer(SizedNetwork):
    """Scores a row by its reconstruction error, weighted by how little its attention differs from that of a neighbour.

    A transformer reconstructs the window. Each of its attention layers has two associations of every row i with the
    rows of the window: the series association S, its attention, and the prior association P, a Gaussian of the distance
    in time, whose scale sigma the row itself chooses. A normal row finds rows like it in the whole window; an anomaly
    finds none but its neighbours, so that its two associations differ little. Training widens this difference: in one
    phase, P follows S; in the other one, S moves away from P.

    The score is that of the window's last row: its mean squared error times its share of ``softmax(-discrepancy)``
    over the window. Each sensor's part is its contribution.

    Parameters of training, and ``device``: see `NetworkDetector`.

    Parameters
    ----------
    window
        Rows that it sees at once; the paper's are 100, at either size 50 are the default.
    size
        "default", or "paper": the published widths of what is None. What is given counts at either size.
    d_model
        Numbers that describe a row inside the network, and width of its inner layers; a multiple of ``n_heads``. None:
        32, or as many as there are sensors if that is more, rounded up; at size "paper" 512.
    n_heads
        Attentions of a layer, which share ``d_model``. None: 2; at size "paper" 8.
    n_layers
        Layers. None: 2; at size "paper" 3.
    weight
        Weight of the discrepancy in the loss.
    association
        Whether the discrepancy weights the score. ``off``: the score is the reconstruction error alone.
    temperature
        Number by which the discrepancy is multiplied in the score's softmax: 1 in the paper, 50 in its authors' code.

    Notes
    -----
    Equations
        ``P_i = Gaussian(|i - j|; sigma_i)``, scaled to the sum 1, ``sigma = 3^(sigmoid(5 s) + 1e-5) - 1`` with s linear
        in the row; ``S = softmax(Q K' / sqrt(d))``. ``AssDis_i = mean over layers and heads of KL(P_i|S_i) +
        KL(S_i|P_i)``. Minimise phase: ``|x - x'|^2 + 3 AssDis(P, stop(S))``; maximise phase: ``|x - x'|^2 -
        3 AssDis(stop(P), S)``. ``score_t = softmax(-AssDis)_t * mean over sensors of (x_t - x'_t)^2``.
    Differences
        Both phases in one backward pass, whose gradient is half the sum of theirs; Adam does not notice the factor. The
        authors' code sums the discrepancy over the layers and multiplies it by 50 when it scores: with differences of
        more than one between rows, all weight then goes to one row of the window and the last row's underflows. The
        default is the paper's formula, the code's is ``temperature`` (100 for two layers). Where the paper scores
        windows side by side, every row is scored by the window that ends with it. The weights of a window have the sum
        1: they compare the last row with its own window, so that a window which is odd throughout gets no higher
        weight, and at the start of a recording the rows that fill the window up count too. As in that code, 1e-4 is
        added to probabilities before logarithms. The code stops training by the loss on the test rows and takes its
        threshold from test scores; here training rows are held out, and the protocol sets the threshold. The loss that
        is reported is the reconstruction error, as the two discrepancies cancel in value.
    Defaults
        ``weight``, ``patience`` and the kernel of the embedding are the paper's or its code's. ``d_model``,
        ``n_heads``, ``n_layers``, ``window``, ``stride`` and ``batch_size`` are smaller for cost on one core.
        ``learning_rate`` is ten times the code's: after as many steps, the error on the held-out training rows of SKAB
        is 0.058 instead of 0.486.

    References
    ----------
    J. Xu, H. Wu, J. Wang and M. Long, Anomaly Transformer: time series anomaly detection with association discrepancy,
    ICLR 2022 (arXiv 2110.02642).
    """

    widths: ClassVar[Mapping[str, Width]] = {
        "d_model": Width(32, per_sensor=1, paper=512),
        "n_heads": Width(2, paper=8),
        "n_layers": Width(2, paper=3),
    }
    traits: ClassVar[Traits] = Traits(
        family="reconstruction",
        stochastic=True,
        scoring_parameters=("association", "temperature"),
        extra="deep",
        paper="Xu et al., ICLR 2022",
    )

    def __init__(
        self,
        *,
        window: int = 50,
        stride: int = 2,
        size: Size = "default",
        d_model: int | None = None,
        n_heads: int | None = None,
        n_layers: int | None = None,
        weight: float = 3.0,
        association: bool = True,
        temperature: float = 1.0,
        epochs: int = 5,
        min_steps: int = 500,
        max_steps: int | None = None,
        batch_size: int = 32,
        learning_rate: float = 1e-3,
        held_out: float = 0.1,
        patience: int = 3,
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        self.window = window
        self.stride = stride
        self.size = size
        self.d_model = d_model
        self.n_heads = n_heads
        self.n_layers = n_layers
        self.weight = weight
        self.association = association
        self.temperature = temperature
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
            "d_model": Choice((None, 16, 64)),
            "n_layers": Choice((None, 1, 3)),
            "weight": Tune(0.3, 10.0, log=True),
            "temperature": Tune(0.3, 50.0, log=True),
            "batch_size": Choice((32, 64, 128)),
            "learning_rate": Tune(1e-4, 1e-2, log=True),
        }

    @classmethod
    def test_params(cls) -> dict[str, object]:  # noqa: D102
        return {"window": 8, "d_model": 8, "n_heads": 2, "epochs": 2, "min_steps": 1}

    def _check(self, sensors: tuple[str, ...]) -> None:
        super()._check(sensors)
        if self.d_model is not None:
            n_heads = self._width("n_heads")
            self._require(self.d_model % n_heads == 0, "d_model", f"a multiple of n_heads, {n_heads}")
        for parameter, value in (("weight", self.weight), ("temperature", self.temperature)):
            self._require(isinstance(value, Real) and 0.0 <= value < math.inf, parameter, "a number from 0 on")
        self._require(isinstance(self.association, bool), "association", "True or False")

    def _build_network(self, recordings: Sequence[Recording]) -> nn.Module:
        n_sensors, n_heads = recordings[0].n_sensors, self._width("n_heads")
        d_model = n_heads * math.ceil(self._width("d_model", n_sensors) / n_heads)
        return Network(self.window, n_sensors, d_model, n_heads, self._width("n_layers"))

    def _loss(self, windows: Tensor) -> Tensor:
        reconstruction, for_prior, for_series = self.network_(windows)
        # Half the sum of the two phases' losses. The discrepancies cancel, but their gradients do not.
        phases = self.weight / 2 * (for_prior.mean() - for_series.mean())
        return nn.functional.mse_loss(reconstruction, windows) + torch.as_tensor(phases)

    def _contributions(self, recording: Recording) -> FloatArray:
        contributions = np.empty(recording.values.shape)
        network = cast("Network", self.network_)
        for first, windows in self._scored_windows(recording, self.window, before=self.window - 1):
            reconstruction, discrepancy, _ = network(windows, last_only=True)
            errors = (reconstruction[:, -1] - windows[:, -1]).double().square() / recording.n_sensors
            if self.association:
                errors *= torch.softmax(-self.temperature * discrepancy.double(), dim=1)[:, -1:]
            contributions[self.window - 1 + first] = errors.cpu().numpy()
        return contributions


class Layer(nn.Module):
    """Attention and two linear layers, each added to its input and normalised.

    Parameters
    ----------
    d_model, n_heads
        As for `AnomalyTransformer`.
    """

    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.projection = nn.Linear(d_model, 3 * d_model + n_heads)
        self.mixing = nn.Linear(d_model, d_model)
        self.first_norm = nn.LayerNorm(d_model)
        self.inner = nn.Linear(d_model, d_model)
        self.outer = nn.Linear(d_model, d_model)
        self.second_norm = nn.LayerNorm(d_model)

    def forward(self, rows: Tensor, *, last_only: bool = False) -> tuple[Tensor, Tensor, Tensor]:
        """Return the rows after the layer [batch, window, d_model], and the discrepancies of its input's rows, twice.

        These, [batch, window], are means over the heads; their gradients: see `anomaly_attention`. With ``last_only``,
        only the last row goes through the layer, [batch, 1, d_model].
        """
        batch, window, d_model = rows.shape
        *parts, raw = self.projection(rows).split([*(3 * [d_model]), self.n_heads], dim=2)
        queries, keys, values = (
            one.view(batch, window, self.n_heads, -1).transpose(1, 2).flatten(0, 1) for one in parts
        )
        sigma = scale(raw.transpose(1, 2).reshape(-1, window))
        mixed, *discrepancies = anomaly_attention(queries, keys, values, sigma)
        mixed = mixed.view(batch, self.n_heads, window, -1).transpose(1, 2)
        if last_only:
            rows, mixed = rows[:, -1:], mixed[:, -1:]
        rows = self.first_norm(rows + self.mixing(mixed.flatten(2)))
        rows = self.second_norm(rows + self.outer(nn.functional.gelu(self.inner(rows))))
        for_prior, for_series = (one.view(batch, self.n_heads, window).mean(dim=1) for one in discrepancies)
        return rows, for_prior, for_series


def scale(raw: Tensor) -> Tensor:
    """Return the Gaussians' scales in rows, between 0 and 2, of any numbers."""
    return torch.expm1(math.log(3) * (torch.sigmoid(5 * raw) + 1e-5))


class Network(nn.Module):
    """Maps scaled rows [batch, window, n_sensors] to their reconstruction and, twice, to their discrepancy.

    Parameters
    ----------
    window, d_model, n_heads, n_layers
        As for `AnomalyTransformer`.
    n_sensors
        Sensors of a row.
    """

    def __init__(self, window: int, n_sensors: int, d_model: int, n_heads: int, n_layers: int) -> None:
        super().__init__()
        self.embedding = RowEmbedding(window, n_sensors, d_model)
        self.layers = nn.ModuleList(Layer(d_model, n_heads) for _ in range(n_layers))
        self.norm = nn.LayerNorm(d_model)
        self.to_sensors = nn.Linear(d_model, n_sensors)

    def forward(self, windows: Tensor, *, last_only: bool = False) -> tuple[Tensor, Tensor, Tensor]:
        """Return the reconstruction [batch, window, n_sensors] and two discrepancies [batch, window] of equal value.

        They are means over the layers; their gradients: see `anomaly_attention`. With ``last_only``, the
        reconstruction is that of the last row, [batch, 1, n_sensors].
        """
        rows, by_layer = self.embedding(windows), []
        for number, layer in enumerate(self.layers, start=1):
            rows, *discrepancies = layer(rows, last_only=last_only and number == len(self.layers))
            by_layer.append(torch.stack(discrepancies))
        for_prior, for_series = torch.stack(by_layer).mean(dim=0)
        return self.to_sensors(self.norm(rows)), for_prior, for_series
