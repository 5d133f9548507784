"""MSCRED: signature matrices, its network's parts and its scores against independent truth."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tsadbench import UsageError
from tsadbench.utils.arrays import FloatArray
from tsadbench_detectors.deep.conv_lstm import ConvLSTM, SameConv2d, attended, network
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
    torch.testing.assert_close(detector._images(windows), torch.tensor([expected]))


def test_the_score_from_images_made_one_by_one(fitted: MSCRED) -> None:
    training, test = rows(), rows(30, seed=1)
    scaled = (test - training.mean(axis=0)) / training.std(axis=0)
    # Scales of 2, 3 and 4 rows, three images two rows apart: the first complete window ends with row 7.
    expected = np.full(30, np.nan)
    by_sensor = np.full((30, 3), np.nan)
    for row in range(7, 30):
        images = np.stack([signatures_one_by_one(scaled, row - back, (2, 3, 4)) for back in (4, 2, 0)])
        with torch.no_grad():
            given_back = fitted.network_(torch.tensor(images[None], dtype=torch.float32))[0].numpy()
        squares = (images[-1] - given_back) ** 2
        expected[row] = squares.mean()
        for sensor in range(3):
            halves = squares[:, sensor, :].sum() / 2 + squares[:, :, sensor].sum() / 2
            by_sensor[row, sensor] = halves / squares.size

    np.testing.assert_allclose(fitted.score(test), expected, rtol=1e-4)
    np.testing.assert_allclose(fitted.contributions(test), by_sensor, rtol=1e-4)


@pytest.mark.parametrize("n_sensors", [1, 3, 7, 8])
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
    detector = MSCRED(epochs=1, stride=20).fit(rows(60))
    scores = detector.score(rows(30, seed=1))
    assert np.isnan(scores[:27]).all()
    assert np.isfinite(scores[27:]).all()
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
    ours, theirs = ConvLSTM(3, 5, kernel_size=1), nn.LSTM(3, 5, batch_first=True)
    with torch.no_grad():
        theirs.get_parameter("weight_ih_l0").copy_(ours.from_input.weight[:, :, 0, 0])
        theirs.get_parameter("weight_hh_l0").copy_(ours.from_state.weight[:, :, 0, 0])
        theirs.get_parameter("bias_ih_l0").copy_(ours.from_input.get_parameter("bias"))
        theirs.get_parameter("bias_hh_l0").zero_()
    inputs = torch.randn(4, 6, 3)
    torch.testing.assert_close(ours(inputs[..., None, None])[..., 0, 0], theirs(inputs)[0])


def test_the_recurrence_by_its_formulas() -> None:
    layer = ConvLSTM(2, 3)
    images = torch.randn(1, 3, 2, 4, 5)
    state, cell = torch.zeros(1, 3, 4, 5), torch.zeros(1, 3, 4, 5)
    expected = []
    for step in range(3):
        gates = layer.from_input(images[:, step]) + layer.from_state(state)
        write, keep, candidate, read = (gates[:, first : first + 3] for first in (0, 3, 6, 9))
        cell = torch.sigmoid(keep) * cell + torch.sigmoid(write) * torch.tanh(candidate)
        state = torch.sigmoid(read) * torch.tanh(cell)
        expected.append(state)
    torch.testing.assert_close(layer(images), torch.stack(expected, dim=1))


def test_attention_by_hand() -> None:
    # Likeness to the last state: 2 * 1 / 2 and 1 * 1 / 2 for two steps of two entries.
    states = torch.tensor([[[[[2.0, 5.0]]], [[[1.0, 0.0]]]]])
    first = np.exp(1.0) / (np.exp(1.0) + np.exp(0.5))
    expected = [[[[first * 2 + (1 - first), first * 5]]]]
    torch.testing.assert_close(attended(states), torch.tensor(expected, dtype=torch.float32))


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 13])
def test_the_network_gives_images_of_any_size_back(size: int) -> None:
    assert network(3, 2)(torch.randn(4, 5, 3, size, size)).shape == (4, 3, size, size)


def test_the_network_has_as_many_weights_as_published() -> None:
    assert sum(weights.numel() for weights in network(3, 32).parameters()) == 3_206_243


def test_the_output_is_linear_and_reaches_below_what_selu_gives() -> None:
    level = network(3, 2)
    with torch.no_grad():
        level.up.get_parameter("bias").fill_(-100.0)
        assert (level(torch.zeros(1, 5, 3, 4, 4)) < -50.0).all()


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
