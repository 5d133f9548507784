"""MSCRED: signature matrices, its network's parts and its scores against independent truth."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.detectors.test_deep import padded
from tsadbench import UsageError
from tsadbench.utils.arrays import FloatArray
from tsadbench_detectors.deep import column_products
from tsadbench_detectors.deep.conv_lstm import ConvLSTM, GrowingConv2d, Level, SameConv2d, attended, network
from tsadbench_detectors.mscred import MSCRED


def rows(n_rows: int = 80, n_sensors: int = 3, seed: int = 0) -> FloatArray:
    """Return sensors that swing together, with noise."""
    generator = np.random.default_rng(seed)
    phase = np.arange(n_rows)[:, None] / 7.0 + np.arange(n_sensors)
    return 5.0 + np.sin(phase) + 0.1 * generator.normal(size=(n_rows, n_sensors))


def small(**parameters: object) -> MSCRED:
    return MSCRED(**{**MSCRED.test_params(), "batch_size": 16, **parameters})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def fitted() -> MSCRED:
    return small().fit(rows())


def by_step(windows: Tensor) -> Tensor:
    """Lay windows [n_windows, n_steps, ...] out as the network takes windows that share no image."""
    return windows.transpose(0, 1).flatten(0, 1)


def reconstructed(of: nn.Module, windows: Tensor) -> Tensor:
    """The last images of windows [n_windows, n_steps, ...] that share none."""
    last: Tensor = of(by_step(windows), windows.shape[1], len(windows))
    return last


def signatures_one_by_one(scaled: FloatArray, row: int, scales: tuple[int, ...]) -> FloatArray:
    """The image that ends with a row, [scales, n_sensors, n_sensors]."""
    n_sensors = scaled.shape[1]
    image = np.zeros((len(scales), n_sensors, n_sensors))
    for number, scale in enumerate(scales):
        for i in range(n_sensors):
            for j in range(n_sensors):
                image[number, i, j] = sum(scaled[row - k, i] * scaled[row - k, j] for k in range(scale)) / scale
    return image


def test_signature_matrices_by_hand() -> None:
    # Two images of two rows of two sensors, one row apart; the scales are 1, 2 and 3 rows.
    detector = MSCRED(scale_short=1, scale_middle=2, scale_long=3, steps=2, gap=1)
    windows = torch.tensor([[[1.0, 2.0], [3.0, -1.0], [2.0, 0.0], [4.0, 1.0]]])
    expected = [
        [[[4, 0], [0, 0]], [[6.5, -1.5], [-1.5, 0.5]], [[14 / 3, -1 / 3], [-1 / 3, 5 / 3]]],
        [[[16, 4], [4, 1]], [[10, 2], [2, 0.5]], [[29 / 3, 1 / 3], [1 / 3, 2 / 3]]],
    ]
    torch.testing.assert_close(detector._images(windows, [3, 4]), torch.tensor([expected]))


def test_the_score_from_images_made_one_by_one(fitted: MSCRED) -> None:
    training, test = rows(), rows(30, seed=1)
    # Scales of 2, 3 and 4 rows, three images two rows apart: the first complete window ends with row 7.
    scaled = padded((test - training.mean(axis=0)) / training.std(axis=0), 7)
    expected = np.empty(30)
    by_sensor = np.empty((30, 3))
    for row in range(30):
        images = np.stack([signatures_one_by_one(scaled, row + 7 - back, (2, 3, 4)) for back in (4, 2, 0)])
        with torch.no_grad():
            given_back = reconstructed(fitted.network_, torch.tensor(images[None], dtype=torch.float32))[0].numpy()
        squares = (images[-1] - given_back) ** 2
        expected[row] = squares.mean()
        for sensor in range(3):
            halves = squares[:, sensor, :].sum() / 2 + squares[:, :, sensor].sum() / 2
            by_sensor[row, sensor] = halves / squares.size

    np.testing.assert_allclose(fitted.score(test), expected, rtol=1e-4)
    np.testing.assert_allclose(fitted.contributions(test), by_sensor, rtol=1e-4)


def test_the_loss_from_images_made_one_by_one(fitted: MSCRED) -> None:
    scaled = (rows() - rows().mean(axis=0)) / rows().std(axis=0)
    squares = []
    for row in (7, 30, 31):
        images = np.stack([signatures_one_by_one(scaled, row - back, (2, 3, 4)) for back in (4, 2, 0)])
        with torch.no_grad():
            given_back = reconstructed(fitted.network_, torch.tensor(images[None], dtype=torch.float32))[0].numpy()
        squares.append((images[-1] - given_back) ** 2)
    windows = torch.tensor(np.stack([scaled[row - 7 : row + 1] for row in (7, 30, 31)]), dtype=torch.float32)
    with torch.no_grad():
        assert fitted._loss(windows).item() == pytest.approx(np.mean(squares), rel=1e-4)


@pytest.mark.parametrize("n_sensors", [1, 2, 3, 7, 8])
def test_contributions_sum_to_the_score_for_any_number_of_sensors(n_sensors: int) -> None:
    detector = small(epochs=1).fit(rows(40, n_sensors))
    test = rows(30, n_sensors, seed=1)
    scores = detector.score(test)
    assert np.isfinite(scores[7:]).all()
    np.testing.assert_allclose(detector.contributions(test).sum(axis=1), scores)


def test_a_change_reaches_its_own_row_and_as_many_after_it_as_declared(fitted: MSCRED) -> None:
    test, memory = rows(60, seed=1), fitted.declared_traits().memory
    assert memory == 7
    changed = test.copy()
    changed[30] += 1.0
    differs = fitted.score(changed)[7:] != fitted.score(test)[7:]
    assert differs.tolist() == [30 <= row <= 30 + memory for row in range(7, 60)]


def test_an_extreme_row_neither_reaches_rows_before_it_nor_costs_later_rows_precision(fitted: MSCRED) -> None:
    test = rows(60, seed=1)
    spiked = test.copy()
    spiked[30, 1] = 1e6
    scores, with_spike = fitted.score(test), fitted.score(spiked)
    np.testing.assert_array_equal(with_spike[:30], scores[:30])
    np.testing.assert_array_equal(with_spike[38:], scores[38:])
    assert (with_spike[30:34] > 1e6 * scores[30:34]).all()


def test_the_largest_values_are_scored(fitted: MSCRED) -> None:
    test = rows(30, seed=1)
    test[20] = np.finfo(np.float64).max
    assert np.isfinite(fitted.score(test)[7:]).all()


def test_a_sensor_that_leaves_the_others_contributes_most() -> None:
    test = rows(60, 4, seed=1)
    test[40:, 2] = 5.0 - 2.0 * (test[40:, 2] - 5.0)
    contributions = small(epochs=3, learning_rate=0.01).fit(rows(150, 4)).contributions(test)
    assert contributions[47:].mean(axis=0).argmax() == 2


def test_the_default_window_is_within_this_projects_thirty_rows() -> None:
    detector = MSCRED(epochs=1, min_steps=1, stride=20).fit(rows(60))
    assert np.isfinite(detector.score(rows(30, seed=1))).all()
    assert detector.declared_traits().memory == 27


def test_the_stride_thins_out_the_training_windows_alone() -> None:
    seen: list[int] = []

    class Counted(MSCRED):
        def _loss(self, windows: Tensor) -> Tensor:
            seen.append(len(windows))
            return super()._loss(windows)

    parameters = {**MSCRED.test_params(), "batch_size": 16, "stride": 4, "epochs": 1, "held_out": 0.0}
    detector = Counted(**parameters).fit(rows(40))  # type: ignore[arg-type]
    # Windows of 8 rows start at the rows 0, 4, ..., 32.
    assert sum(seen) == 9
    assert np.isfinite(detector.score(rows(40))[7:]).all()


@pytest.mark.parametrize(("kernel_size", "stride"), [(3, 1), (3, 2), (2, 2)])
@pytest.mark.parametrize(("height", "width"), [(1, 1), (2, 2), (3, 3), (4, 7), (8, 5)])
def test_the_way_back_is_pytorchs_transposed_convolution_for_the_images_size(
    kernel_size: int, stride: int, height: int, width: int
) -> None:
    layer = GrowingConv2d(3, 4, kernel_size, stride, padding=(kernel_size - 1) // 2).double()
    inside = torch.randn(2, 3, -(-height // stride), -(-width // stride), dtype=torch.float64)
    # Without padding, every place that the kernels reach: those before and after the image are cut off here.
    reached = nn.functional.conv_transpose2d(inside, layer.weight, layer.bias, stride)
    before = (kernel_size - 1) // 2
    expected = reached[..., before : before + height, before : before + width]
    torch.testing.assert_close(layer(inside, torch.Size([height, width])), expected)


@pytest.mark.parametrize(("kernel_size", "stride"), [(3, 1), (3, 2), (2, 2), (2, 1)])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 8])
def test_only_the_stride_decides_a_convolutions_size(kernel_size: int, stride: int, size: int) -> None:
    images = torch.randn(2, 3, size, size)
    convolution = SameConv2d(3, 4, kernel_size, stride)
    found = convolution(images)
    assert found.shape == (2, 4, -(-size // stride), -(-size // stride))
    # At the first place, an odd kernel is centred, and an even one starts there.
    before = (kernel_size - 1) // 2
    expected = convolution.get_parameter("bias").clone()
    for i in range(kernel_size):
        for j in range(kernel_size):
            if 0 <= i - before < size and 0 <= j - before < size:
                expected = expected + convolution.weight[:, :, i, j] @ images[0, :, i - before, j - before]
    torch.testing.assert_close(found[0, :, 0, 0], expected)


def test_on_single_pixels_the_recurrence_is_pytorchs_lstm() -> None:
    # Of the kernel of two by two weights, three meet nothing but the zeros around a single pixel.
    ours, theirs = ConvLSTM(3, 5), nn.LSTM(3, 5, batch_first=True)
    with torch.no_grad():
        theirs.get_parameter("weight_ih_l0").copy_(ours.from_input.weight[:, :, 0, 0])
        theirs.get_parameter("weight_hh_l0").copy_(ours.from_state.weight[:, :, 0, 0])
        theirs.get_parameter("bias_ih_l0").copy_(ours.from_input.get_parameter("bias"))
        theirs.get_parameter("bias_hh_l0").zero_()
    inputs = torch.randn(4, 6, 3)
    found = ours(by_step(inputs)[..., None, None], 6, 4)[..., 0, 0]
    torch.testing.assert_close(found.transpose(0, 1), theirs(inputs)[0])


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


SIZES = [(1, 1), (2, 2), (1, 3), (4, 5), (7, 7)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kernel_size", [1, 2, 3])
def test_the_recurrence_by_its_formulas(size: tuple[int, int], kernel_size: int) -> None:
    layer, images = ConvLSTM(2, 3, kernel_size).double(), torch.randn(4, 3, 2, *size, dtype=torch.float64)
    expected = torch.stack([states_one_by_one(layer, window) for window in images], dim=1)
    torch.testing.assert_close(layer(by_step(images), 3, 4), expected)
    with torch.no_grad():
        torch.testing.assert_close(layer(by_step(images), 3, 4), expected)


@pytest.mark.parametrize("n_windows", [1, 2, 5])
def test_windows_that_share_images_are_as_windows_one_by_one(n_windows: int) -> None:
    layer = ConvLSTM(2, 3).double()
    # Three steps, two images apart.
    images = torch.randn(n_windows + 4, 2, 4, 5, dtype=torch.float64, requires_grad=True)
    windows = torch.stack([images[first : first + 5 : 2] for first in range(n_windows)])
    expected = torch.stack([states_one_by_one(layer, window) for window in windows], dim=1)
    found = layer(images, 3, 2)
    torch.testing.assert_close(found, expected)
    by_states = torch.randn_like(expected)
    weights = [images, *layer.parameters()]
    for ours, theirs in zip(
        torch.autograd.grad(found, weights, by_states), torch.autograd.grad(expected, weights, by_states), strict=True
    ):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kernel_size", [1, 2, 3])
def test_the_recurrences_gradient(size: tuple[int, int], kernel_size: int) -> None:
    layer = ConvLSTM(2, 2, kernel_size).double()
    images = torch.randn(2 * 3, 2, *size, dtype=torch.float64, requires_grad=True)
    weight = layer.from_state.weight.detach().requires_grad_()

    def states(images: Tensor, weight: Tensor) -> Tensor:
        found: Tensor = torch.func.functional_call(layer, {"from_state.weight": weight}, (images, 3, 2))
        return found

    assert torch.autograd.gradcheck(states, (images, weight), fast_mode=True)


def test_attention_by_hand() -> None:
    # One window. Likeness to the last state: 2 * 1 / 2 and 1 * 1 / 2 for two steps of two entries.
    states = torch.tensor([[[[[2.0, 5.0]]]], [[[[1.0, 0.0]]]]])
    first = np.exp(1.0) / (np.exp(1.0) + np.exp(0.5))
    expected = [[[[first * 2 + (1 - first), first * 5]]]]
    torch.testing.assert_close(attended(states), torch.tensor(expected, dtype=torch.float32))


def last_image_one_by_one(level: Level, images: Tensor) -> Tensor:
    """What a level gives for one window [n_steps, outer, height, width], with PyTorch's own layers."""
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


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 13])
@pytest.mark.parametrize("n_windows", [1, 3])
def test_the_network_and_its_gradient_by_pytorchs_own_layers(size: int, n_windows: int) -> None:
    level = network(3, 2).double()
    windows = torch.randn(n_windows, 4, 3, size, size, dtype=torch.float64)
    expected = torch.stack([last_image_one_by_one(level, window) for window in windows])
    by_convolutions = level.by_convolutions(by_step(windows), 4, n_windows)
    by_products = level.by_products(by_step(windows).permute(1, 2, 3, 0), 4, n_windows).permute(3, 0, 1, 2)
    by_images, weights = torch.randn_like(expected), list(level.parameters())
    by_weights = torch.autograd.grad(expected, weights, by_images)
    for found in (by_convolutions, by_products, reconstructed(level, windows)):
        assert found.shape == (n_windows, 3, size, size)
        torch.testing.assert_close(found, expected)
        for ours, theirs in zip(torch.autograd.grad(found, weights, by_images), by_weights, strict=True):
            torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize(("kernel_size", "stride"), [(3, 1), (3, 2), (2, 2), (2, 1), (1, 1)])
@pytest.mark.parametrize("size", [(1, 1), (2, 2), (3, 3), (1, 4), (4, 7), (8, 5)])
def test_products_are_the_convolution_that_they_replace(kernel_size: int, stride: int, size: tuple[int, int]) -> None:
    layer = SameConv2d(3, 4, kernel_size, stride).double()
    images = torch.randn(2, 3, *size, dtype=torch.float64, requires_grad=True)
    expected = layer(images)
    weight, bias = layer.weight, layer.get_parameter("bias")
    found = column_products.convolved(images.permute(1, 2, 3, 0), weight, bias, stride).permute(3, 0, 1, 2)
    same_with_gradients(found, expected, [images, weight, bias])


@pytest.mark.parametrize(("kernel_size", "stride"), [(3, 1), (3, 2), (2, 2)])
@pytest.mark.parametrize("size", [(1, 1), (2, 2), (3, 3), (1, 4), (4, 7), (8, 5)])
def test_products_are_the_transposed_convolution_that_they_replace(
    kernel_size: int, stride: int, size: tuple[int, int]
) -> None:
    layer = GrowingConv2d(3, 4, kernel_size, stride, padding=(kernel_size - 1) // 2).double()
    divided = [-(-length // stride) for length in size]
    images = torch.randn(2, 3, *divided, dtype=torch.float64, requires_grad=True)
    expected = layer(images, torch.Size(size))
    weight, bias = layer.weight, layer.get_parameter("bias")
    found = column_products.grown(images.permute(1, 2, 3, 0), weight, bias, stride, size).permute(3, 0, 1, 2)
    same_with_gradients(found, expected, [images, weight, bias])


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kernel_size", [1, 2, 3])
@pytest.mark.parametrize(("n_windows", "shift"), [(1, 1), (2, 2), (5, 5), (5, 2)])
def test_products_are_the_recurrence_and_attention_that_they_replace(
    size: tuple[int, int], kernel_size: int, n_windows: int, shift: int
) -> None:
    layer = ConvLSTM(2, 3, kernel_size).double()
    images = torch.randn(n_windows + 2 * shift, 2, *size, dtype=torch.float64, requires_grad=True)
    expected = attended(layer(images, 3, shift))
    parameters = layer.from_input.weight, layer.from_state.weight, layer.from_input.get_parameter("bias")
    found = column_products.attended_states(images.permute(1, 2, 3, 0), *parameters, 3, shift).permute(3, 0, 1, 2)
    same_with_gradients(found, expected, [images, *parameters])


def same_with_gradients(found: Tensor, expected: Tensor, of: list[Tensor]) -> None:
    torch.testing.assert_close(found, expected)
    by_found = torch.randn_like(expected)
    for ours, theirs in zip(
        torch.autograd.grad(found, of, by_found), torch.autograd.grad(expected, of, by_found), strict=True
    ):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("size", [1, 7, 8])
def test_the_network_reconstructs_windows_that_share_images_as_windows_one_by_one(size: int) -> None:
    level, images = network(3, 2).double(), torch.randn(10, 3, size, size, dtype=torch.float64)
    # Five steps, two images apart: two windows.
    windows = torch.stack([images[first : first + 9 : 2] for first in range(2)])
    torch.testing.assert_close(level(images, 5, 2), reconstructed(level, windows))


def test_the_network_has_as_many_weights_as_published() -> None:
    assert sum(weights.numel() for weights in network(3, 32).parameters()) == 3_206_243


def test_the_output_is_linear_and_reaches_below_what_selu_gives() -> None:
    level = network(3, 2)
    with torch.no_grad():
        level.up.get_parameter("bias").fill_(-100.0)
        assert (level(torch.zeros(5, 3, 4, 4), 5, 1) < -50.0).all()


@pytest.mark.parametrize(
    "wrong",
    [
        {"scale_middle": 2},
        {"scale_long": 3},
        {"scale_short": 0},
        {"steps": 0},
        {"gap": 0},
        {"channels": 1.5},
        {"stride": 0},
    ],
)
def test_parameters_out_of_range(wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError, match=f"MSCRED: {next(iter(wrong))} must be"):
        small(**wrong).fit(rows(40))
