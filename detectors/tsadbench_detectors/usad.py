"""USAD: an encoder and two decoders, the second of which learns to expose what the first reconstructs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from numbers import Real
from typing import ClassVar

from tsadbench.base import Choice, Recording, Space, Traits, Tune, extra
from tsadbench_detectors.standardise import Scaler, UnitRange

with extra("usad", "deep"):
    import torch
    from torch import Tensor, nn
    from torch.optim import Optimizer

    from tsadbench_detectors.deep.sizes import Size, SizedNetwork, Width


class USAD(SizedNetwork):
    """Scores how badly two adversarially trained autoencoders reconstruct a window's last row.

    Both autoencoders share the encoder; each has a decoder of its own. The first learns to reconstruct a window, and to
    do so well enough to deceive the second. The second learns to reconstruct real windows well and the first one's
    reconstructions badly. A fault that survives the first pass is thus made larger by the second one. The score is the
    sum of its sensors' terms, which are its contributions.

    Parameters of training, and ``device``: see `NetworkDetector`.

    Parameters
    ----------
    window
        Rows that it sees at once.
    size
        "default", or "paper": the published widths of what is None. What is given counts at either size.
    hidden_size
        Width of both hidden layers of the encoder and of the decoders. None: a half and a quarter of the number of
        values in a window, as published.
    latent_size
        Latent variables. None: 8, or as many as there are sensors if that is more; at size "paper" 40.
    alpha
        Weight of the first autoencoder's error in the score, from 0 to 1; ``1 - alpha`` is that of the second pass.
        Training does not depend on it.
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
        The score is that of the window's last row, not the whole window's mean, so that it says which row is anomalous
        and no row is blamed for an earlier one. The weight 1/n has a floor. With the published schedule, and gradients
        that are kept apart, the second decoder collapses: below w = 1/2 it lowers its loss most by being as wrong as a
        sigmoid can be on every window, and on SKAB it does so in the third epoch. In the authors' code this does not
        happen, because each ``zero_grad`` there clears one decoder's gradients alone: those that the other loss left
        behind cancel the adversarial term almost exactly. (Ports that minimise the sum of both losses in one step
        cancel it exactly.) Here each loss is differentiated with respect to its own parameters alone. The loss on
        held-out windows is the mean of ``|W - W1|^2`` and ``|W - W3|^2``, which is the score's at ``alpha`` 1/2: unlike
        the two training losses it means the same in every epoch. Training ends when it no longer falls, and the network
        with the smallest is kept; the paper trains for a fixed number of epochs. Windows are not down-sampled. The
        sigmoid cannot reach values outside the training range, so that they are scored by at least their distance
        from it.
    Defaults
        ``window`` 12 is the paper's for SWaT, a plant (K = 12, 40 latent variables, 51 sensors). Over its data sets the
        paper has about one latent variable per sensor (WADI 100 for 123, SMD 38 for 38, MSL 33 for 55, SMAP 55 for 25),
        which is the default here. ``alpha`` 1/2 is one of its settings, Adam's rate of 1e-3 PyTorch's. ``least_weight``
        0.9 was chosen by the loss on held-out training rows: with it, that loss falls as it does without an adversary,
        on SKAB and on a simulated series of coupled oscillations. With 0.8 it does not for every seed; with 0.5 to 0.7
        it stays at 0.03 or more on the series, where it should fall to 0.0015. 12 epochs in batches of 128 are about
        750 steps on SKAB's training rows.

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
    )
    widths: ClassVar[Mapping[str, Width]] = {"latent_size": Width(8, per_sensor=1, paper=40)}

    def __init__(
        self,
        *,
        window: int = 12,
        stride: int = 1,
        size: Size = "default",
        hidden_size: int | None = None,
        latent_size: int | None = None,
        alpha: float = 0.5,
        least_weight: float = 0.9,
        epochs: int = 12,
        min_steps: int = 500,
        max_steps: int | None = None,
        batch_size: int = 128,
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
        self.latent_size = latent_size
        self.alpha = alpha
        self.least_weight = least_weight
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
            "window": Tune(5, 30, log=True, alters_loss=True),
            "hidden_size": Choice((None, 16, 64)),
            "latent_size": Choice((None, 4, 16, 40)),
            "alpha": Tune(0.0, 1.0),
            # More than this and less adversary would always lower the loss on held-out rows.
            "least_weight": Choice((0.0, 0.5, 0.8, 0.9), alters_loss=True),
            "batch_size": Choice((32, 64, 128, 256)),
            "learning_rate": Tune(1e-4, 1e-2, log=True),
        }

    @classmethod
    def test_params(cls) -> dict[str, object]:  # noqa: D102
        return {"window": 6, "hidden_size": 8, "latent_size": 4, "epochs": 2, "min_steps": 1}

    def _check(self, sensors: tuple[str, ...]) -> None:
        if self.hidden_size is not None:
            self._require_integer("hidden_size", at_least=1)
        for parameter, value in (("alpha", self.alpha), ("least_weight", self.least_weight)):
            self._require(isinstance(value, Real) and 0 <= value <= 1, parameter, "a number from 0 to 1")
        super()._check(sensors)

    def _build_network(self, recordings: Sequence[Recording]) -> nn.Module:
        n_sensors = recordings[0].n_sensors
        n_values = self.window * n_sensors
        outer = self.hidden_size or max(1, n_values // 2)
        inner = self.hidden_size or max(1, n_values // 4)
        return Network(n_values, outer, inner, self._width("latent_size", n_sensors))

    def _learn_scaler(self, recordings: Sequence[Recording]) -> Scaler:
        return UnitRange.of(recordings)

    def _optimisers(self) -> Sequence[Optimizer]:
        encoder, *decoders = (list(part.parameters()) for part in self.network_.children())
        return [self._adam([*encoder, *decoder]) for decoder in decoders]

    def _losses(self, windows: Tensor) -> tuple[Tensor, Tensor]:
        """Return what the first autoencoder minimises and what the second does, in the epoch that runs."""
        weight = max(1 / self._epoch, self.least_weight)
        first, second, again = (nn.functional.mse_loss(made, windows) for made in self.network_(windows))
        return weight * first + (1 - weight) * again, weight * second - (1 - weight) * again

    def _loss(self, windows: Tensor) -> Tensor:
        """Return the score's two errors, averaged over the windows: what is watched, and not minimised."""
        first, _, again = (nn.functional.mse_loss(made, windows) for made in self.network_(windows))
        return (first + again) / 2

    def _row_terms(self, windows: Tensor) -> Tensor:
        first, _, again = ((made[:, -1] - windows[:, -1]).square() for made in self.network_(windows))
        return torch.as_tensor(self.alpha * first + (1 - self.alpha) * again)


class Network(nn.Module):
    """An encoder and two decoders of dense layers.

    Parameters
    ----------
    n_values
        Values of a window.
    outer, inner
        Widths of the hidden layers, from the window inwards.
    latent_size
        As for `USAD`.
    """

    def __init__(self, n_values: int, outer: int, inner: int, latent_size: int) -> None:
        super().__init__()
        down, up = (n_values, outer, inner, latent_size), (latent_size, inner, outer, n_values)
        self.encoder = _layers(down, nn.ReLU())
        self.first, self.second = _layers(up, nn.Sigmoid()), _layers(up, nn.Sigmoid())

    def forward(self, windows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return what the first decoder makes of windows, what the second does, and the second of the first one's.

        Parameters
        ----------
        windows
            [batch, window, n_sensors], as is each result.
        """
        latent = self.encoder(windows.flatten(1))
        first, second = self.first(latent), self.second(latent)
        again = self.second(self.encoder(first))
        return first.view_as(windows), second.view_as(windows), again.view_as(windows)


def _layers(widths: Sequence[int], last: nn.Module) -> nn.Sequential:
    layers: list[nn.Module] = []
    for one, other in pairwise(widths):
        layers += [nn.Linear(one, other), nn.ReLU()]
    return nn.Sequential(*layers[:-1], last)
