"""TimesNet: a window folded by its strongest periods, and two-dimensional convolutions over cycles and phases."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import ClassVar, cast

import numpy as np

from tsadbench.base import Choice, FloatArray, Recording, Space, Traits, Tune, extra

with extra("timesnet", "deep"):
    import torch
    from torch import Tensor, nn

    from tsadbench_detectors.deep.dropout import Dropout
    from tsadbench_detectors.deep.row_embedding import RowEmbedding
    from tsadbench_detectors.deep.sizes import Size, SizedNetwork, Width
    from tsadbench_detectors.deep.times_block import TimesBlock

# Keeps the division by a window's standard deviation finite, and is that of the authors' code.
_SMALLEST_VARIANCE = 1e-5


@dataclass(frozen=True, slots=True)
class _PublishedWidth(Width):
    """A width that the paper derives from the number of sensors: the next power of 2, from 32 to 128."""

    def of(self, n_sensors: int, size: Size = "default") -> int:
        if size == "paper":
            return min(max(1 << math.ceil(math.log2(n_sensors)), 32), 128)
        return Width.of(self, n_sensors, size)


class TimesNet(SizedNetwork):
    """Scores a row by its reconstruction from the window's strongest periods.

    Each block takes the spectrum of the window and its ``top_k`` strongest frequencies. For each of these it folds the
    window into an image whose rows are cycles and whose columns are phases of the period: neighbours in an image are
    the rows just before and after, and those of the same phase one cycle earlier and later. Two layers of
    two-dimensional convolutions, with kernels of several sizes, see both. The images are unfolded, their mean,
    weighted by the frequencies' amplitudes, is added to the window, and after the last block a linear layer gives the
    sensors' values. Before all that the window's mean and deviation are taken out, and put back at the end.

    The score is the mean squared error of the window's last row. Each sensor's part is its contribution.

    Parameters of training, and ``device``: see `NetworkDetector`.

    Parameters
    ----------
    window
        Rows that it sees at once; the paper's are 100, at either size 50 are the default.
    size
        "default", or "paper": the published widths of what is None. What is given counts at either size.
    d_model
        Numbers that describe a row between the blocks. None: 16, or half as many as there are sensors if that is more;
        at size "paper" the next power of 2 from the number of sensors on, at least 32 and at most 128.
    d_ff
        Channels between a block's two convolutions. None: as ``d_model``.
    n_layers
        Blocks. None: 2; at size "paper" 3.
    top_k
        Periods of a block, at most half of the window's rows.
    normalised
        Whether each window's mean and deviation are taken out. ``off``: they remain, and with them the shifts of level
        that many faults consist of.
    dropout
        Share of the embedding that is dropped in training.

    Notes
    -----
    Equations
        ``A = mean over channels of |FFT(x)|``; ``f_1 ... f_k = the k largest of A`` without the frequency 0;
        ``p_i = ceil(T / f_i)``; ``x_i = unfold(Inception(GELU(Inception(fold_{p_i}(x)))))``;
        ``x + sum_i softmax(A_{f_1} ... A_{f_k})_i x_i``. Inception is the mean of convolutions by 1 x 1, 3 x 3, ...
        11 x 11 kernels. ``score_t = mean over sensors of (x_t - x'_t)^2``.
    Differences
        The periods are those of each window; the authors' code takes those of the batch's mean spectrum, so that a
        row's score depends on the windows that happen to be scored with it. Windows of one period are convolved
        together. Six convolutions and their mean are one convolution by the mean kernel, of which only what reaches
        into the image is used. The period is rounded up, as in the paper; the code rounds it down. In place of windows
        side by side, each row is scored by the window that ends with it. In the code, the rows held out are trained on
        too, its threshold is taken from test scores, and its figures are point-adjusted.
    Defaults
        ``top_k``, ``normalised``, ``dropout`` and ``patience`` are the paper's or its code's. ``d_model``, ``d_ff``,
        ``n_layers``, ``window``, ``stride`` and ``batch_size`` are smaller for cost on one core. ``learning_rate`` is
        ten times the code's: after as many steps, the error on the held-out training rows of SKAB is 0.011 instead of
        0.130.

    References
    ----------
    H. Wu, T. Hu, Y. Liu, H. Zhou, J. Wang and M. Long, TimesNet: temporal 2D-variation modeling for general time series
    analysis, ICLR 2023 (arXiv 2210.02186).
    """

    widths: ClassVar[Mapping[str, Width]] = {
        "d_model": _PublishedWidth(16, per_sensor=1 / 2),
        "n_layers": Width(2, paper=3),
    }
    traits: ClassVar[Traits] = Traits(
        family="reconstruction", stochastic=True, extra="deep", paper="Wu et al., ICLR 2023"
    )

    def __init__(
        self,
        *,
        window: int = 50,
        stride: int = 4,
        size: Size = "default",
        d_model: int | None = None,
        d_ff: int | None = None,
        n_layers: int | None = None,
        top_k: int = 3,
        normalised: bool = True,
        dropout: float = 0.1,
        epochs: int = 5,
        min_steps: int = 500,
        max_steps: int | None = None,
        batch_size: int = 16,
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
        self.d_ff = d_ff
        self.n_layers = n_layers
        self.top_k = top_k
        self.normalised = normalised
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
            "d_model": Choice((None, 8, 32)),
            "n_layers": Choice((None, 1, 3)),
            "top_k": Tune(1, 5),
            "batch_size": Choice((16, 32, 64, 128)),
            "learning_rate": Tune(1e-4, 1e-2, log=True),
        }

    @classmethod
    def test_params(cls) -> dict[str, object]:  # noqa: D102
        # In a shorter window, a shift of level fills the window too soon to be seen.
        return {"window": 24, "d_model": 4, "d_ff": 4, "n_layers": 1, "top_k": 2, "epochs": 2, "min_steps": 1}

    def declared_traits(self) -> Traits:  # noqa: D102
        return replace(super().declared_traits(), window_normalised=self.normalised)

    def _check(self, sensors: tuple[str, ...]) -> None:
        super()._check(sensors)
        self._require_integer("window", at_least=2)
        self._require_integer("top_k", at_least=1)
        if self.d_ff is not None:
            self._require_integer("d_ff", at_least=1)
        most = self.window // 2
        self._require(self.top_k <= most, "top_k", f"at most {most}, the frequencies of a window of {self.window} rows")
        self._require(isinstance(self.normalised, bool), "normalised", "True or False")
        self._require(
            isinstance(self.dropout, Real) and 0.0 <= self.dropout < 1.0, "dropout", "a number from 0 to below 1"
        )

    def _build_network(self, recordings: Sequence[Recording]) -> nn.Module:
        n_sensors = recordings[0].n_sensors
        d_model = self._width("d_model", n_sensors)
        blocks = [
            TimesBlock(d_model, d_model if self.d_ff is None else self.d_ff, self.top_k)
            for _ in range(self._width("n_layers"))
        ]
        return Network(self.window, n_sensors, d_model, blocks, normalised=self.normalised, dropout=self.dropout)

    def _loss(self, windows: Tensor) -> Tensor:
        return nn.functional.mse_loss(self.network_(windows), windows)

    def _contributions(self, recording: Recording) -> FloatArray:
        contributions = np.empty(recording.values.shape)
        network = cast("Network", self.network_)
        for first, windows in self._scored_windows(recording, self.window, before=self.window - 1):
            missed = (network(windows, last_only=True)[:, -1] - windows[:, -1]).double()
            contributions[self.window - 1 + first] = (missed.square() / recording.n_sensors).cpu().numpy()
        return contributions


class Network(nn.Module):
    """Maps scaled rows [batch, window, n_sensors] to their reconstruction.

    Parameters
    ----------
    window, d_model, normalised, dropout
        As for `TimesNet`.
    n_sensors
        Sensors of a row.
    blocks
        What the embedded window goes through. A layer norm, the same for all, follows each.
    """

    def __init__(
        self,
        window: int,
        n_sensors: int,
        d_model: int,
        blocks: Sequence[TimesBlock],
        *,
        normalised: bool,
        dropout: float,
    ) -> None:
        super().__init__()
        self.normalised = normalised
        self.embedding = RowEmbedding(window, n_sensors, d_model)
        self.dropout = Dropout(dropout)
        self.blocks = nn.ModuleList(blocks)
        self.norm = nn.LayerNorm(d_model)
        self.to_sensors = nn.Linear(d_model, n_sensors)

    def forward(self, windows: Tensor, *, last_only: bool = False) -> Tensor:
        """Return the reconstruction; with ``last_only`` that of the last row, [batch, 1, n_sensors]."""
        if not self.normalised:
            return self._reconstructed(windows, last_only)
        variance, mean = torch.var_mean(windows, dim=1, correction=0, keepdim=True)
        deviation = (variance + _SMALLEST_VARIANCE).sqrt()
        return self._reconstructed((windows - mean) / deviation, last_only) * deviation + mean

    def _reconstructed(self, windows: Tensor, last_only: bool) -> Tensor:
        rows = self.dropout(self.embedding(windows))
        for number, block in enumerate(self.blocks, start=1):
            rows = self.norm(block(rows, last_only=last_only and number == len(self.blocks)))
        reconstruction: Tensor = self.to_sensors(rows)
        return reconstruction
