"""An autoencoder for short series of images: convolutions, an LSTM whose state is an image, attention over steps."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import pad, selu


def network(n_scales: int, channels: int) -> Level:
    """Return the outermost of four levels, whose output is linear.

    Parameters
    ----------
    n_scales
        Channels of the images.
    channels
        Channels inside the first level; twice as many inside each further one.
    """
    widths = [n_scales, *(channels * 2**level for level in range(4))]
    level = Level(widths[3], widths[4], 2, 2, below=None)
    level = Level(widths[2], widths[3], 2, 2, below=level)
    level = Level(widths[1], widths[2], 3, 2, below=level)
    return Level(widths[0], widths[1], 3, 1, below=level)


class Level(nn.Module):
    """Reconstructs the last of several images: a convolution, then the states of a recurrence, then the way back.

    The states are averaged by how much they resemble the last one; below them, another level does the same with the
    images that the convolution gave. Images may have any size.

    Parameters
    ----------
    outer, inner
        Channels of the images, and of the images inside.
    kernel_size, stride
        Of the convolution; the stride divides the images' size, rounded up.
    below
        The level inside this one, if any.
    """

    def __init__(self, outer: int, inner: int, kernel_size: int, stride: int, below: Level | None) -> None:
        super().__init__()
        self.down = SameConv2d(outer, inner, kernel_size, stride)
        self.recurrent = ConvLSTM(inner, inner)
        self.below = below
        n_inside = inner if below is None else 2 * inner
        self.up = nn.ConvTranspose2d(n_inside, outer, kernel_size, stride, padding=(kernel_size - 1) // 2)

    def forward(self, images: Tensor) -> Tensor:
        """Return [batch, outer, height, width] for images [batch, steps, outer, height, width]."""
        n_windows, n_steps, _, height, width = images.shape
        inside = selu(self.down(images.flatten(0, 1)))
        inside = inside.view(n_windows, n_steps, *inside.shape[1:])
        states = attended(self.recurrent(inside))
        if self.below is not None:
            states = torch.cat([states, selu(self.below(inside))], dim=1)
        # An odd size was rounded up on the way in.
        grown: Tensor = self.up(states, output_size=[self.up.stride[0] * size for size in states.shape[-2:]])
        return grown[..., :height, :width]


class SameConv2d(nn.Conv2d):
    """A convolution for which only the stride decides the size: it gives ceil(size / stride) for any kernel.

    PyTorch's own ``padding="same"`` has stride 1 only. Of an even kernel, the surplus row and column are at the end.
    """

    def forward(self, images: Tensor) -> Tensor:
        """Return [batch, out_channels, ceil(height / stride), ceil(width / stride)]."""
        before, after = (self.kernel_size[0] - 1) // 2, self.kernel_size[0] // 2
        return super().forward(pad(images, (before, after, before, after)))


class ConvLSTM(nn.Module):
    """One layer of long short-term memory with convolutions for matrix products, from the state 0 (Shi et al. 2015).

    Without the peephole weights, which would tie it to one size of image.

    Parameters
    ----------
    input_channels
        Channels of the images.
    hidden_channels
        Channels of the state.
    kernel_size
        Of the convolutions.
    """

    def __init__(self, input_channels: int, hidden_channels: int, kernel_size: int = 2) -> None:
        super().__init__()
        # Output channels in four blocks: input gate, forget gate, candidate, output gate.
        self.from_input = SameConv2d(input_channels, 4 * hidden_channels, kernel_size)
        self.from_state = SameConv2d(hidden_channels, 4 * hidden_channels, kernel_size, bias=False)

    def forward(self, images: Tensor) -> Tensor:
        """Return the state after every step, [batch, n_steps, hidden_channels, height, width].

        Parameters
        ----------
        images
            [batch, n_steps, input_channels, height, width].
        """
        n_sequences, n_steps = images.shape[:2]
        from_input: Tensor = self.from_input(images.flatten(0, 1))
        state: Tensor | None = None
        cell: Tensor | None = None
        states = []
        for gates in from_input.view(n_sequences, n_steps, *from_input.shape[1:]).unbind(dim=1):
            state, cell = _step(gates if state is None else gates + self.from_state(state), cell)
            states.append(state)
        return torch.stack(states, dim=1)


def _step(gates: Tensor, cell: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return the state and the cell after a step; the cell before the first step is 0."""
    write, keep, candidate, read = gates.chunk(4, dim=1)
    written = write.sigmoid() * candidate.tanh()
    cell = written if cell is None else keep.sigmoid() * cell + written
    return read.sigmoid() * cell.tanh(), cell


def attended(states: Tensor) -> Tensor:
    """Return the mean [batch, ...] of the steps' states [batch, steps, ...], weighted by likeness to the last one.

    Weights are the softmax over the steps of ``<last state, state> / steps``.
    """
    flat = states.flatten(2)
    likeness = (flat @ flat[:, -1, :, None]).squeeze(-1) / states.shape[1]
    weighted = likeness.softmax(dim=1)[:, None] @ flat
    return weighted.view(len(states), *states.shape[2:])
