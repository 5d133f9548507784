"""MSCRED: reconstructs how strongly sensors move together, at several time scales, and scores what it misses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Annotated, ClassVar

from tsadbench.base import Cheap, Choice, Ge, Recording, Traits, Tune, detector, extra

with extra("mscred", "deep"):
    import torch
    from torch import Tensor, nn
    from torch.nn.functional import conv2d, linear, mse_loss, pad, selu

    from tsadbench_detectors.deep.network_detector import NetworkDetector, Size


@detector
class MSCRED(NetworkDetector):
    """Scores how far the sensors' signature matrices are from their reconstruction by a convolutional LSTM autoencoder.

    The three signature matrices of a row are one image with three channels. From five images, two rows apart, the
    network reconstructs the last, which ends with the row scored. Each of a pair's two sensors gets half of its error.

    Parameters of training, and ``device``: see `NetworkDetector`.

    Parameters
    ----------
    size
        "default", or "paper": the published scales, gap and channels where they are None.
    scale_short, scale_middle, scale_long
        Rows over which a signature matrix is averaged, at each of the three scales. None: 5, 10 and 20; at size "paper"
        10, 30 and 60.
    steps
        Images that the network sees at once.
    gap
        Rows from one image to the next. None: 2; at size "paper" 10.
    channels
        Channels of the first of the four levels; each further level has twice as many. None: 8; at size "paper" 32.
        Images have a pixel for each pair of sensors, so the cost grows with the square of the number of sensors.

    Notes
    -----
    Equations
        ``m_ij(t) = (1/w) sum_(d < w) x_i(t - d) x_j(t - d)`` for three lengths w. Each of four levels:
        ``X = SELU(conv(input))``; ``H = ConvLSTM(X)``; attention ``H' = sum_s a_s H_s`` with ``a = softmax_s(<H_s,
        H_last> / steps)``; ``output = deconv(H', SELU(output of the level below, whose input is X))``. The loss and the
        score are the mean over all entries of ``(M(t) - output)^2``.
    Differences
        Rows are scaled by mean and standard deviation of the training rows, not by the range of the scored ones. The
        last layer is linear, because SELU would bound its output from below. The LSTM has no peephole weights, which
        would tie it to one number of sensors. The authors count the squared errors above a limit chosen by data set.
    Defaults
        Size "paper" is the authors' code. The default sees 28 rows, about as many as other detectors here ("paper" sees
        100). For cost: a quarter of the channels, every fourth window (its neighbours are nearly the same), 12 epochs,
        and for these few steps Adam's learning rate 3e-3 instead of 2e-4.

    References
    ----------
    C. Zhang et al., A deep neural network for unsupervised anomaly detection and diagnosis in multivariate time series
    data, AAAI 2019.
    """

    traits: ClassVar[Traits] = Traits(
        family="reconstruction",
        stochastic=True,
        extra="deep",
        paper="Zhang et al., AAAI 2019 (MSCRED)",
        differs=("schedule differs",),
    )
    paper: ClassVar[Mapping[str, int]] = {
        "scale_short": 10,
        "scale_middle": 30,
        "scale_long": 60,
        "gap": 10,
        "channels": 32,
    }

    window: int = field(default=0, init=False)  # it follows from other parameters: `_window`
    size: Size = "default"
    scale_short: Annotated[int | None, Ge(1), Choice((None, 3, 7), alters_loss=True), Cheap(2)] = None
    scale_middle: Annotated[int | None, Ge(1), Choice((None, 8, 15), alters_loss=True), Cheap(3)] = None
    scale_long: Annotated[int | None, Ge(1), Choice((None, 16, 30), alters_loss=True), Cheap(4)] = None
    steps: Annotated[int, Ge(1), Tune(3, 7), Cheap(3)] = 5
    gap: Annotated[int | None, Ge(1), Choice((None, 1, 3, 4))] = None
    channels: Annotated[int | None, Ge(1), Choice((None, 4, 16)), Cheap(2)] = None
    stride: int = 4
    epochs: Annotated[int, Cheap(2)] = 12
    batch_size: Annotated[int, Choice((32, 64, 128))] = 32
    learning_rate: Annotated[float, Tune(1e-4, 1e-2, log=True)] = 3e-3

    @property
    def _scales(self) -> tuple[int, int, int]:
        """Rows of the signature matrices, shortest first."""
        return self._given_or("scale_short", 5), self._given_or("scale_middle", 10), self._given_or("scale_long", 20)

    @property
    def _window(self) -> int:
        """Rows of the longest scale, plus those from the first image to the last."""
        return self._scales[-1] + (self.steps - 1) * self._given_or("gap", 2)

    def _check(self, sensors: tuple[str, ...]) -> None:
        super()._check(sensors)
        short, middle, long = self._scales
        self._require(short < middle, "scale_middle", f"above scale_short, {short}")
        self._require(middle < long, "scale_long", f"above scale_middle, {middle}")

    def _build_network(self, recordings: Sequence[Recording]) -> nn.Module:  # noqa: ARG002 - any number of sensors
        return network(len(self._scales), self._given_or("channels", 8))

    def _loss(self, windows: Tensor) -> Tensor:
        images = self._images(windows)
        return mse_loss(self.network_(images), images[-1])

    def _row_terms(self, windows: Tensor) -> Tensor:
        images = self._images(windows)
        # In double precision: the square of a far outlier's product exceeds the range of float32.
        missed = (images[-1] - self.network_(images)).double()
        errors = missed.square().mean(dim=1) / windows.shape[2] ** 2
        return torch.as_tensor((errors.sum(dim=1) + errors.sum(dim=2)) / 2)

    def _images(self, windows: Tensor) -> Tensor:
        """Return the signature matrices [steps, batch, scales, n_sensors, n_sensors] of windows of scaled rows."""
        ends = range(self._scales[-1], self._window + 1, self._given_or("gap", 2))
        parts = [[windows[:, end - scale : end] for scale in self._scales] for end in ends]
        images = [torch.stack([part.mT @ part / part.shape[1] for part in scales], dim=1) for scales in parts]
        return torch.stack(images)


def network(n_scales: int, channels: int) -> Level:
    """Return the outermost of four levels, for images of n_scales channels; each level inside has twice as many."""
    level = Level(4 * channels, 8 * channels, 2, 2, below=None)
    level = Level(2 * channels, 4 * channels, 2, 2, below=level)
    level = Level(channels, 2 * channels, 3, 2, below=level)
    return Level(n_scales, channels, 3, 1, below=level)


class Level(nn.Module):
    """Reconstructs the last of several images by a convolution, a recurrent network and a transposed convolution.

    ``outer`` and ``inner`` are the channels of the images and of the images inside, which the level ``below``
    reconstructs. The stride divides the images' size, rounded up.
    """

    def __init__(self, outer: int, inner: int, kernel_size: int, stride: int, below: Level | None) -> None:
        super().__init__()
        self.stride = stride
        self.down = nn.Conv2d(outer, inner, kernel_size, stride)
        self.recurrent = ConvLSTM(inner)
        self.below = below
        n_inside = inner if below is None else 2 * inner
        self.up = nn.ConvTranspose2d(n_inside, outer, kernel_size, stride, padding=(kernel_size - 1) // 2)

    def forward(self, images: Tensor) -> Tensor:
        """Return the last image, [batch, outer, height, width], of images [steps, batch, outer, height, width]."""
        height, width = images.shape[-2:]
        inside = selu(convolved(images.flatten(0, 1), self.down))
        inside = inside.view(*images.shape[:2], *inside.shape[1:])
        mean = attended(self.recurrent(inside))
        if self.below is not None:
            mean = torch.cat([mean, selu(self.below(inside))], dim=1)
        # The first convolution rounded an odd size up.
        size = [self.stride * mean.shape[-2], self.stride * mean.shape[-1]]
        reconstructed: Tensor = self.up(mean, output_size=size)[..., :height, :width]
        return reconstructed


class ConvLSTM(nn.Module):
    """An LSTM with convolutions instead of matrix products, starting from the state 0 (Shi et al. 2015)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        # Output channels in four blocks: input gate, forget gate, candidate, output gate.
        self.from_input = nn.Conv2d(channels, 4 * channels, 2)
        self.from_state = nn.Conv2d(channels, 4 * channels, 2, bias=False)

    def forward(self, images: Tensor) -> Tensor:
        """Return the states after every step, of the images' shape [steps, batch, channels, height, width]."""
        from_inputs = convolved(images.flatten(0, 1), self.from_input).chunk(len(images))
        cell = torch.zeros_like(images[0])
        states: list[Tensor] = []
        for from_input in from_inputs:
            gates = from_input + convolved(states[-1], self.from_state) if states else from_input
            write, forget, candidate, read = gates.chunk(4, dim=1)
            cell = forget.sigmoid() * cell + write.sigmoid() * candidate.tanh()
            states.append(read.sigmoid() * cell.tanh())
        return torch.stack(states)


def attended(states: Tensor) -> Tensor:
    """Return the mean [batch, ...] of states [steps, batch, ...], weighted by how much they resemble the last one."""
    flat = states.flatten(2)
    likeness = (flat * flat[-1]).sum(dim=2, keepdim=True) / len(states)
    return (likeness.softmax(dim=0) * flat).sum(dim=0).view(states.shape[1:])


def convolved(images: Tensor, convolution: nn.Conv2d) -> Tensor:
    """Return the convolution of images padded with zeros, one more at the end if their number is odd.

    Thus only the stride divides the images' size. On a CPU, a matrix product is faster than convolving small images.
    """
    size, weight, bias = convolution.kernel_size[0], convolution.weight, convolution.bias
    before, after = (size - 1) // 2, size // 2
    if images.shape[-2:] == (1, 1):
        # All but one of the kernel's weights meet zeros.
        return linear(images[..., 0, 0], weight[..., before, before], bias)[..., None, None]
    images = pad(images, (before, after, before, after))
    if convolution.stride[0] == size:
        patches = images.unfold(2, size, size).unfold(3, size, size).movedim(1, 3).flatten(3)
        return linear(patches, weight.flatten(1), bias).movedim(3, 1)
    return conv2d(images, weight, bias, convolution.stride)
