"""TimesNet: a window folded by its strongest periods, and two-dimensional convolutions over cycles and phases."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, ClassVar

from tsadbench.base import Cheap, Choice, Ge, Lt, Recording, Traits, Tune, detector, extra

with extra("timesnet", "deep"):
    import torch
    from torch import Tensor, nn
    from torch.nn.functional import conv2d, gelu, pad

    from tsadbench_detectors.deep.network_detector import Size
    from tsadbench_detectors.deep.reconstructor import Reconstructor
    from tsadbench_detectors.deep.row_embedding import RowEmbedding

# Keeps the division by a window's standard deviation finite; the value is that of the authors' code.
_SMALLEST_VARIANCE = 1e-5
# Pixels from the middle of the largest kernel to its edge: kernels of 1, 3, ... 11 pixels.
_REACH = 5


@detector
class TimesNet(Reconstructor):
    """Scores a row by its reconstruction from the window's strongest periods.

    Each block folds the window into one image for each of its ``top_k`` strongest frequencies. An image's rows are
    cycles and its columns are phases, so convolutions see neighbouring rows and the same phase of neighbouring cycles.
    The window's mean and deviation are removed before the first block and restored at the end. Each sensor's part of
    the score is its contribution.

    Parameters of training, and ``device``: see `NetworkDetector`.

    Parameters
    ----------
    window
        Rows that the network sees at once, at least 2. None: 50; at size "paper" 100.
    size
        "default", or "paper": the published window and widths where they are None.
    d_model
        Width of a row between the blocks. None: 16, or half as many as there are sensors if that is more; at size
        "paper" the number of sensors rounded up to a power of 2, from 32 to 128.
    d_ff
        Channels between a block's two convolutions. None: as ``d_model``.
    n_layers
        Blocks. None: 2; at size "paper" 3.
    top_k
        Periods of a block, at most half of the window's rows.
    normalised
        Whether each window's mean and deviation are removed. ``off`` keeps the shifts of level that many faults are.
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
        Periods are those of each window; the authors' code takes those of the batch's mean spectrum, so a row's score
        depends on the other windows of its batch. The period is rounded up, as in the paper; the code rounds down. Each
        row is scored by the window that ends with it; in the code, windows do not overlap. The code also trains on the
        rows held out, takes its threshold from test scores, and point-adjusts its figures.
    Defaults
        ``top_k``, ``normalised``, ``dropout`` and ``patience`` are the paper's or its code's. ``d_model``, ``d_ff``,
        ``n_layers``, ``window``, ``stride`` and ``batch_size`` are smaller for cost on one core. ``learning_rate`` is
        ten times the code's, which is halved after every epoch: after as many steps, the error on SKAB's held-out
        training rows is 0.011 instead of 0.130.

    References
    ----------
    H. Wu, T. Hu, Y. Liu, H. Zhou, J. Wang and M. Long, TimesNet: temporal 2D-variation modeling for general time series
    analysis, ICLR 2023 (arXiv 2210.02186).
    """

    traits: ClassVar[Traits] = Traits(
        family="reconstruction",
        stochastic=True,
        extra="deep",
        paper="Wu et al., ICLR 2023",
        differs=("schedule differs",),
    )
    paper: ClassVar[Mapping[str, int]] = {"window": 100, "n_layers": 3}

    # The cheap window is no shorter, because a shift of level would fill it too soon to be seen.
    window: Annotated[int | None, Ge(2), Choice((None, 25, 100), alters_loss=True), Cheap(24)] = None  # type: ignore[assignment]
    stride: int = 4
    size: Size = "default"
    d_model: Annotated[int | None, Ge(1), Choice((None, 8, 32)), Cheap(4)] = None
    d_ff: Annotated[int | None, Ge(1), Cheap(4)] = None
    n_layers: Annotated[int | None, Ge(1), Choice((None, 1, 3)), Cheap(1)] = None
    top_k: Annotated[int, Ge(1), Tune(1, 5), Cheap(2)] = 3
    normalised: bool = True
    dropout: Annotated[float, Ge(0), Lt(1)] = 0.1
    epochs: Annotated[int, Cheap(2)] = 5
    batch_size: Annotated[int, Choice((16, 32, 64, 128))] = 16

    def declared_traits(self) -> Traits:  # noqa: D102
        return replace(super().declared_traits(), window_normalised=self.normalised)

    @property
    def _window(self) -> int:
        return self._given_or("window", 50)

    def _check(self, sensors: tuple[str, ...]) -> None:
        super()._check(sensors)
        window, most = self._window, self._window // 2
        self._require(self.top_k <= most, "top_k", f"at most {most}, the frequencies of a window of {window} rows")

    def _build_network(self, recordings: Sequence[Recording]) -> nn.Module:
        n_sensors = recordings[0].n_sensors
        published = min(max(1 << math.ceil(math.log2(n_sensors)), 32), 128)
        d_model = self._given_or("d_model", published if self.size == "paper" else max(16, n_sensors / 2))
        d_ff = d_model if self.d_ff is None else self.d_ff
        blocks = [TimesBlock(d_model, d_ff, self.top_k) for _ in range(self._given_or("n_layers", 2))]
        return Network(self._window, n_sensors, d_model, blocks, self.normalised, self.dropout)

    def _row_terms(self, windows: Tensor) -> Tensor:
        missed = (self.network_(windows)[:, -1] - windows[:, -1]).double()
        return torch.as_tensor(missed.square() / windows.shape[2])


class Network(nn.Module):
    """Maps scaled rows [batch, window, n_sensors] to their reconstruction; one layer norm follows every block."""

    def __init__(
        self, window: int, n_sensors: int, d_model: int, blocks: Sequence[TimesBlock], normalised: bool, dropout: float
    ) -> None:
        super().__init__()
        self.normalised = normalised
        self.embedding = RowEmbedding(window, n_sensors, d_model)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(blocks)
        self.norm = nn.LayerNorm(d_model)
        self.to_sensors = nn.Linear(d_model, n_sensors)

    def forward(self, windows: Tensor) -> Tensor:
        """Return the reconstruction."""
        if not self.normalised:
            return self._reconstructed(windows)
        variance, mean = torch.var_mean(windows, dim=1, correction=0, keepdim=True)
        deviation = (variance + _SMALLEST_VARIANCE).sqrt()
        return self._reconstructed((windows - mean) / deviation) * deviation + mean

    def _reconstructed(self, windows: Tensor) -> Tensor:
        rows = self.dropout(self.embedding(windows))
        for block in self.blocks:
            rows = self.norm(block(rows))
        reconstruction: Tensor = self.to_sensors(rows)
        return reconstruction


class TimesBlock(nn.Module):
    """Folds each window by its strongest periods, convolves, and adds the results to it, weighted by amplitude."""

    def __init__(self, d_model: int, d_ff: int, top_k: int) -> None:
        super().__init__()
        self.top_k = top_k
        self.inner, self.outer = Inception(d_model, d_ff), Inception(d_ff, d_model)

    def forward(self, rows: Tensor) -> Tensor:
        """Return [batch, window, d_model] for rows of this shape."""
        window = rows.shape[1]
        periods, amplitudes = strongest_periods(rows, self.top_k)
        kernels = self.inner.kernel(), self.outer.kernel()
        convolved = rows.new_empty(*periods.shape, *rows.shape[1:])
        for period in torch.unique(periods).tolist():
            # Windows of one period are convolved together.
            which, rank = (periods == period).nonzero(as_tuple=True)
            images = self.outer(gelu(self.inner(folded(rows[which], period), kernels[0])), kernels[1])
            convolved[which, rank] = unfolded(images, window)
        weights = torch.softmax(amplitudes, dim=1)
        return rows + (weights[..., None, None] * convolved).sum(dim=1)


class Inception(nn.Module):
    """The mean of six convolutions, by kernels of 1, 3, ... 11 pixels, computed by the mean kernel at half the cost."""

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        sizes = range(1, 2 * _REACH + 2, 2)
        self.kernels = nn.ParameterList(torch.empty(n_out, n_in, size, size) for size in sizes)
        for kernel in self.kernels:
            nn.init.kaiming_normal_(kernel, mode="fan_out", nonlinearity="relu")
        self.bias = nn.Parameter(torch.zeros(n_out))  # the mean of six biases

    def kernel(self) -> Tensor:
        """Return the mean of the kernels, the smaller ones with zeros around them, [n_out, n_in, 11, 11]."""
        around = [_REACH - kernel.shape[-1] // 2 for kernel in self.kernels]
        wide = [pad(kernel, (n, n, n, n)) for kernel, n in zip(self.kernels, around, strict=True)]
        return torch.stack(wide).mean(dim=0)

    def forward(self, images: Tensor, kernel: Tensor) -> Tensor:
        """Return images [n, n_out, height, width] of the same size, padded with zeros."""
        # The kernel's parts that a small image never meets are left out.
        up, left = (min(_REACH, size - 1) for size in images.shape[2:])
        seen = kernel[:, :, _REACH - up : _REACH + up + 1, _REACH - left : _REACH + left + 1]
        return conv2d(images, seen, self.bias, padding=(up, left))


def strongest_periods(rows: Tensor, top_k: int) -> tuple[Tensor, Tensor]:
    """Return the periods of the strongest frequencies of rows [batch, window, width], and their amplitudes.

    Both are [batch, top_k]; the amplitude of a frequency is the mean over the width.
    """
    amplitudes = torch.fft.rfft(rows, dim=1).abs().mean(dim=2)[:, 1:]
    strongest, places = amplitudes.topk(top_k, dim=1)
    window = rows.shape[1]
    return (window + places).div(places + 1, rounding_mode="floor"), strongest


def folded(rows: Tensor, period: int) -> Tensor:
    """Return windows [n, window, width] as images [n, width, cycles, period]; zeros fill the last cycle up."""
    n, window, width = rows.shape
    padded = pad(rows, (0, 0, 0, -window % period))
    return padded.view(n, -1, period, width).permute(0, 3, 1, 2)


def unfolded(images: Tensor, window: int) -> Tensor:
    """Return images [n, width, cycles, period] as windows [n, window, width]: the inverse of `folded`."""
    return images.permute(0, 2, 3, 1).flatten(1, 2)[:, :window]
