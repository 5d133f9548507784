"""Vanilla autoencoder: dense layers squeeze a row through a few numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import ClassVar

from tsadbench.base import Choice, Recording, Space, Traits, Tune, extra

with extra("vanilla-ae", "deep"):
    from torch import Tensor, nn

    from tsadbench_detectors.deep.batch_norm import BatchNorm
    from tsadbench_detectors.deep.reconstructor import Reconstructor
    from tsadbench_detectors.deep.sizes import Size, SizedNetwork, Width

    # By the number of values that the network sees: 5, 4 and 2 for SKAB's 8 sensors.
    _WIDTHS = (
        Width(5, per_sensor=5 / 8, paper=5),
        Width(4, per_sensor=1 / 2, paper=4),
        Width(1, per_sensor=1 / 4, paper=2),
    )


class VanillaAE(SizedNetwork, Reconstructor):
    """Scores how far a row is from its reconstruction by a dense autoencoder: the sum of the absolute errors.

    For n values, the layers' widths are n, 5n/8, n/2, n/4, n/2, 5n/8, n, rounded up, and inside at least 5, 4 and 1:
    8 sensors have the published widths, and more sensors pass a bottleneck that is as narrow beside them. Each layer
    but the bottleneck and the last is followed by batch normalisation and a ReLU. The loss is the mean absolute error.
    Like the SKAB benchmark's, it sees single rows; with ``window`` above 1 the rows of a window side by side.

    The running moments of batch normalisation, which scoring uses, move by 0.1 per step: with the reference's 0.01,
    they have not settled when training ends.

    Parameters of training, and ``device``: see `NetworkDetector`.

    Parameters
    ----------
    window
        Rows that it sees at once; the score is that of the last one.
    size
        "default", or "paper": 5, 4, 2, 4, 5 inside, as published for 8 sensors, for any number of values.

    Notes
    -----
    Equations
        ``r = decode(encode(x))``; the loss is the mean of ``|x - r|``, the score ``sum_i |x_i - r_i|`` of the last row.
    Differences
        One dense autoencoder: the paper's is an ensemble of many, randomly thinned ones. Compared with the SKAB
        benchmark's network, the running moments of batch normalisation move by 0.1 per step: with its 0.01 they have
        not settled when training ends. Widths grow with the number of sensors.
    Defaults
        Widths for 8 sensors, batches of 32, learning rate 5e-3, 40 epochs, a fifth of the rows held out and patience 3
        are the SKAB benchmark's; window = 1, as there.

    References
    ----------
    J. Chen, S. Sathe, C. Aggarwal and D. Turaga, Outlier detection with autoencoder ensembles, SDM 2017.
    """

    traits: ClassVar[Traits] = Traits(
        family="reconstruction", stochastic=True, extra="deep", paper="Chen et al., SDM 2017"
    )

    def __init__(
        self,
        *,
        window: int = 1,
        stride: int = 1,
        size: Size = "default",
        epochs: int = 40,
        min_steps: int = 500,
        max_steps: int | None = None,
        batch_size: int = 32,
        learning_rate: float = 5e-3,
        held_out: float = 0.2,
        patience: int = 3,
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        self.window = window
        self.stride = stride
        self.size = size
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
            "window": Tune(1, 20, log=True, alters_loss=True),
            "batch_size": Choice((32, 64, 128, 256)),
            "learning_rate": Tune(1e-4, 1e-2, log=True),
        }

    @classmethod
    def test_params(cls) -> dict[str, object]:  # noqa: D102
        return {"epochs": 8, "min_steps": 1}

    def _build_network(self, recordings: Sequence[Recording]) -> nn.Module:
        return Network(self.window, recordings[0].n_sensors, self.size)

    def _loss(self, windows: Tensor) -> Tensor:
        return nn.functional.l1_loss(self.network_(windows), windows)


class Network(nn.Module):
    """Dense layers down to the bottleneck and up again, [batch, window, n_sensors] to the same."""

    def __init__(self, window: int, n_sensors: int, size: Size = "default") -> None:
        super().__init__()
        n_values = window * n_sensors
        wide, narrow, bottleneck = (width.of(n_values, size) for width in _WIDTHS)
        self.encoder = nn.Sequential(*_hidden_layers(n_values, wide, narrow), nn.Linear(narrow, bottleneck))
        self.decoder = nn.Sequential(*_hidden_layers(bottleneck, narrow, wide), nn.Linear(wide, n_values))

    def forward(self, windows: Tensor) -> Tensor:
        """Return the reconstruction."""
        decoded: Tensor = self.decoder(self.encoder(windows.flatten(1)))
        return decoded.view(windows.shape)


def _hidden_layers(*widths: int) -> list[nn.Module]:
    layers = []
    for n_in, n_out in pairwise(widths):
        layers += [nn.Linear(n_in, n_out), BatchNorm(n_out), nn.ReLU()]
    return layers
