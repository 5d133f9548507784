"""Anomaly Transformer: the less a row attends beyond its neighbours, the more its reconstruction error counts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar

from tsadbench.base import Cheap, Choice, Ge, Lt, Recording, Traits, Tune, detector, extra

with extra("anomaly-transformer", "deep"):
    import torch
    from torch import Tensor, nn

    from tsadbench_detectors.deep.network_detector import NetworkDetector, Size
    from tsadbench_detectors.deep.row_embedding import RowEmbedding

_SMALLEST_PROBABILITY = 1e-4  # added before a logarithm, as in the authors' code, or divergences could be infinite
_SMALLEST_EXPONENT = -80.0
_AT_ONCE = 64  # windows scored at once: their associations stay in a processor's cache


@detector
class AnomalyTransformer(NetworkDetector):
    """Scores a row by its reconstruction error, weighted by how little its attention differs from a local Gaussian.

    Each attention layer of a transformer has two associations of every row with the rows of the window: the series
    association S, its attention, and the prior association P, a Gaussian of the distance in time, whose scale the row
    itself chooses. A normal row finds rows like it in the whole window. An anomaly resembles only its neighbours, so
    its two associations differ little. Training widens this difference: in one phase P follows S, in the other S moves
    away from P. The score is that of the window's last row; each sensor's part is its contribution.

    Parameters of training, and ``device``: see `NetworkDetector`.

    Parameters
    ----------
    window
        Rows that the network sees at once. None: 50; at size "paper" 100.
    size
        "default", or "paper": the published window and widths where they are None.
    d_model
        Width of a row inside the network, a multiple of ``n_heads``. None: 32, or as many as there are sensors if that
        is more, rounded up; at size "paper" 512.
    n_heads
        Attention heads of a layer. None: 2; at size "paper" 8.
    n_layers
        Layers. None: 2; at size "paper" 3.
    weight
        Weight of the discrepancy in the loss.
    association
        Whether the discrepancy weights the score. ``off``: the score is the reconstruction error alone.
    temperature
        Factor of the discrepancy in the score's softmax: 1 in the paper, 50 in its authors' code.

    Notes
    -----
    Equations
        ``S = softmax(Q K' / sqrt(d))``; ``P_i = Gaussian(|i - j|; sigma_i)``, scaled to the sum 1, ``sigma =
        3^(sigmoid(5 s) + 1e-5) - 1`` with s linear in the row. ``AssDis_i = mean over layers and heads of KL(P_i|S_i) +
        KL(S_i|P_i)``. Minimise phase: ``|x - x'|^2 + 3 AssDis(P, stop(S))``; maximise phase: ``|x - x'|^2 -
        3 AssDis(stop(P), S)``. ``score_t = softmax(-AssDis)_t * mean over sensors of (x_t - x'_t)^2``.
    Differences
        Both phases take one backward pass, whose gradient is half the sum of theirs; Adam ignores the factor. The
        authors' code sums the discrepancy over the layers and multiplies it by 50 when it scores (``temperature`` 100
        for two layers): if discrepancies differ by more than 1, one row gets all the weight and the last row's
        underflows. The default is the paper's formula. Every row is scored by the window that ends with it (in the
        paper, windows do not overlap), and the softmax is over that window alone. As in the code, 1e-4 is added to
        probabilities before logarithms. The code stops training by the loss on the test rows and takes its threshold
        from test scores; here training rows are held out, and the protocol sets the threshold. The reported loss is the
        reconstruction error, as the two discrepancies cancel.
    Defaults
        ``weight``, ``patience`` and the kernel of the embedding are the paper's or its code's. ``d_model``,
        ``n_heads``, ``n_layers``, ``window``, ``stride`` and ``batch_size`` are smaller for cost on one core.
        ``learning_rate`` is ten times the code's, which is halved after every epoch: after as many steps, the error on
        SKAB's held-out training rows is 0.058 instead of 0.486.

    References
    ----------
    J. Xu, H. Wu, J. Wang and M. Long, Anomaly Transformer: time series anomaly detection with association discrepancy,
    ICLR 2022 (arXiv 2110.02642).
    """

    traits: ClassVar[Traits] = Traits(
        family="reconstruction",
        stochastic=True,
        scoring_parameters=("association", "temperature"),
        extra="deep",
        paper="Xu et al., ICLR 2022",
        differs=("schedule differs",),
    )
    paper: ClassVar[Mapping[str, int]] = {"window": 100, "d_model": 512, "n_heads": 8, "n_layers": 3}

    window: Annotated[int | None, Ge(1), Choice((None, 25, 100), alters_loss=True), Cheap(8)] = None  # type: ignore[assignment]
    stride: int = 2
    size: Size = "default"
    d_model: Annotated[int | None, Ge(1), Choice((None, 16, 64)), Cheap(8)] = None
    n_heads: Annotated[int | None, Ge(1)] = None
    n_layers: Annotated[int | None, Ge(1), Choice((None, 1, 3))] = None
    weight: Annotated[float, Ge(0), Lt(math.inf), Tune(0.3, 10.0, log=True)] = 3.0
    association: bool = True
    temperature: Annotated[float, Ge(0), Lt(math.inf), Tune(0.3, 50.0, log=True)] = 1.0
    epochs: Annotated[int, Cheap(2)] = 5
    batch_size: Annotated[int, Choice((32, 64, 128))] = 32

    @property
    def _window(self) -> int:
        return self._given_or("window", 50)

    def _check(self, sensors: tuple[str, ...]) -> None:
        super()._check(sensors)
        if self.d_model is not None:
            n_heads = self._given_or("n_heads", 2)
            self._require(self.d_model % n_heads == 0, "d_model", f"a multiple of n_heads, {n_heads}")

    def _build_network(self, recordings: Sequence[Recording]) -> nn.Module:
        n_sensors, n_heads = recordings[0].n_sensors, self._given_or("n_heads", 2)
        d_model = n_heads * math.ceil(self._given_or("d_model", max(32, n_sensors)) / n_heads)
        return Network(self._window, n_sensors, d_model, n_heads, self._given_or("n_layers", 2))

    def _loss(self, windows: Tensor) -> Tensor:
        reconstruction, associations = self.network_(windows)
        # Both phases at once: the second association has the value of S and the opposite of its gradient.
        by_layer = [discrepancy(prior, 2 * series.detach() - series).mean() for prior, series in associations]
        phases = self.weight / 2 * torch.stack(by_layer).mean()
        return nn.functional.mse_loss(reconstruction, windows) + phases - phases.detach()

    def _row_terms(self, windows: Tensor) -> Tensor:
        return torch.cat([self._terms(some) for some in torch.split(windows, _AT_ONCE)])

    def _terms(self, windows: Tensor) -> Tensor:
        reconstruction, associations = self.network_(windows)
        errors = (reconstruction[:, -1] - windows[:, -1]).double().square() / windows.shape[2]
        if self.association:
            by_layer = torch.stack([discrepancy(prior, series).mean(dim=1) for prior, series in associations])
            errors *= torch.softmax(-self.temperature * by_layer.mean(dim=0).double(), dim=1)[:, -1:]
        return torch.as_tensor(errors)


class Network(nn.Module):
    """Maps scaled rows [batch, window, n_sensors] to their reconstruction, and the associations of each layer."""

    def __init__(self, window: int, n_sensors: int, d_model: int, n_heads: int, n_layers: int) -> None:
        super().__init__()
        self.embedding = RowEmbedding(window, n_sensors, d_model)
        self.layers = nn.ModuleList(Layer(d_model, n_heads) for _ in range(n_layers))
        self.norm = nn.LayerNorm(d_model)
        self.to_sensors = nn.Linear(d_model, n_sensors)

    def forward(self, windows: Tensor) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        """Return the reconstruction, and (P, S) of each layer, [batch, n_heads, window, window] each."""
        rows, associations = self.embedding(windows), []
        for layer in self.layers:
            rows, *both = layer(rows)
            associations.append(tuple(both))
        return self.to_sensors(self.norm(rows)), associations


class Layer(nn.Module):
    """Attention and two linear layers, each added to its input and normalised."""

    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.projection = nn.Linear(d_model, 3 * d_model + n_heads)
        self.mixing = nn.Linear(d_model, d_model)
        self.first_norm = nn.LayerNorm(d_model)
        self.inner = nn.Linear(d_model, d_model)
        self.outer = nn.Linear(d_model, d_model)
        self.second_norm = nn.LayerNorm(d_model)

    def forward(self, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the rows after the layer, and P and S of its input's rows, [batch, n_heads, window, window] each."""
        batch, window, d_model = rows.shape
        *parts, raw = self.projection(rows).split([d_model, d_model, d_model, self.n_heads], dim=2)
        queries, keys, values = (one.view(batch, window, self.n_heads, -1).transpose(1, 2) for one in parts)
        series = torch.softmax(queries / math.sqrt(queries.shape[3]) @ keys.mT, dim=-1)
        prior = prior_association(scale(raw.mT))
        mixed = (series @ values).transpose(1, 2).flatten(2)
        rows = self.first_norm(rows + self.mixing(mixed))
        rows = self.second_norm(rows + self.outer(nn.functional.gelu(self.inner(rows))))
        return rows, prior, series


def scale(raw: Tensor) -> Tensor:
    """Return the Gaussians' scales in rows, between 0 and 2, from unbounded numbers."""
    return torch.expm1(math.log(3) * (torch.sigmoid(5 * raw) + 1e-5))


def prior_association(sigma: Tensor) -> Tensor:
    """Return P [..., window, window] of scales [..., window]: Gaussians of the distance, each scaled to the sum 1."""
    places = torch.arange(sigma.shape[-1], dtype=sigma.dtype, device=sigma.device)
    distance = (places[:, None] - places).square()
    # The factor 1 / sigma cancels in the softmax. The clamp avoids subnormal numbers, which are slow.
    exponents = -distance * (0.5 / sigma.square())[..., None]
    return torch.softmax(exponents.clamp(min=_SMALLEST_EXPONENT), dim=-1)


def discrepancy(prior: Tensor, series: Tensor) -> Tensor:
    """Return ``KL(P|S) + KL(S|P)`` of every row, [..., window], for associations [..., window, window]."""
    log_ratio = ((prior + _SMALLEST_PROBABILITY) / (series + _SMALLEST_PROBABILITY)).log()
    return ((prior - series) * log_ratio).sum(dim=-1)
