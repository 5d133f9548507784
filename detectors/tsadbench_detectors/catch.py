"""CATCH: attention between sensors in patches of a window's spectrum, masked by which sensors are related."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Annotated, ClassVar

from tsadbench.base import Cheap, Choice, Ge, Gt, Lt, Recording, Traits, Tune, detector, extra

with extra("catch", "deep"):
    import torch
    from torch import Tensor, nn
    from torch.nn.functional import normalize
    from torch.optim import Optimizer

    from tsadbench_detectors.deep.network_detector import NetworkDetector, Size

# Constants of the clustering loss, as published.
_TEMPERATURE = 0.07
_SPARSITY = 0.5
# Added to a window's variance, which is 0 for a constant sensor.
_SMALLEST_VARIANCE = 1e-5
# In scoring: with few sensors, a layer's outputs for this many windows fit in a core's cache.
_WINDOWS_AT_ONCE = 32
# Keeps the attention finite if a hidden sensor's logit is so large that the weights of all seen ones underflow.
_SMALLEST_WEIGHT = 1e-30


@detector
class CATCH(NetworkDetector):
    """Scores a row by two errors of its window's reconstruction: of the row, and of the last rows' spectrum.

    A window's Fourier transform is cut into overlapping patches of frequencies. In each patch the sensors attend to
    each other where a mask lets them; a generator makes the masks from their spectra. All patches of a sensor give its
    reconstructed spectrum, and the spectrum the window. A loss on the masks lets sensors with similar spectra
    see each other and keeps others apart; the mask generator learns slower than the rest.

    Parameters of training, and ``device``: see `NetworkDetector`.

    Parameters
    ----------
    window
        Rows that the network sees at once; also the number of frequencies.
    patch_size, patch_stride
        Frequencies in a patch, and between the starts of neighbouring patches. The last patch must end with the last
        frequency.
    size
        "default", or "paper": the published widths where they are None.
    d_model
        Half the features per sensor and patch in the reconstruction. None: 16; at size "paper" 128.
    cf_dim
        Width of the attention layers. None: 16; at size "paper" 64.
    layers
        Attention layers. None: 1; at size "paper" 3.
    heads
        Attention heads of a layer.
    head_dim
        Width of a head. None: 8; at size "paper" 64.
    feed_forward
        Width inside a layer's two dense layers. None: 32; at size "paper" 256.
    head_layers
        Residual dense layers before the spectrum is reconstructed. Published: 3; here 0 at either ``size``.
    dropout
        Share of the layers' output that is dropped in training.
    normalised
        Whether each window is scaled to mean 0 and standard deviation 1, as published: then a constant shift that began
        before the window is invisible. Off: the scale of the training rows.
    clustering_weight, spectral_weight
        Weights of the loss on the masks and of the spectrum's error in the loss.
    mask_rate
        Learning rate of the mask generator, as a share of ``learning_rate``.
    score_weight
        Weight of the spectrum's error in the score.
    score_rows
        Last rows of the window whose spectrum counts in the score.

    Notes
    -----
    Equations
        ``F = FFT(x)`` of each sensor's window x, normalised by itself. A patch of p frequencies is the token
        ``[Re F_a ... Re F_(a+p-1), Im F_a ... Im F_(a+p-1)]`` of the sensor, a = 0, patch_stride, 2 patch_stride, ...
        ``M_ij ~ Bernoulli(sigmoid(W token_i)_j)``, by Gumbel-softmax with straight-through gradients; in scoring
        ``M_ij = 1`` if the probability is above 0.5; ``M_ii = 1``. Attention in a patch:
        ``sum_j M_ij e^(s_ij) v_j / sum_j M_ij e^(s_ij)``, ``s_ij = q_i k_j / sqrt(head_dim)``. From all patches of a
        sensor, two linear heads give the real and the imaginary part of ``F'``; x' is linear in ``IFFT(F')``, then
        brought back to the window's mean and scale.
        Loss: ``mean (x - x')^2 + 0.005 clustering + 0.005 mean |F - F'|``, where clustering is
        ``-log(sum_j M_ij e^(cos(q_i, k_j) / 0.07) / sum_j e^(cos(q_i, k_j) / 0.07)) + 0.5 |I - M|_1 / (n (n - 1))``.
        Score: ``mean_sensors ((x_t - x'_t)^2 + 0.05 mean |FFT(x - x')|)``, this transform over the last 32 rows up to
        t. A sensor's share of the mean is its contribution.
    Differences
        A row is scored by the window that ends with it, and by the last ``score_rows`` of that window; in the paper,
        windows do not overlap and the mean over all patches that cover a row counts. The reference draws masks from the
        log-odds and their negative, which is sharper than the probability used here. The mask generator takes a step
        with each batch; in the reference every ``min(batches // 10, 100)`` batches, at another rate after an epoch.
        Rates are constant. Inside the network the transform is divided by the root of the window. The clustering loss
        of a single sensor is 0. A masked sensor is invisible, as in the equation; the reference only lowers its weight.
        The reference averages the cosine over the heads before the exponential, and drops out in more places.
    Defaults
        The loss's weights, the temperature 0.07, dropout, heads, the ratio of the rates and ``normalised`` are the
        published ones; others differ by data set and metric there. For cost on one core: window 64 (published 192),
        patches of 8 every 4 frequencies (16 every 8), one layer, narrow widths, every fourth window in batches of 32, 8
        epochs. The rate is 1e-3 (1e-4) because the steps are few. The published heads (``head_layers=3``) have 2 x 105
        million weights, so size "paper" leaves them, the window and the patches as they are here.

    References
    ----------
    X. Wu, X. Qiu, Z. Li, Y. Wang, J. Hu, C. Guo, H. Xiong and B. Yang, CATCH: Channel-aware multivariate time series
    anomaly detection via frequency patching, ICLR 2025 (arXiv 2410.12261).
    """

    traits: ClassVar[Traits] = Traits(
        family="reconstruction",
        stochastic=True,
        scoring_parameters=("score_weight", "score_rows"),
        extra="deep",
        paper="Wu et al., ICLR 2025",
        differs=("schedule differs",),
    )
    paper: ClassVar[dict[str, int]] = {"d_model": 128, "cf_dim": 64, "layers": 3, "head_dim": 64, "feed_forward": 256}
    network_: Network = field(init=False)

    # The checks use a window as long as the shift that they plant: a shorter one sees only the shift's two ends.
    window: Annotated[int, Choice((32, 64, 96, 128), alters_loss=True), Cheap(40)] = 64
    stride: Annotated[int, Cheap(1)] = 4
    patch_size: Annotated[int, Ge(1), Choice((8, 16)), Cheap(8)] = 8
    patch_stride: Annotated[int, Ge(1), Choice((4, 8)), Cheap(8)] = 4
    size: Size = "default"
    d_model: Annotated[int | None, Ge(1), Choice((None, 8, 32)), Cheap(4)] = None
    cf_dim: Annotated[int | None, Ge(1), Choice((None, 8, 32)), Cheap(8)] = None
    layers: Annotated[int | None, Ge(1)] = None
    heads: Annotated[int, Ge(1)] = 2
    head_dim: Annotated[int | None, Ge(1), Cheap(4)] = None
    feed_forward: Annotated[int | None, Ge(1), Cheap(8)] = None
    head_layers: Annotated[int, Ge(0)] = 0
    dropout: Annotated[float, Ge(0), Lt(1), Tune(0.0, 0.5)] = 0.2
    normalised: bool = True
    clustering_weight: Annotated[float, Ge(0), Lt(math.inf), Tune(0.001, 0.1, log=True, alters_loss=True)] = 0.005
    spectral_weight: Annotated[float, Ge(0), Lt(math.inf), Tune(0.001, 0.1, log=True, alters_loss=True)] = 0.005
    mask_rate: Annotated[float, Gt(0), Lt(math.inf), Tune(0.01, 1.0, log=True)] = 0.1
    score_weight: Annotated[float, Ge(0), Lt(math.inf)] = 0.05
    score_rows: Annotated[int, Ge(1), Cheap(8)] = 32
    epochs: Annotated[int, Cheap(2)] = 8
    batch_size: Annotated[int, Choice((32, 64, 128))] = 32

    def declared_traits(self) -> Traits:  # noqa: D102
        return replace(super().declared_traits(), window_normalised=self.normalised)

    def _check(self, sensors: tuple[str, ...]) -> None:
        super()._check(sensors)
        for parameter in ("patch_size", "score_rows"):
            self._require(getattr(self, parameter) <= self.window, parameter, f"at most window, {self.window}")
        left = self.window - self.patch_size
        self._require(
            self.patch_stride <= self.patch_size and left % self.patch_stride == 0,
            "patch_stride",
            f"at most patch_size, {self.patch_size}, and a divisor of window - patch_size, {left}",
        )

    def _build_network(self, recordings: Sequence[Recording]) -> nn.Module:
        width, head_dim = self._given_or("cf_dim", 16), self._given_or("head_dim", 8)
        layer = partial(Fusion, width, self.heads, head_dim, self._given_or("feed_forward", 32), self.dropout)
        return Network(
            recordings[0].n_sensors,
            self.window,
            (self.patch_size, self.patch_stride),
            width,
            [layer] * self._given_or("layers", 1),
            2 * self._given_or("d_model", 16),
            self.head_layers,
        )

    def _optimisers(self) -> Sequence[Optimizer]:
        masks = list(self.network_.masks.parameters())
        others = [weight for name, weight in self.network_.named_parameters() if not name.startswith("masks.")]
        rate = self.mask_rate * self.learning_rate
        groups: list[dict[str, object]] = [{"params": others}, {"params": masks, "lr": rate}]
        return [self._adam(groups)]

    def _loss(self, windows: Tensor) -> Tensor:
        normal, scale = self._normal(windows)
        rows, spectrum, clustering = self.network_(normal, with_clustering=True)
        error = ((rows - normal) * scale).square().mean()
        spectral = (spectrum - torch.fft.fft(normal)).abs().mean()
        return torch.as_tensor(error + self.clustering_weight * clustering + self.spectral_weight * spectral)

    def _row_terms(self, windows: Tensor) -> Tensor:
        return torch.cat([self._terms(part) for part in torch.split(windows, _WINDOWS_AT_ONCE)]) / windows.shape[2]

    def _terms(self, windows: Tensor) -> Tensor:
        normal, scale = self._normal(windows)
        errors = ((self.network_(normal)[0] - normal) * scale)[:, :, -self.score_rows :]
        # The transform is linear: the difference of two spectra is the spectrum of the difference.
        spectral = torch.fft.fft(errors).abs().mean(dim=2)
        return torch.as_tensor(errors[:, :, -1].square() + self.score_weight * spectral)

    def _normal(self, windows: Tensor) -> tuple[Tensor, Tensor]:
        """Return windows as the network sees them, [batch, n_sensors, window], and their scales [..., 1].

        Errors need no means: these cancel.
        """
        rows = windows.mT.contiguous()
        if not self.normalised:
            return rows, torch.ones_like(rows[:, :, :1])
        variance, mean = torch.var_mean(rows, dim=2, keepdim=True, correction=0)
        scale = (variance + _SMALLEST_VARIANCE).sqrt()
        return (rows - mean) / scale, scale


class Network(nn.Module):
    """Patches of the spectrum, fusion of the sensors in each, and reconstruction of spectrum and window."""

    def __init__(
        self,
        n_sensors: int,
        window: int,
        patch: tuple[int, int],
        width: int,
        layers: Sequence[Callable[[], Fusion]],
        n_features: int,
        head_layers: int,
    ) -> None:
        super().__init__()
        self.patch, self.scale = patch, window**0.5
        size, stride = patch
        self.masks = nn.Linear(2 * size, n_sensors, bias=False)
        nn.init.zeros_(self.masks.weight)
        self.embedding = nn.Linear(2 * size, width)
        self.layers = nn.ModuleList(layer() for layer in layers)
        self.features = nn.Linear(width, n_features)
        n_flat = ((window - size) // stride + 1) * n_features
        self.real, self.imaginary = (Head(n_flat, window, head_layers) for _ in range(2))
        self.merge = nn.Linear(2 * window, window)

    def forward(self, rows: Tensor, with_clustering: bool = False) -> tuple[Tensor, Tensor, Tensor]:
        """Return the reconstructed rows [batch, n_sensors, window] and spectrum, and the clustering loss or 0."""
        patches = self.patches(rows)
        batch, n_patches, n_sensors, _ = patches.shape
        tokens = patches.flatten(0, 1)  # every patch of every window is a sequence of sensors
        mask = self.mask(tokens)
        hidden, clustering = self.embedding(tokens), rows.new_zeros(())
        for layer in self.layers:
            hidden, query, key = layer(hidden, mask)
            if with_clustering:
                clustering = clustering + clustering_loss(query, key, mask) / len(self.layers)
        flat = self.features(hidden).view(batch, n_patches, n_sensors, -1).transpose(1, 2).flatten(2)
        spectrum = torch.complex(self.real(flat), self.imaginary(flat))
        wave = torch.view_as_real(torch.fft.ifft(spectrum, norm="ortho")).mT.flatten(2)
        return self.merge(wave), spectrum * self.scale, clustering

    def patches(self, rows: Tensor) -> Tensor:
        """Return [batch, n_patches, n_sensors, 2 * patch_size]: a patch's real parts, then its imaginary parts.

        The transform is divided by the root of the window, so its values have the scale of the rows.
        """
        parts = torch.view_as_real(torch.fft.fft(rows, norm="ortho"))
        return parts.unfold(2, *self.patch).permute(0, 2, 1, 3, 4).flatten(3)

    def mask(self, tokens: Tensor) -> Tensor:
        """Return which sensors see which, [n_sequences, n_sensors, n_sensors] of 0 and 1; each sees itself."""
        logits = self.masks(tokens)
        if not self.training:
            mask: Tensor = (logits > 0).to(logits.dtype)
            mask.diagonal(dim1=1, dim2=2).fill_(1.0)
            return mask
        # The difference of two Gumbel variables is logistic.
        draws = torch.rand_like(logits).clamp_(1e-6, 1 - 1e-6).logit_()
        draws.diagonal(dim1=1, dim2=2).fill_(torch.inf)
        soft = (logits + draws).sigmoid()
        with torch.no_grad():
            rounding = (soft > 0.5).to(soft.dtype).sub_(soft)
        return torch.as_tensor(soft + rounding)


class Head(nn.Module):
    """Residual dense layers and a linear one, [..., n_inputs] to [..., n_outputs]."""

    def __init__(self, n_inputs: int, n_outputs: int, n_layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(n_inputs, n_inputs) for _ in range(n_layers))
        self.output = nn.Linear(n_inputs, n_outputs)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the outputs."""
        for layer in self.layers:
            inputs = layer(inputs).relu() + inputs
        return torch.as_tensor(self.output(inputs))


class Fusion(nn.Module):
    """A pre-norm attention layer over sensors, in which each sensor sees those that a mask allows."""

    def __init__(self, width: int, heads: int, head_dim: int, feed_forward: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.head_dim = heads, head_dim
        self.first_norm, self.second_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * heads * head_dim, bias=False)
        self.output = nn.Linear(heads * head_dim, width)
        self.dense = nn.Sequential(nn.Linear(width, feed_forward), nn.GELU(), nn.Linear(feed_forward, width))
        self.dropout = nn.Dropout(dropout)

    def forward(self, tokens: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return new tokens [n_sequences, n, width], and queries and keys [n_sequences, heads, n, head_dim]."""
        n_sequences, n, _ = tokens.shape
        parts = self.query_key_value(self.first_norm(tokens)).view(n_sequences, n, 3, self.heads, self.head_dim)
        query, key, value = parts.permute(2, 0, 3, 1, 4).contiguous()
        # PyTorch's softmax over few values takes several times as long as its separate steps.
        logits = (query * self.head_dim**-0.5) @ key.mT
        weights = (logits - logits.detach().amax(dim=3, keepdim=True)).exp() * mask[:, None]
        attended = (weights @ value) / (weights.sum(dim=3, keepdim=True) + _SMALLEST_WEIGHT)
        tokens = tokens + self.dropout(self.output(attended.transpose(1, 2).flatten(2)))
        tokens = tokens + self.dropout(self.dense(self.second_norm(tokens)))
        return tokens, query, key


def clustering_loss(query: Tensor, key: Tensor, mask: Tensor) -> Tensor:
    """Return the mean of ``-log(sum_j M_ij e_ij / sum_j e_ij)``, plus half the share of other sensors that are seen.

    ``e_ij = exp(cos(query_i, key_j) / 0.07)``; the mean is over sequences, heads and sensors.
    """
    n = mask.shape[2]
    weights = (normalize(query, dim=3) @ normalize(key, dim=3).mT / _TEMPERATURE).exp()
    seen = (weights * mask[:, None]).sum(dim=3) / weights.sum(dim=3)
    others = (torch.eye(n, device=mask.device) - mask).abs().sum(dim=(1, 2)).mean() / max(1, n * (n - 1))
    return torch.as_tensor(_SPARSITY * others - seen.log().mean())
