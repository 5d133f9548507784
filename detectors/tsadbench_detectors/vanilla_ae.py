"""Vanilla autoencoder: dense layers squeeze a row through a few numbers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import ceil
from typing import Annotated, ClassVar

from tsadbench.base import Cheap, Choice, Recording, Traits, Tune, detector, extra

with extra("vanilla-ae", "deep"):
    from torch import Tensor, nn

    from tsadbench_detectors.deep.batch_norm import BatchNorm
    from tsadbench_detectors.deep.network_detector import Size
    from tsadbench_detectors.deep.reconstructor import Reconstructor


@detector
class VanillaAE(Reconstructor):
    """Scores how far a row is from its reconstruction by a dense autoencoder: the sum of the absolute errors.

    Like the SKAB benchmark's, it sees single rows; with ``window`` above 1, the concatenated rows of a window.

    Parameters of training, and ``device``: see `NetworkDetector`.

    Parameters
    ----------
    window
        Rows that the network sees at once; the score is that of the last one.
    size
        "default", or "paper": hidden widths 5, 4, 2, 4, 5, as published for 8 sensors, for any number of values.

    Notes
    -----
    Equations
        ``r = decode(encode(x))``; the loss is the mean of ``|x - r|``, the score ``sum_i |x_i - r_i|`` of the last row.
        For n values the layers' widths are n, 5n/8, n/2, n/4, n/2, 5n/8, n, rounded up, and inside at least 5, 4 and 1.
        Batch normalisation and a ReLU follow each layer but the bottleneck and the last.
    Differences
        One dense autoencoder: the paper's is an ensemble of many, randomly thinned ones. The running moments of batch
        normalisation move by 0.1 per step: with the SKAB benchmark's 0.01 they have not settled when training ends.
        Widths grow with the number of sensors.
    Defaults
        Widths for 8 sensors, single rows, batches of 32, learning rate 5e-3, 40 epochs, a fifth of the rows held out
        and patience 3 are the SKAB benchmark's.

    References
    ----------
    J. Chen, S. Sathe, C. Aggarwal and D. Turaga, Outlier detection with autoencoder ensembles, SDM 2017.
    """

    traits: ClassVar[Traits] = Traits(
        family="reconstruction", stochastic=True, extra="deep", paper="Chen et al., SDM 2017"
    )

    window: Annotated[int, Tune(1, 20, log=True, alters_loss=True)] = 1
    size: Size = "default"
    epochs: Annotated[int, Cheap(8)] = 40
    batch_size: Annotated[int, Choice((32, 64, 128, 256))] = 32
    learning_rate: Annotated[float, Tune(1e-4, 1e-2, log=True)] = 5e-3
    held_out: float = 0.2

    def _build_network(self, recordings: Sequence[Recording]) -> nn.Module:
        return Network(self.window, recordings[0].n_sensors, self.size)

    def _loss(self, windows: Tensor) -> Tensor:
        return nn.functional.l1_loss(self.network_(windows), windows)


class Network(nn.Module):
    """Dense layers down to the bottleneck and up again, [batch, window, n_sensors] to the same."""

    def __init__(self, window: int, n_sensors: int, size: Size = "default") -> None:
        super().__init__()
        n = window * n_sensors
        wide, narrow, bottleneck = max(5, ceil(5 * n / 8)), max(4, ceil(n / 2)), max(1, ceil(n / 4))
        if size == "paper":
            wide, narrow, bottleneck = 5, 4, 2
        self.encoder = nn.Sequential(*_hidden_layers(n, wide, narrow), nn.Linear(narrow, bottleneck))
        self.decoder = nn.Sequential(*_hidden_layers(bottleneck, narrow, wide), nn.Linear(wide, n))

    def forward(self, windows: Tensor) -> Tensor:
        """Return the reconstruction."""
        decoded: Tensor = self.decoder(self.encoder(windows.flatten(1)))
        return decoded.view(windows.shape)


def _hidden_layers(*widths: int) -> list[nn.Module]:
    return [layer for pair in pairwise(widths) for layer in (nn.Linear(*pair), BatchNorm(pair[1]), nn.ReLU())]
