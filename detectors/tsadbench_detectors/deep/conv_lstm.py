"""An autoencoder for short series of images: convolutions, an LSTM whose state is an image, attention over steps.

Images are [n_images, channels, height, width], of all windows together: windows of ``n_steps`` images have ``shift``
images between their steps, so that step s of all windows is one slice, the images from ``s * shift`` on. For windows
that share no image, ``shift`` is their number; of windows that overlap, every image passes the convolutions once.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, pad, selu

from tsadbench_detectors.deep import column_products

# A network that learns from larger images than these, by their height and width, takes PyTorch's convolutions: the
# products' columns would take several gigabytes.
_LARGEST = 64


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
        self.up = GrowingConv2d(n_inside, outer, kernel_size, stride, padding=(kernel_size - 1) // 2)

    def forward(self, images: Tensor, n_steps: int, shift: int) -> Tensor:
        """Return the last image of every window, [n_windows, outer, height, width].

        Parameters
        ----------
        images
            [n_images, outer, height, width], where n_images = n_windows + (n_steps - 1) * shift.
        n_steps
            Images of a window.
        shift
            Images from one step of a window to the next.
        """
        if torch.is_grad_enabled() and images.device.type == "cpu" and max(images.shape[-2:]) <= _LARGEST:
            return self.by_products(images.permute(1, 2, 3, 0).contiguous(), n_steps, shift).permute(3, 0, 1, 2)
        return self.by_convolutions(images, n_steps, shift)

    def by_convolutions(self, images: Tensor, n_steps: int, shift: int) -> Tensor:
        """Return what `forward` does, by PyTorch's convolutions: the faster way without a gradient."""
        inside = selu(self.down(images))
        states = attended(self.recurrent(inside, n_steps, shift))
        if self.below is not None:
            states = torch.cat([states, selu(self.below.by_convolutions(inside, n_steps, shift))], dim=1)
        grown: Tensor = self.up(states, images.shape[-2:])
        return grown

    def by_products(self, images: Tensor, n_steps: int, shift: int) -> Tensor:
        """Return what `forward` does, for images [outer, height, width, n_images] as `column_products` has them.

        The faster way with a gradient, the more so the smaller the images.
        """
        down, recurrent, up = self.down, self.recurrent, self.up
        inside = selu(column_products.convolved(images, down.weight, down.get_parameter("bias"), down.stride[0]))
        from_input, from_state = recurrent.from_input, recurrent.from_state
        mean = column_products.attended_states(
            inside, from_input.weight, from_state.weight, from_input.get_parameter("bias"), n_steps, shift
        )
        if self.below is not None:
            mean = torch.cat([mean, selu(self.below.by_products(inside, n_steps, shift))])
        return column_products.grown(
            mean, up.weight, up.get_parameter("bias"), up.stride[0], (images.shape[1], images.shape[2])
        )


class SameConv2d(nn.Conv2d):
    """A convolution for which only the stride decides the size: it gives ceil(size / stride) for any kernel.

    PyTorch's own ``padding="same"`` has stride 1 only. Of an even kernel, the surplus row and column are at the end.
    """

    def forward(self, images: Tensor) -> Tensor:
        """Return [n_images, out_channels, ceil(height / stride), ceil(width / stride)]."""
        if images.shape[-2:] == (1, 1):
            product = linear(images.flatten(1), _own_weight(self.weight), self.bias)
            return product[..., None, None]
        if self.kernel_size == self.stride == (2, 2):
            product = linear(_patches(images), self.weight.flatten(1), self.bias)
            return product.permute(0, 3, 1, 2).contiguous()
        around = _padding(self.kernel_size[0])
        return super().forward(pad(images, (*around, *around)))


class GrowingConv2d(nn.ConvTranspose2d):
    """The way back of `SameConv2d`: a transposed convolution that gives images of the size that was divided.

    For a kernel of an odd size, or of the stride's.
    """

    def forward(self, images: Tensor, size: torch.Size) -> Tensor:  # type: ignore[override]  # PyTorch has it optional
        """Return images [n_images, out_channels, *size]; an odd size had been rounded up on the way in."""
        n_images, _, height, width = images.shape
        if self.kernel_size == self.stride == (2, 2):
            patches = linear(images.permute(0, 2, 3, 1), self.weight.flatten(1).t())
            by_place = patches.view(n_images, height, width, self.out_channels, 2, 2).permute(0, 3, 1, 4, 2, 5)
            grown = by_place.reshape(n_images, self.out_channels, 2 * height, 2 * width)
            grown = grown + self.get_parameter("bias")[:, None, None]
        else:
            grown = super().forward(images, output_size=[self.stride[0] * height, self.stride[1] * width])
        return grown[..., : size[0], : size[1]]


def _patches(images: Tensor) -> Tensor:
    """Return the squares of two by two pixels [n_images, height, width, 4 * channels]; a missing pixel is 0.

    A kernel that moves by its own size meets each of them once: its product is faster than PyTorch's convolution of
    small images.
    """
    height, width = (size + size % 2 for size in images.shape[-2:])
    if images.shape[-2:] != (height, width):
        images = pad(images, (0, width - images.shape[-1], 0, height - images.shape[-2]))
    by_place = images.view(*images.shape[:2], height // 2, 2, width // 2, 2)
    return by_place.permute(0, 2, 4, 1, 3, 5).flatten(3)


def _padding(kernel_size: int) -> tuple[int, int]:
    """Return how many zeros are before the first and after the last row, and column, of an image."""
    return (kernel_size - 1) // 2, kernel_size // 2


def _own_weight(weight: Tensor) -> Tensor:
    """Return the weights that meet an image of a single pixel, [n_out, n_in]: the others meet the zeros around it."""
    own = _padding(weight.shape[-1])[0]
    return weight[:, :, own, own]


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

    def forward(self, images: Tensor, n_steps: int, shift: int) -> Tensor:
        """Return the windows' states after every step, [n_steps, n_windows, hidden_channels, height, width].

        Parameters
        ----------
        images, n_steps, shift
            As for `Level`.
        """
        from_input = self.from_input(images)
        n_windows = len(images) - (n_steps - 1) * shift
        states: list[Tensor] = []
        cell: Tensor | None = None
        for step in range(n_steps):
            gates = from_input[step * shift : step * shift + n_windows]
            if states:
                gates = self.from_state(states[-1]) + gates
            write, forget, candidate, read = gates.chunk(4, dim=1)
            given = write.sigmoid() * _tanh(candidate)
            cell = given if cell is None else given.addcmul(forget.sigmoid(), cell)
            states.append(read.sigmoid() * _tanh(cell))
        return torch.stack(states)


def _tanh(values: Tensor) -> Tensor:
    """Return the hyperbolic tangent: PyTorch's own takes as long as ten of its sigmoids."""
    return (values * 2).sigmoid() * 2 - 1


def attended(states: Tensor) -> Tensor:
    """Return the mean [n_windows, ...] of the steps' states, weighted by how much they resemble the last one.

    Parameters
    ----------
    states
        [n_steps, n_windows, ...].

    Notes
    -----
    Weights are the softmax over the steps of ``<last state, state> / n_steps``.
    """
    flat = states.flatten(2)
    likeness = (flat * flat[-1]).sum(dim=2, keepdim=True) / len(states)
    weighted = (likeness.softmax(dim=0) * flat).sum(dim=0)
    return weighted.view(states.shape[1:])
