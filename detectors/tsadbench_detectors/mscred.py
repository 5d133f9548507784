"""MSCRED: reconstructs how strongly sensors move together, at several time scales, and scores what it misses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from tsadbench.base import Choice, FloatArray, Recording, Space, Traits, Tune, extra

with extra("mscred", "deep"):
    import torch
    from torch import Tensor, nn

    from tsadbench_detectors.deep.conv_lstm import network
    from tsadbench_detectors.deep.sizes import Size, SizedNetwork, Width


class MSCRED(SizedNetwork):
    """Scores how far the sensors' signature matrices are from their reconstruction by a convolutional LSTM autoencoder.

    Entry (i, j) of a signature matrix is the mean of x_i * x_j over the last 5, 10 or 20 rows: the three matrices are
    one image with three channels. From five images, two rows apart, the network reconstructs the last, which ends with
    the row scored. The loss is the mean squared error of that image, and so is the score; a pair's error counts half
    for either sensor.

    Parameters of training, and ``device``: see `NetworkDetector`.

    Parameters
    ----------
    size
        "default", or "paper": the published scales, gap and channels, as far as they are None. What is given counts at
        either size.
    scale_short, scale_middle, scale_long
        Rows that a signature matrix is the mean of, at each of the three scales. None: 5, 10 and 20; at size "paper"
        10, 30 and 60.
    steps
        Images that the network sees at once.
    gap
        Rows from one image to the next. None: 2; at size "paper" 10.
    channels
        Of the first of the four levels; each further level has twice as many as the one before. None: 8; at size
        "paper" 32. Images have a pixel for each pair of sensors, which grow with the plant.

    Notes
    -----
    Equations
        ``m_ij(t) = (1/w) sum_(d < w) x_i(t - d) x_j(t - d)`` for three lengths w; the loss and the score are the mean
        over all entries of ``(M(t) - reconstruction)^2``, and sensor i's contribution is half of the errors of its row
        and its column.
    Differences
        Rows are scaled by mean and standard deviation of the training rows, never by the range of the scored ones. The
        last layer is linear, because SELU would bound its output from below. The score is the mean of the squared
        errors; the authors count those above a limit, which each data set would need anew.
    Defaults
        Size "paper" is the authors' code: scales 10, 30 and 60, gap 10, 32 channels. The default sees 28 rows, as other
        detectors here see 30 ("paper" sees 100). By cost: a quarter of the channels, every fourth window (its
        neighbours are nearly the same), 12 epochs, and Adam's learning rate 3e-3 instead of 2e-4, so that these
        suffice.

    References
    ----------
    C. Zhang et al., A deep neural network for unsupervised anomaly detection and diagnosis in multivariate time series
    data, AAAI 2019.
    """

    widths: ClassVar[Mapping[str, Width]] = {
        "scale_short": Width(5, paper=10),
        "scale_middle": Width(10, paper=30),
        "scale_long": Width(20, paper=60),
        "gap": Width(2, paper=10),
        "channels": Width(8, paper=32),
    }
    traits: ClassVar[Traits] = Traits(
        family="reconstruction", stochastic=True, extra="deep", paper="Zhang et al., AAAI 2019 (MSCRED)"
    )

    def __init__(
        self,
        *,
        size: Size = "default",
        scale_short: int | None = None,
        scale_middle: int | None = None,
        scale_long: int | None = None,
        steps: int = 5,
        gap: int | None = None,
        channels: int | None = None,
        stride: int = 4,
        epochs: int = 12,
        min_steps: int = 500,
        max_steps: int | None = None,
        batch_size: int = 32,
        learning_rate: float = 3e-3,
        held_out: float = 0.1,
        patience: int = 3,
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        self.size = size
        self.scale_short = scale_short
        self.scale_middle = scale_middle
        self.scale_long = scale_long
        self.steps = steps
        self.gap = gap
        self.channels = channels
        self.stride = stride
        self.epochs = epochs
        self.min_steps = min_steps
        self.max_steps = max_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.held_out = held_out
        self.patience = patience
        self.seed = seed
        self.device = device

    @property
    def scales(self) -> tuple[int, int, int]:
        """Rows of the signature matrices, shortest first."""
        return self._width("scale_short"), self._width("scale_middle"), self._width("scale_long")

    @property
    def window(self) -> int:  # type: ignore[override]  # here it follows from other parameters
        """Rows that a score sees: the first image's longest scale, and the rows from there to the last image."""
        return self._width("scale_long") + (self.steps - 1) * self._width("gap")

    @classmethod
    def search_space(cls) -> Mapping[str, Space]:  # noqa: D102
        return {
            "scale_short": Choice((None, 3, 7), alters_loss=True),
            "scale_middle": Choice((None, 8, 15), alters_loss=True),
            "scale_long": Choice((None, 16, 30), alters_loss=True),
            "steps": Tune(3, 7),
            "gap": Choice((None, 1, 3, 4)),
            "channels": Choice((None, 4, 16)),
            "batch_size": Choice((32, 64, 128)),
            "learning_rate": Tune(1e-4, 1e-2, log=True),
        }

    @classmethod
    def test_params(cls) -> dict[str, object]:  # noqa: D102
        scales = {"scale_short": 2, "scale_middle": 3, "scale_long": 4}
        return {**scales, "steps": 3, "channels": 2, "epochs": 2, "min_steps": 1}

    def _check(self, sensors: tuple[str, ...]) -> None:
        self._require_integer("steps", at_least=1)
        super()._check(sensors)
        short, middle, long = self.scales
        self._require(short < middle, "scale_middle", f"above scale_short, {short}")
        self._require(middle < long, "scale_long", f"above scale_middle, {middle}")

    def _build_network(self, recordings: Sequence[Recording]) -> nn.Module:  # noqa: ARG002 - any number of sensors
        return network(len(self.scales), self._width("channels"))

    def _loss(self, windows: Tensor) -> Tensor:
        # The first step's images of all windows, then the second one's.
        ends = range(self._width("scale_long"), self.window + 1, self._width("gap"))
        images = self._images(windows, ends).transpose(0, 1).flatten(0, 1)
        return nn.functional.mse_loss(self._reconstructed(images, len(windows)), images[-len(windows) :])

    def _reconstructed(self, images: Tensor, shift: int) -> Tensor:
        """Return the last image of every window, for ``shift`` images from one of its steps to the next."""
        reconstructed: Tensor = self.network_(images, self.steps, shift)
        return reconstructed

    def _images(self, rows: Tensor, ends: Sequence[int]) -> Tensor:
        """Return the signature matrices [batch, n_ends, scales, n_sensors, n_sensors] of scaled rows.

        Each is summed from its own rows. Sums over a whole recording would be faster, but after one extreme row all
        later ones would lose precision.

        Parameters
        ----------
        rows
            [batch, length, n_sensors].
        ends
            After so many rows, an image ends.
        """
        batch, length, n_sensors = rows.shape
        products = (rows[..., None] * rows[:, :, None]).view(batch, length, -1)
        age = torch.tensor(ends, device=rows.device)[:, None] - 1 - torch.arange(length, device=rows.device)
        means = torch.stack([((age >= 0) & (age < scale)) / scale for scale in self.scales], dim=1).to(rows.dtype)
        images = means.flatten(0, 1) @ products
        return images.view(batch, len(ends), len(self.scales), n_sensors, n_sensors)

    def _contributions(self, recording: Recording) -> FloatArray:
        contributions = np.empty(recording.values.shape)
        for first, windows in self._scored_windows(recording, self.window, before=self.window - 1):
            # Each image once, though it belongs to as many windows as these have steps.
            rows = torch.cat([windows[0], windows[1:, -1]])
            images = self._images(rows[None], range(self._width("scale_long"), len(rows) + 1))[0]
            # In double precision: the square of a far outlier's product exceeds the range of float32.
            missed = (images[-len(windows) :] - self._reconstructed(images, self._width("gap"))).double()
            errors = missed.square().mean(dim=1) / recording.n_sensors**2
            contributions[self.window - 1 + first] = ((errors.sum(dim=1) + errors.sum(dim=2)) / 2).cpu().numpy()
        return contributions
