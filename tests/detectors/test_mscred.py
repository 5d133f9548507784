"""MSCRED: signature matrices, its network's parts and its scores against independent truth."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.helpers.planted import in_deviations, padded, waves
from tsadbench.utils.arrays import FloatArray
from tsadbench_detectors.mscred import MSCRED, ConvLSTM, Level, network


def small(**parameters: object) -> MSCRED:
    return MSCRED(**{**MSCRED.test_params(), "batch_size": 16, **parameters})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def fitted() -> MSCRED:
    return small().fit(waves(80))


def reconstructed(of: nn.Module, windows: Tensor) -> Tensor:
    """The last images of windows [n_windows, n_steps, ...]."""
    last: Tensor = of(windows.transpose(0, 1))
    return last


def signatures_one_by_one(scaled: FloatArray, row: int) -> FloatArray:
    """Return the image of the window that ends with a row, [scales, n_sensors, n_sensors]."""
    tails = [scaled[row + 1 - scale : row + 1] for scale in (2, 3, 4)]
    return np.stack([tail.T @ tail / len(tail) for tail in tails])


def squared_errors(detector: MSCRED, scaled: FloatArray, row: int) -> FloatArray:
    """Return the squared errors of a row's image, which the network reconstructs from three, two rows apart."""
    images = np.stack([signatures_one_by_one(scaled, row - back) for back in (4, 2, 0)])
    with torch.no_grad():
        given_back = reconstructed(detector.network_, torch.tensor(images[None], dtype=torch.float32))[0].numpy()
    return np.asarray((images[-1] - given_back) ** 2)


def test_the_score_from_images_made_one_by_one(fitted: MSCRED) -> None:
    training, test = waves(80), waves(30, seed=1)
    # The longest scale of the first of three images reaches back to row 0 from row 7.
    scaled = padded(in_deviations(test, training), 7)
    expected = np.empty(30)
    by_sensor = np.empty((30, 3))
    for row in range(30):
        squares = squared_errors(fitted, scaled, row + 7)
        expected[row] = squares.mean()
        for sensor in range(3):
            halves = squares[:, sensor, :].sum() / 2 + squares[:, :, sensor].sum() / 2
            by_sensor[row, sensor] = halves / squares.size

    np.testing.assert_allclose(fitted.score(test), expected, rtol=1e-4)
    np.testing.assert_allclose(fitted.contributions(test), by_sensor, rtol=1e-4)


def test_the_loss_from_images_made_one_by_one(fitted: MSCRED) -> None:
    scaled = in_deviations(waves(80), waves(80))
    squares = [squared_errors(fitted, scaled, row) for row in (7, 30, 31)]
    windows = torch.tensor(np.stack([scaled[row - 7 : row + 1] for row in (7, 30, 31)]), dtype=torch.float32)
    with torch.no_grad():
        assert fitted._loss(windows).item() == pytest.approx(np.mean(squares), rel=1e-4)


def test_an_extreme_row_neither_reaches_rows_before_it_nor_costs_later_rows_precision(fitted: MSCRED) -> None:
    test = waves(60, seed=1)
    spiked = test.copy()
    spiked[30, 1] = 1e6
    scores, with_spike = fitted.score(test), fitted.score(spiked)
    np.testing.assert_array_equal(with_spike[:30], scores[:30])
    np.testing.assert_array_equal(with_spike[38:], scores[38:])
    assert (with_spike[30:34] > 1e6 * scores[30:34]).all()


def states_one_by_one(layer: ConvLSTM, images: Tensor) -> Tensor:
    """The states of one window [n_steps, channels, height, width], by the formulas and PyTorch's own convolution."""
    before, after = (layer.from_state.kernel_size[0] - 1) // 2, layer.from_state.kernel_size[0] // 2

    def convolved(image: Tensor, by: nn.Conv2d) -> Tensor:
        padded = nn.functional.pad(image[None], (before, after, before, after))
        return nn.functional.conv2d(padded, by.weight, by.bias)[0]

    hidden = layer.from_state.in_channels
    state = cell = images.new_zeros(hidden, *images.shape[-2:])
    states = []
    for image in images:
        gates = convolved(image, layer.from_input) + convolved(state, layer.from_state)
        write, keep, candidate, read = gates.view(4, hidden, *images.shape[-2:])
        cell = torch.sigmoid(keep) * cell + torch.sigmoid(write) * torch.tanh(candidate)
        state = torch.sigmoid(read) * torch.tanh(cell)
        states.append(state)
    return torch.stack(states)


def last_image_one_by_one(level: Level, images: Tensor) -> Tensor:
    """Return a level's output for one window [n_steps, outer, height, width], by PyTorch's own layers."""
    (kernel_size, _), (stride, _) = level.down.kernel_size, level.down.stride
    before, after = (kernel_size - 1) // 2, kernel_size // 2
    padded = nn.functional.pad(images, (before, after, before, after))
    inside = nn.functional.selu(nn.functional.conv2d(padded, level.down.weight, level.down.bias, stride))
    states = states_one_by_one(level.recurrent, inside)
    likeness = torch.stack([(state * states[-1]).sum() / len(states) for state in states])
    mean = sum(weight * state for weight, state in zip(likeness.softmax(dim=0), states, strict=True))
    assert isinstance(mean, Tensor)
    if level.below is not None:
        mean = torch.cat([mean, nn.functional.selu(last_image_one_by_one(level.below, inside))])
    height, width = images.shape[-2:]
    grown = nn.functional.conv_transpose2d(mean[None], level.up.weight, level.up.bias, stride)[0]
    found: Tensor = grown[:, before : before + height, before : before + width]
    return found


@pytest.mark.parametrize(("size", "n_windows"), [(1, 3), (7, 1), (8, 3)])
def test_the_network_follows_its_equations(size: int, n_windows: int) -> None:
    level = network(3, 2).double()
    windows = torch.randn(n_windows, 4, 3, size, size, dtype=torch.float64)
    expected = torch.stack([last_image_one_by_one(level, window) for window in windows])
    assert expected.shape == (n_windows, 3, size, size)
    torch.testing.assert_close(reconstructed(level, windows), expected)


def test_the_network_has_as_many_weights_as_published() -> None:
    assert sum(weights.numel() for weights in network(3, 32).parameters()) == 3_206_243
