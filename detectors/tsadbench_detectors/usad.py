"""USAD: an encoder and two decoders, the second of which learns to expose what the first reconstructs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from itertools import pairwise
from typing import Annotated, ClassVar

from tsadbench.base import Cheap, Choice, Ge, Le, Recording, Traits, Tune, detector, extra
from tsadbench_detectors.standardise import UnitRange

with extra("usad", "deep"):
    import torch
    from torch import Tensor, nn
    from torch.nn.functional import mse_loss
    from torch.optim import Optimizer

    from tsadbench_detectors.deep.network_detector import NetworkDetector, Size


@detector
class USAD(NetworkDetector):
    """Scores how badly two adversarially trained autoencoders reconstruct a window's last row.

    The autoencoders share the encoder. The first learns to reconstruct a window well enough to deceive the second. The
    second learns to reconstruct real windows well and the first one's reconstructions badly, which enlarges the first
    pass's error. The score is the sum of its sensors' contributions.

    Parameters of training, and ``device``: see `NetworkDetector`.

    Parameters
    ----------
    window
        Rows that the network sees at once.
    size
        "default", or "paper": the published widths where they are None.
    hidden_size
        Width of both hidden layers of the encoder and of the decoders. None: a half and a quarter of the number of
        values in a window, as published.
    latent_size
        Latent variables. None: 8, or as many as there are sensors if that is more; at size "paper" 40.
    alpha
        Weight of the first autoencoder's error in the score; ``1 - alpha`` is that of the second pass. Training does
        not depend on it.
    least_weight
        The weight of plain reconstruction in both losses is 1/n in epoch n, but never less than this; 0: as published.

    Notes
    -----
    Equations
        Encoder E, decoders D1 and D2, a window W of K rows as one vector: ``W1 = D1(E(W))``, ``W2 = D2(E(W))``,
        ``W3 = D2(E(W1))``. In epoch n, with ``w = 1/n``, E and D1 minimise ``w |W - W1|^2 + (1 - w) |W - W3|^2``, E and
        D2 minimise ``w |W - W2|^2 - (1 - w) |W - W3|^2``: one step each for every batch, both by gradients at the same
        weights. The score is ``alpha (x - x1)^2 + (1 - alpha) (x - x3)^2``, summed over the sensors of the window's
        last row x. E has layers of widths KN, KN/2, KN/4 and the number of latent variables, with a ReLU after each;
        the decoders mirror it and end in a sigmoid. Sensors are scaled to [0, 1] by the training rows' range.
    Differences
        The score is that of the window's last row, not the whole window's mean, so that it says which row is anomalous.
        The weight 1/n has a floor: with the published schedule the second decoder collapses (on SKAB from the third
        epoch on), because below w = 1/2 it lowers its loss most by being as wrong as a sigmoid can be. In the authors'
        code, gradients that ``zero_grad`` leaves behind cancel the adversarial term almost exactly. Here each loss is
        differentiated with respect to its own parameters alone. The loss on held-out windows, the mean of
        ``|W - W1|^2`` and ``|W - W3|^2``, ends training and chooses the network; the paper trains for a fixed number of
        epochs. Windows are not down-sampled.
    Defaults
        ``window`` 12 is the paper's for SWaT (40 latent variables, 51 sensors); here too there is about one latent
        variable per sensor. ``alpha`` 1/2 is one of its settings, Adam's rate of 1e-3 PyTorch's. ``least_weight`` 0.9
        was chosen by the loss on held-out training rows: with it, that loss falls as without an adversary, on SKAB and
        on a simulated series of coupled oscillations; with 0.8 not for every seed, with 0.5 to 0.7 not on the series.
        12 epochs in batches of 128 are about 750 steps on SKAB.

    References
    ----------
    J. Audibert, P. Michiardi, F. Guyard, S. Marti and M. A. Zuluaga, USAD: unsupervised anomaly detection on
    multivariate time series, KDD 2020.
    """

    traits: ClassVar[Traits] = Traits(
        family="reconstruction",
        stochastic=True,
        extra="deep",
        paper="Audibert et al., KDD 2020",
        scoring_parameters=("alpha",),
        differs=("schedule differs",),
    )
    paper: ClassVar[dict[str, int]] = {"latent_size": 40}
    network_: Network = field(init=False)
    _scaling = UnitRange

    window: Annotated[int, Tune(5, 30, log=True, alters_loss=True), Cheap(6)] = 12
    size: Size = "default"
    hidden_size: Annotated[int | None, Ge(1), Choice((None, 16, 64)), Cheap(8)] = None
    latent_size: Annotated[int | None, Ge(1), Choice((None, 4, 16, 40)), Cheap(4)] = None
    alpha: Annotated[float, Ge(0), Le(1), Tune(0.0, 1.0)] = 0.5
    # Above 0.9, a weaker adversary would always lower the loss on held-out rows.
    least_weight: Annotated[float, Ge(0), Le(1), Choice((0.0, 0.5, 0.8, 0.9), alters_loss=True)] = 0.9
    epochs: Annotated[int, Cheap(2)] = 12
    batch_size: Annotated[int, Choice((32, 64, 128, 256))] = 128
    patience: int = 5

    def _build_network(self, recordings: Sequence[Recording]) -> nn.Module:
        n_sensors = recordings[0].n_sensors
        n_values = self.window * n_sensors
        outer, inner = (self.hidden_size or max(1, n_values // part) for part in (2, 4))
        return Network(n_values, outer, inner, self._given_or("latent_size", max(8, n_sensors)))

    def _optimisers(self) -> Sequence[Optimizer]:
        encoder, *decoders = (list(part.parameters()) for part in self.network_.children())
        return [self._adam([*encoder, *decoder]) for decoder in decoders]

    def _losses(self, windows: Tensor) -> tuple[Tensor, Tensor]:
        """Return the losses of the first and the second autoencoder in the current epoch."""
        weight = max(1 / self._epoch, self.least_weight)
        first, second, again = (mse_loss(made, windows) for made in self.network_(windows))
        return weight * first + (1 - weight) * again, weight * second - (1 - weight) * again

    def _loss(self, windows: Tensor) -> Tensor:
        """Return the score's two errors, averaged over the windows: unlike `_losses`, the same in every epoch."""
        first, _, again = (mse_loss(made, windows) for made in self.network_(windows))
        return (first + again) / 2

    def _row_terms(self, windows: Tensor) -> Tensor:
        first, _, again = ((made[:, -1] - windows[:, -1]).square() for made in self.network_(windows))
        return torch.as_tensor(self.alpha * first + (1 - self.alpha) * again)


class Network(nn.Module):
    """An encoder and two decoders of dense layers; ``outer`` and ``inner`` are the widths from the window inwards."""

    def __init__(self, n_values: int, outer: int, inner: int, latent_size: int) -> None:
        super().__init__()
        down, up = (n_values, outer, inner, latent_size), (latent_size, inner, outer, n_values)
        self.encoder = _layers(down, nn.ReLU())
        self.first, self.second = _layers(up, nn.Sigmoid()), _layers(up, nn.Sigmoid())

    def forward(self, windows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return W1, W2 and W3 of windows; all have the shape [batch, window, n_sensors]."""
        latent = self.encoder(windows.flatten(1))
        first, second = self.first(latent), self.second(latent)
        again = self.second(self.encoder(first))
        return first.view_as(windows), second.view_as(windows), again.view_as(windows)


def _layers(widths: Sequence[int], last: nn.Module) -> nn.Sequential:
    layers: list[nn.Module] = []
    for one, other in pairwise(widths):
        layers += [nn.Linear(one, other), nn.ReLU()]
    return nn.Sequential(*layers[:-1], last)
