"""The gradient of convolutions and of the convolutional LSTM by matrix products, for small images on a CPU.

PyTorch's convolutions reach a fifth of the processor's speed on images of a few pixels. Here, images are [channels,
height, width, n_images], the number of the image last: every channel of a state, and every gate of the recurrence, is
then a contiguous block, whatever the images' size. A convolution is one product with columns, [kernel height, kernel
width, channels, height, width, n_images]: what the kernel sees at every place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable
from torch.nn.functional import pad

from tsadbench_detectors.deep.activation_gradients import sigmoid_backward, tanh_backward
from tsadbench_detectors.deep.linear import linear


def convolved(images: Tensor, weight: Tensor, bias: Tensor, stride: int) -> Tensor:
    """Return what `SameConv2d` with these weights gives, [out_channels, ceil(height / stride), ..., n_images]."""
    (tall, wide), before = _seen(weight.shape, images.shape)
    kernel = weight[:, :, tall, wide]
    found: Tensor = _Convolution.apply(images, kernel, bias, stride, before)  # type: ignore[no-untyped-call]
    return found


def grown(images: Tensor, weight: Tensor, bias: Tensor, stride: int, size: tuple[int, int]) -> Tensor:
    """Return what `GrowingConv2d` with these weights gives, [out_channels, *size, n_images]."""
    before = (weight.shape[-1] - 1) // 2
    found: Tensor = _Growth.apply(images, weight, bias, stride, before, size)  # type: ignore[no-untyped-call]
    return found


def attended_states(
    images: Tensor, input_weight: Tensor, state_weight: Tensor, bias: Tensor, n_steps: int, shift: int
) -> Tensor:
    """Return what `attended` makes of the states of `ConvLSTM` with these weights, [hidden, ..., n_windows]."""
    found: Tensor = _Recurrence.apply(images, input_weight, state_weight, bias, n_steps, shift)  # type: ignore[no-untyped-call]
    return found


_Pair = tuple[int, int]


def _seen(of_weight: torch.Size, shape: torch.Size) -> tuple[tuple[slice, slice], _Pair]:
    """Return a kernel's rows and columns that ever meet a pixel, and how many of them precede its own."""
    before, after = (of_weight[-1] - 1) // 2, of_weight[-1] // 2
    above, left = (min(before, size - 1) for size in shape[1:3])
    below, right = (min(after, size - 1) for size in shape[1:3])
    return (slice(before - above, before + below + 1), slice(before - left, before + right + 1)), (above, left)


def _matrix(weight: Tensor) -> Tensor:
    """Return a convolution's weights [n_out, n_in, ...] as the matrix by which columns are multiplied."""
    return weight.permute(0, 2, 3, 1).flatten(1).contiguous()


def _padded(images: Tensor, kernel: _Pair, before: _Pair) -> Tensor:
    """Return images with the zeros around them that the kernel meets."""
    if kernel == (1, 1):
        return images
    (above, left), (height, width) = before, kernel
    return pad(images, (0, 0, left, width - 1 - left, above, height - 1 - above))


def _columns(padded: Tensor, kernel: _Pair, stride: int, size: _Pair) -> Tensor:
    """Return a view of padded images as columns; ``size`` is the images' after the convolution."""
    of_channel, of_row, of_pixel, of_image = padded.stride()
    shape = (*kernel, len(padded), *size, padded.shape[-1])
    return padded.as_strided(
        shape, (of_row, of_pixel, of_channel, stride * of_row, stride * of_pixel, of_image), padded.storage_offset()
    )


def _folded(columns: Tensor, before: _Pair, stride: int, size: _Pair) -> Tensor:
    """Return the sum, [channels, *size, n_images], of all columns that saw a pixel; may overwrite the columns."""
    taps = [row.unbind() for row in columns.unbind()]
    own = before if stride == 1 else None
    folded = columns.new_zeros(columns.shape[2], *size, columns.shape[-1]) if own is None else taps[own[0]][own[1]]
    for i, above, rows in _met(columns.shape[0], before[0], stride, columns.shape[3], size[0]):
        for j, left, places in _met(columns.shape[1], before[1], stride, columns.shape[4], size[1]):
            if (i, j) != own:
                folded[:, above, left].add_(taps[i][j][:, rows, places])
    return folded


def _met(kernel: int, before: int, stride: int, n_places: int, size: int) -> Iterator[tuple[int, slice, slice]]:
    """Yield each row of a kernel, the images' rows that it meets, and at which of the kernel's places it does."""
    for row in range(kernel):
        shift = row - before
        first = -(-max(0, -shift) // stride)
        last = min(n_places - 1, (size - 1 - shift) // stride)
        if first <= last:
            met = slice(stride * first + shift, stride * last + shift + 1, stride)
            yield row, met, slice(first, last + 1)


class _Convolution(torch.autograd.Function):
    """`convolved`, for a kernel that meets the images."""

    @staticmethod
    def forward(ctx: FunctionCtx, images: Tensor, kernel: Tensor, bias: Tensor, stride: int, before: _Pair) -> Tensor:
        taps = (kernel.shape[2], kernel.shape[3])
        size = (-(-images.shape[1] // stride), -(-images.shape[2] // stride))
        columns = _columns(_padded(images, taps, before), taps, stride, size).reshape(
            -1, size[0] * size[1] * images.shape[-1]
        )
        matrix = _matrix(kernel)
        product = linear(matrix, columns.t()).add_(bias[:, None])
        ctx.save_for_backward(columns, matrix)
        ctx.of = images.shape, kernel.shape, stride, before, size  # type: ignore[attr-defined]
        return product.view(-1, *size, images.shape[-1])

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, by_product: Tensor) -> tuple[Tensor | None, Tensor, Tensor, None, None]:
        columns, matrix = ctx.saved_tensors  # type: ignore[attr-defined]
        shape, of_kernel, stride, before, size = ctx.of  # type: ignore[attr-defined]
        flat = by_product.contiguous().view(len(matrix), -1)
        by_matrix = linear(flat, columns)
        by_kernel = by_matrix.view(of_kernel[0], *of_kernel[2:], of_kernel[1]).permute(0, 3, 1, 2)
        by_images = None
        if ctx.needs_input_grad[0]:  # type: ignore[attr-defined]
            by_columns = linear(matrix.t().contiguous(), flat.t())
            by_images = _folded(by_columns.view(*of_kernel[2:], shape[0], *size, shape[-1]), before, stride, shape[1:3])
        return by_images, by_kernel, flat.sum(dim=1), None, None


class _Growth(torch.autograd.Function):
    """`grown`: a convolution's gradient by its images, whose own gradient is that convolution."""

    @staticmethod
    def forward(
        ctx: FunctionCtx, images: Tensor, weight: Tensor, bias: Tensor, stride: int, before: int, size: _Pair
    ) -> Tensor:
        # [in, out, height, width] -> [in, height * width * out]
        matrix, flat = _matrix(weight), images.reshape(len(images), -1)
        columns = linear(matrix.t().contiguous(), flat.t())
        folded = _folded(
            columns.view(*weight.shape[2:], weight.shape[1], *images.shape[1:]), (before, before), stride, size
        )
        ctx.save_for_backward(flat, matrix)
        ctx.of = images.shape, weight.shape, stride, (before, before)  # type: ignore[attr-defined]
        return folded.add_(bias[:, None, None, None])

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, by_grown: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None, None]:
        flat, matrix = ctx.saved_tensors  # type: ignore[attr-defined]
        shape, of_weight, stride, before = ctx.of  # type: ignore[attr-defined]
        kernel, places = of_weight[2:], shape[1:3]
        # The last place may reach beyond the size to which the images were cut.
        needed = [stride * (place - 1) + taps for place, taps in zip(places, kernel, strict=True)]
        (above, left), (height, width) = before, by_grown.shape[1:3]
        around = (0, 0, left, needed[1] - left - width, above, needed[0] - above - height)
        padded = pad(by_grown, around)
        columns = _columns(padded, kernel, stride, places).reshape(matrix.shape[1], -1)
        by_images = linear(matrix, columns.t()).view(shape)
        by_matrix = linear(flat, columns)
        by_weight = by_matrix.view(of_weight[0], *kernel, of_weight[1]).permute(0, 3, 1, 2)
        return by_images, by_weight, by_grown.sum(dim=(1, 2, 3)), None, None, None


def _run(
    images: Tensor, weights: tuple[Tensor, Tensor, Tensor], n_steps: int, shift: int
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return the states after each step, and what the gradient needs: the weights' matrix, columns, gates, cells.

    Columns, [n_steps, 1 + ..., height * width * n_windows], have a row of ones for the bias, then what the kernel sees
    of image and state. Gates are [n_steps, 4, hidden, height, width, n_windows], and cells, with their tanh,
    [n_steps, 2, ...].
    """
    n_inputs, height, width, n_images = images.shape
    n_windows, hidden = n_images - (n_steps - 1) * shift, weights[1].shape[1]
    (tall, wide), (above, left) = _seen(weights[0].shape, images.shape)
    kernel, places = (tall.stop - tall.start, wide.stop - wide.start), height * width * n_windows
    of_input, of_state, bias = weights
    kernels = torch.cat([of_input[:, :, tall, wide], of_state[:, :, tall, wide]], dim=1)
    matrix = torch.cat([bias[:, None], _matrix(kernels)], dim=1)
    # tanh(x) = 2 * sigmoid(2 * x) - 1: PyTorch's tanh takes as long as ten of its sigmoids.
    matrix[2 * hidden : 3 * hidden] *= 2
    minus_one = images.new_tensor(-1.0)
    states = images.new_empty(n_steps, hidden, height, width, n_windows)
    columns = images.new_empty(n_steps, matrix.shape[1], places)
    columns[:, 0] = 1.0
    gates = images.new_empty(n_steps, 4, *states.shape[1:])
    cells = images.new_empty(n_steps, 2, *states.shape[1:])
    both = images.new_zeros(n_inputs + hidden, height + kernel[0] - 1, width + kernel[1] - 1, n_windows)
    inner = both[:, above : above + height, left : left + width]
    image, state = inner[:n_inputs], inner[n_inputs:]
    seen = _columns(both, kernel, 1, (height, width))
    by_step = zip(
        columns[:, 1:].view(n_steps, *seen.shape).unbind(),
        columns.mT.unbind(),
        gates.unbind(),
        states.unbind(),
        strict=True,
    )
    parts, halves = gates.flatten(0, 1).unbind(), cells.flatten(0, 1).unbind()
    for step, (seen_now, column, of_step, after) in enumerate(by_step):
        image.copy_(images[..., step * shift : step * shift + n_windows])
        seen_now.copy_(seen)
        torch.sigmoid(linear(matrix, column).view(of_step.shape), out=of_step)
        write, forget, candidate, read = parts[4 * step : 4 * step + 4]
        cell, squashed = halves[2 * step : 2 * step + 2]
        torch.add(minus_one, candidate, alpha=2, out=candidate)
        torch.mul(write, candidate, out=cell)
        if step > 0:
            cell.addcmul_(forget, halves[2 * step - 2])
        torch.mul(cell, 2, out=squashed).sigmoid_()
        torch.add(minus_one, squashed, alpha=2, out=squashed)
        torch.mul(read, squashed, out=after)
        state.copy_(after)
    return states, matrix, columns, gates, cells


def _attend(flat: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean of states [n_steps, size, n_windows] that `attended` gives, and its weights."""
    weights = ((flat * flat[-1]).sum(dim=1, keepdim=True) / len(flat)).softmax(dim=0)
    return (weights * flat).sum(dim=0), weights


def _attend_back(by_mean: Tensor, flat: Tensor, weights: Tensor) -> Tensor:
    """Return the gradient by the states for that by their mean, [size, n_windows]."""
    by_weights = (flat * by_mean).sum(dim=1, keepdim=True)
    by_likeness = weights * (by_weights - (weights * by_weights).sum(dim=0)) / len(flat)
    by_states = (weights * by_mean).addcmul_(by_likeness, flat[-1])
    # The last state is also what all are compared with.
    by_states[-1].add_((by_likeness * flat).sum(dim=0))
    return by_states


class _Recurrence(torch.autograd.Function):
    """`attended_states`, with the gradient (back-propagation through time) written out."""

    @staticmethod
    def forward(
        ctx: FunctionCtx,
        images: Tensor,
        input_weight: Tensor,
        state_weight: Tensor,
        bias: Tensor,
        n_steps: int,
        shift: int,
    ) -> Tensor:
        weights = (input_weight, state_weight, bias)
        states, *kept = _run(images, weights, n_steps, shift)
        mean, likeness = _attend(states.flatten(1, -2))
        ctx.save_for_backward(states, likeness, *kept)
        ctx.of = images.shape, input_weight.shape, state_weight.shape, shift  # type: ignore[attr-defined]
        return mean.view(states.shape[1:])

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, by_mean: Tensor) -> tuple[Tensor | None, ...]:
        states, likeness, matrix, columns, gates, cells = ctx.saved_tensors  # type: ignore[attr-defined]
        shape, of_input, of_state, shift = ctx.of  # type: ignore[attr-defined]
        by_states = _attend_back(by_mean.flatten(0, -2), states.flatten(1, -2), likeness).view(states.shape)
        n_steps, n_windows, (n_inputs, hidden) = len(states), states.shape[-1], (shape[0], states.shape[1])
        (tall, wide), before = _seen(of_input, shape)
        kernel = (tall.stop - tall.start, wide.stop - wide.start)
        seen = (*kernel, -1, *by_states.shape[2:])
        to_columns = matrix[:, 1:].t().contiguous()
        # The candidate's weights were doubled for a sigmoid; its gradient here is that by the tanh's argument.
        to_columns[:, 2 * hidden : 3 * hidden] /= 2
        by_matrix, by_images = torch.zeros_like(matrix), matrix.new_zeros(shape)
        by_gates = torch.empty_like(gates[0])
        flat = by_gates.view(len(matrix), -1)
        parts, halves = gates.flatten(0, 1).unbind(), cells.flatten(0, 1).unbind()
        by_parts, by_cell = by_gates.unbind(), torch.zeros_like(halves[0])
        steps = list(zip(by_states.unbind(), gates.unbind(), columns.unbind(), strict=True))
        by_state = by_states[-1]
        for step in reversed(range(n_steps)):
            _, of_step, column = steps[step]
            last = halves[2 * step - 2] if step > 0 else None
            of_parts = parts[4 * step : 4 * step + 4]
            _backward_step(by_state, by_cell, of_parts, halves[2 * step + 1], last, by_parts)
            sigmoid_backward(by_gates[:2], of_step[:2], grad_input=by_gates[:2])
            by_matrix += linear(flat, column)
            by_both = _folded(linear(to_columns, flat.t()).view(seen), before, 1, shape[1:3])
            by_images[..., step * shift : step * shift + n_windows].add_(by_both[:n_inputs])
            if step > 0:
                by_state = by_both[n_inputs:].add_(steps[step - 1][0])
        by_kernels = by_matrix[:, 1:].view(len(matrix), *kernel, -1).permute(0, 3, 1, 2)
        by_weights = matrix.new_zeros(of_input), matrix.new_zeros(of_state)
        by_weights[0][:, :, tall, wide] = by_kernels[:, :n_inputs]
        by_weights[1][:, :, tall, wide] = by_kernels[:, n_inputs:]
        return by_images, *by_weights, by_matrix[:, 0], None, None


def _backward_step(
    by_state: Tensor,
    by_cell: Tensor,
    gates: Sequence[Tensor],
    squashed: Tensor,
    before: Tensor | None,
    by_gates: Sequence[Tensor],
) -> None:
    """Write the gradient by the gates' inputs into ``by_gates``, and that by the cell before into ``by_cell``.

    But for the sigmoid of the first two gates.
    """
    write, forget, candidate, read = gates
    by_write, by_forget, by_candidate, by_read = by_gates
    torch.mul(by_state, read, out=by_read)
    by_cell += tanh_backward(by_read, squashed, grad_input=by_read)
    torch.mul(by_cell, candidate, out=by_write)
    if before is None:
        by_forget.zero_()
    else:
        torch.mul(by_cell, before, out=by_forget)
    torch.mul(by_cell, write, out=by_candidate)
    torch.mul(by_state, squashed, out=by_read)
    tanh_backward(by_candidate, candidate, grad_input=by_candidate)
    sigmoid_backward(by_read, read, grad_input=by_read)
    by_cell *= forget
