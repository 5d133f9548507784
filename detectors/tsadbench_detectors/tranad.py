"""TranAD: a transformer reconstructs a row twice, the second time with its first error in view."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field
from typing import Annotated, ClassVar

from tsadbench.base import Cheap, Choice, Ge, Le, Lt, Recording, Traits, Tune, detector, extra
from tsadbench_detectors.standardise import UnitRange

with extra("tranad", "deep"):
    import torch
    from torch import Tensor, nn
    from torch.nn.functional import mse_loss
    from torch.optim import Optimizer

    from tsadbench_detectors.deep.network_detector import NetworkDetector, Size
    from tsadbench_detectors.deep.row_embedding import sinusoids

_FEWEST_VALUES = 8  # half the least width of a token at size "default": layer normalisation erases one or two values
_LARGEST_FOCUS = 1e15  # sums of its square are finite in float32, so no attention weight is NaN


@detector
class TranAD(NetworkDetector):
    """Scores how badly a transformer reconstructs a row, at first and once it has seen its own first error.

    The network reconstructs the last row of a window from the rows before it. Its squared error, the focus, then enters
    the network with the same rows, and a second decoder reconstructs the row again. In training the decoders are
    adversaries: the second makes that second reconstruction worse, the first makes it better. The score is the sum of
    its sensors' contributions.

    Parameters of training, and ``device``: see `NetworkDetector`.

    Parameters
    ----------
    window
        Rows that the network sees at once; the last one is reconstructed.
    size
        "default", or "paper": as many heads as there are sensors, and tokens that hold only a row and its focus.
    heads
        Attention heads; they divide the width of a token: twice the number of sensors, at size "default" at least 16.
        None: 2, or at size "paper" the number of sensors.
    hidden_size
        Width of the hidden layer in the encoder's feed-forward part and in each decoder.
    dropout
        Share of a layer's outputs that is dropped in training.
    epsilon
        The weight of the first reconstruction is ``epsilon ** -n`` in epoch n.
    least_weight
        That weight is never less than this; 0: as published.

    Notes
    -----
    Equations
        Encoder E, decoders D1 and D2, a row x, the rows C before it in the window, a focus F: ``O1 = D1(E(C, 0))``,
        ``O2 = D2(E(C, 0))``, ``F = (O1 - x)^2``, ``O2' = D2(E(C, F))``. In epoch n, with ``w = epsilon^-n``,
        ``L1 = w |O1 - x|^2 + (1 - w) |O2' - x|^2`` and ``L2 = w |O2 - x|^2 - (1 - w) |O2' - x|^2``: for each batch D1
        takes a step down L1, D2 down L2 and E down L1 + L2, by gradients at the same weights. The score is
        ``1/2 (O1 - x)^2 + 1/2 (O2' - x)^2``. A token is a row and its focus side by side, times the square root of the
        number of sensors, plus a sinusoidal code of its position. E: ``A = LN(C + MHA(C, C, C))``,
        ``A' = LN(A + FF(A))`` for the rows before; for the token q that stands for x, ``B = LN(q + MHA(q, [C q], [C
        q]))`` and ``LN(B + MHA(B, A', A'))``. A decoder is ``sigmoid(FF(.))``. Sensors are scaled to [0, 1] by the
        training rows' range.
    Differences
        The row that is reconstructed is hidden: q holds a learned vector, and only the row's focus reaches the second
        pass. In the paper E sees the row itself, and in the authors' code the row is the decoder's query, so the
        network can learn to copy it. C is the window; the paper also speaks of the whole series up to the row.
        The authors' code minimises ``|O1 - x|^2 / n + (1 - 1/n) |O2' - x|^2`` alone, without an adversary, scores by
        O2' alone, labels a window of rows i - 10 to i - 1 with row i, has no layer normalisation, and makes the
        feed-forward layers linear (LeakyReLU of slope 1). The paper leaves open which loss trains E: here the sum,
        in which the adversarial terms cancel. The weight has a floor, because below w = 1/2 D2 lowers its loss most by
        being as wrong as a sigmoid can be. As in the authors' code, there is no step of meta-learning after an epoch.
        Adam has no weight decay or schedule. The loss on held-out windows is the score's mean.
    Defaults
        ``window`` 10, ``hidden_size`` 64, ``dropout`` 0.1 and one layer of each kind are the paper's. Its epsilon is
        slightly above 1: with 1.01 the adversary's weight rises to a tenth in ten epochs; with 1.5 and no floor D2
        collapses in the third epoch. The floor of 0.9 is that of `USAD`, chosen by the loss on held-out training rows.
        Two heads instead of one per sensor halve the time of a fit with 52 sensors. The learning rate of 3e-3 gives as
        small a loss on SKAB's held-out training rows as the paper's 1e-2, and a smaller one than 1e-3. 12 epochs in
        batches of 128 are about 750 steps there.

    References
    ----------
    S. Tuli, G. Casale and N. R. Jennings, TranAD: deep transformer networks for anomaly detection in multivariate time
    series data, PVLDB 15(6), 2022.
    """

    traits: ClassVar[Traits] = Traits(
        family="reconstruction",
        stochastic=True,
        extra="deep",
        paper="Tuli et al., PVLDB 2022",
        differs=("schedule differs",),
    )
    network_: Network = field(init=False)
    _scaling = UnitRange

    window: Annotated[int, Ge(2), Tune(5, 60, log=True), Cheap(6)] = 10
    size: Size = "default"
    heads: Annotated[int | None, Ge(1), Choice((None, 1, 2))] = None
    hidden_size: Annotated[int, Ge(1), Choice((16, 64, 128)), Cheap(8)] = 64
    dropout: Annotated[float, Ge(0), Lt(1), Tune(0.0, 0.3)] = 0.1
    epsilon: Annotated[float, Ge(1), Lt(math.inf)] = 1.01
    least_weight: Annotated[float, Ge(0), Le(1)] = 0.9
    epochs: Annotated[int, Cheap(2)] = 12
    batch_size: Annotated[int, Choice((32, 64, 128, 256))] = 128
    learning_rate: Annotated[float, Tune(3e-4, 1e-2, log=True)] = 3e-3
    patience: int = 5

    def _check(self, sensors: tuple[str, ...]) -> None:
        super()._check(sensors)
        if self.heads is not None:
            width, heads = self._shape(len(sensors))
            self._require(width % heads == 0, "heads", f"a divisor of {width}, the width of a token")

    def _build_network(self, recordings: Sequence[Recording]) -> nn.Module:
        n_sensors = recordings[0].n_sensors
        return Network(n_sensors, self.window, *self._shape(n_sensors), self.hidden_size, self.dropout)

    def _shape(self, n_sensors: int) -> tuple[int, int]:
        """Return the width of a token and the number of attention heads."""
        if self.size == "paper":
            return 2 * n_sensors, self.heads or n_sensors
        return 2 * max(n_sensors, _FEWEST_VALUES), self.heads or 2

    def _optimisers(self) -> Sequence[Optimizer]:
        decoders = [list(decoder.parameters()) for decoder in (self.network_.first, self.network_.second)]
        weights = self.network_.named_parameters()
        encoder = [weight for name, weight in weights if not name.startswith(("first.", "second."))]
        return [self._adam(parameters) for parameters in (*decoders, encoder)]

    def _losses(self, windows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the losses of decoder 1, decoder 2 and the encoder in the current epoch."""
        weight = max(self.epsilon**-self._epoch, self.least_weight)
        first, second, again = (mse_loss(made, windows[:, -1]) for made in self.network_(windows))
        return weight * first + (1 - weight) * again, weight * second - (1 - weight) * again, weight * (first + second)

    def _loss(self, windows: Tensor) -> Tensor:
        """Return the score, averaged over windows and sensors: unlike `_losses`, the same in every epoch."""
        return self._row_terms(windows).mean()

    def _row_terms(self, windows: Tensor) -> Tensor:
        first, _, again = ((made - windows[:, -1]).square() for made in self.network_(windows))
        return torch.as_tensor(first + again) / 2


class Network(nn.Module):
    """An encoder of a row's past and of its focus, and two decoders of the row.

    A token has ``width`` elements, an even number of at least ``2 * n_sensors``, and ``heads`` divides it.
    """

    def __init__(self, n_sensors: int, window: int, width: int, heads: int, hidden_size: int, dropout: float) -> None:
        super().__init__()
        self.positions: Tensor
        self.padding = width - 2 * n_sensors
        self.scale = math.sqrt(n_sensors)
        self.query = nn.Parameter(torch.zeros(n_sensors))
        self.register_buffer("positions", sinusoids(window, width), persistent=False)
        self.context = nn.Sequential(Attention(width, heads, dropout), FeedForward(width, hidden_size, dropout))
        self.to_window, self.to_context = (TokenAttention(width, heads, dropout) for _ in range(2))
        self.dropout = nn.Dropout(dropout)
        self.first, self.second = (
            nn.Sequential(nn.Linear(width, hidden_size), nn.ReLU(), nn.Linear(hidden_size, n_sensors), nn.Sigmoid())
            for _ in range(2)
        )

    def forward(self, windows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return O1, O2 and O2' of the last row of windows [batch, window, n_sensors], [batch, n_sensors] each."""
        row = windows[:, -1]
        past = self._tokens(windows[:, :-1], torch.zeros_like(windows[:, :-1]), self.positions[:-1])
        context = self.context(past)
        encoded = self._encoded(past, context, torch.zeros_like(row))
        first, second = self.first(encoded), self.second(encoded)
        again = self.second(self._encoded(past, context, (first - row).square().clamp(max=_LARGEST_FOCUS)))
        return first, second, again

    def _encoded(self, past: Tensor, context: Tensor, focus: Tensor) -> Tensor:
        token = self._tokens(self.query.expand_as(focus), focus, self.positions[-1])
        state = self.to_window(token, torch.cat([past, token[:, None]], dim=1))
        return torch.as_tensor(self.to_context(state, context))

    def _tokens(self, rows: Tensor, focus: Tensor, positions: Tensor) -> Tensor:
        tokens = nn.functional.pad(torch.cat([rows, focus], dim=-1), (0, self.padding))
        return torch.as_tensor(self.dropout(torch.add(positions, tokens, alpha=self.scale)))


class Attention(nn.Module):
    """Self-attention with its residual connection and layer normalisation."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.dropout = nn.Dropout(dropout)
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return new tokens for tokens [batch, n_tokens, width]."""
        attended, _ = self.attention(tokens, tokens, tokens, need_weights=False)
        return torch.as_tensor(self.norm(tokens + self.dropout(attended)))


class TokenAttention(nn.Module):
    """Attention of one token to others, residual connection and layer normalisation; faster than fused attention."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.output = nn.Linear(width, width), nn.Linear(width, width)
        self.keys_and_values = nn.Linear(width, 2 * width)
        self.dropout = nn.Dropout(dropout)
        self.norm = nn.LayerNorm(width)

    def forward(self, token: Tensor, others: Tensor) -> Tensor:
        """Return a new token for a token [batch, width] that attends to others, [batch, n_tokens, width]."""
        query = self.query(token).unflatten(-1, (1, self.heads, -1))
        keys, values = self.keys_and_values(others).unflatten(-1, (2, self.heads, -1)).unbind(2)
        weights = ((query * keys).sum(-1) / math.sqrt(query.shape[-1])).softmax(1)
        attended = (weights[..., None] * values).sum(1).flatten(1)
        return torch.as_tensor(self.norm(token + self.dropout(self.output(attended))))


class FeedForward(nn.Module):
    """Two dense layers with their residual connection and layer normalisation."""

    def __init__(self, width: int, hidden_size: int, dropout: float) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(width, hidden_size), nn.ReLU(), nn.Linear(hidden_size, width))
        self.dropout = nn.Dropout(dropout)
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return new tokens for tokens [batch, n_tokens, width]."""
        return torch.as_tensor(self.norm(tokens + self.dropout(self.layers(tokens))))
