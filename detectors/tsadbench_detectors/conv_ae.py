"""Convolutional autoencoder: two strided convolutions over time and their transposes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar

from tsadbench.base import Cheap, Choice, Ge, Lt, Recording, Traits, Tune, detector, extra

with extra("conv-ae", "deep"):
    from torch import Tensor, nn

    from tsadbench_detectors.deep.reconstructor import Reconstructor

_KERNEL = 7


@detector
class ConvAE(Reconstructor):
    """Scores how far a window's last row is from its reconstruction by a convolutional autoencoder.

    Parameters of training, and ``device``: see `NetworkDetector`.

    Parameters
    ----------
    window
        Rows that the network sees at once.
    shared_output
        Whether all sensors share one output channel, as in the SKAB benchmark's network (an oversight there): it learns
        one common curve, and the score is the distance of the sensors from it.
    dropout
        Share of the activations that are dropped in training.

    Notes
    -----
    Equations
        ``r = decode(encode(window))`` with ``encode``: two convolutions over time (kernel 7, stride 2, ReLU) with 32
        and 16 channels, or 4 and 2 for each sensor if that is more, and dropout between; ``decode``: their transposes.
        The loss is the mean of ``(x - r)^2``, the score ``sum_i |x_i - r_i|`` of the window's last row.
    Differences
        The SKAB benchmark's network has one output channel for all sensors (``shared_output=on``): its optimum is the
        mean of the sensors' z-scores, which scores as well without training. There, a row is flagged if all windows
        around it are, which looks ahead; here its score is its own error.
    Defaults
        32 and 16 channels, kernel 7, dropout 0.2, 100 epochs, patience 5 and a tenth of the windows held out are the
        example's. The window of 30 rows (not 60) is this project's; batches of 128 (not 32) for cost.

    References
    ----------
    P. Vijay, Timeseries anomaly detection using an autoencoder, keras.io, 2020.
    """

    traits: ClassVar[Traits] = Traits(
        family="reconstruction", stochastic=True, extra="deep", paper="Vijay, keras.io, 2020"
    )

    window: Annotated[int, Tune(16, 60, log=True, alters_loss=True), Cheap(8)] = 30
    shared_output: bool = False
    dropout: Annotated[float, Ge(0), Lt(1), Tune(0.0, 0.5)] = 0.2
    epochs: Annotated[int, Cheap(2)] = 100
    batch_size: Annotated[int, Choice((32, 64, 128, 256))] = 128
    patience: int = 5

    def _build_network(self, recordings: Sequence[Recording]) -> nn.Module:
        n_sensors = recordings[0].n_sensors
        return Network(n_sensors, 1 if self.shared_output else n_sensors, self.dropout)

    def _loss(self, windows: Tensor) -> Tensor:
        return nn.functional.mse_loss(self.network_(windows).expand_as(windows), windows)


class Network(nn.Module):
    """Maps [batch, window, n_inputs] to [batch, window, n_outputs]."""

    def __init__(self, n_inputs: int, n_outputs: int, dropout: float) -> None:
        super().__init__()
        same = _KERNEL // 2
        wide, narrow = max(32, 4 * n_inputs), max(16, 2 * n_inputs)
        self.down_1 = nn.Conv1d(n_inputs, wide, _KERNEL, stride=2, padding=same)
        self.down_2 = nn.Conv1d(wide, narrow, _KERNEL, stride=2, padding=same)
        self.up_2 = nn.ConvTranspose1d(narrow, narrow, _KERNEL, stride=2, padding=same)
        self.up_1 = nn.ConvTranspose1d(narrow, wide, _KERNEL, stride=2, padding=same)
        self.output = nn.ConvTranspose1d(wide, n_outputs, _KERNEL, padding=same)
        self.dropout = nn.Dropout(dropout)

    def forward(self, windows: Tensor) -> Tensor:
        """Return the reconstruction."""
        whole = windows.transpose(1, 2)
        half = self.dropout(self.down_1(whole).relu())
        quarter = self.down_2(half).relu()
        half_again = self.dropout(self.up_2(quarter, output_size=half.shape[-1:]).relu())
        whole_again = self.up_1(half_again, output_size=whole.shape[-1:]).relu()
        reconstruction: Tensor = self.output(whole_again)
        return reconstruction.transpose(1, 2)
