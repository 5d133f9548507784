"""MTAD-GAT: attention and scores against slow implementations of their formulas."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest
import torch
from torch import nn

from tsadbench import Recording, UsageError
from tsadbench.utils.arrays import FloatArray
from tsadbench_detectors.mtad_gat import MTADGAT, Attention, Network


def rows(n_rows: int = 200, n_sensors: int = 3, seed: int = 0) -> FloatArray:
    generator = np.random.default_rng(seed)
    phase = np.arange(n_rows)[:, None] / 9.0 + np.arange(n_sensors)
    return 3.0 + np.sin(phase) + 0.1 * generator.normal(size=(n_rows, n_sensors))


def small(**parameters: object) -> MTADGAT:
    return MTADGAT(**{"window": 10, "stride": 2, "hidden_size": 8, "epochs": 2, "min_steps": 1, **parameters})  # type: ignore[arg-type]


def sigmoid(x: FloatArray) -> FloatArray:
    return 1.0 / (1.0 + np.exp(-x))


def attended(nodes: FloatArray, w: dict[str, FloatArray], name: str) -> FloatArray:
    target = nodes @ w[f"{name}.target.weight"].T + w[f"{name}.target.bias"]
    z = target[:, None] + (nodes @ w[f"{name}.source.weight"].T)[None]
    logits = np.where(z > 0, z, 0.2 * z) @ w[f"{name}.logit"] + w[f"{name}.pair_bias"]
    exponentials = np.exp(logits)
    return sigmoid(exponentials / exponentials.sum(axis=1, keepdims=True) @ nodes)


def states(inputs: FloatArray, w: dict[str, FloatArray], name: str) -> FloatArray:
    """PyTorch's gated recurrent unit: reset, update, candidate."""
    found, state = [], np.zeros(w[f"{name}.weight_hh_l0"].shape[1])
    for row in inputs:
        by_input = np.split(w[f"{name}.weight_ih_l0"] @ row + w[f"{name}.bias_ih_l0"], 3)
        by_state = np.split(w[f"{name}.weight_hh_l0"] @ state + w[f"{name}.bias_hh_l0"], 3)
        reset, update = sigmoid(by_input[0] + by_state[0]), sigmoid(by_input[1] + by_state[1])
        state = (1 - update) * np.tanh(by_input[2] + reset * by_state[2]) + update * state
        found.append(state)
    return np.array(found)


def test_attention_by_loops() -> None:
    attention = Attention(n_nodes=4, n_features=3, dropout=0.3).eval()
    nn.init.normal_(attention.pair_bias)
    nodes = torch.randn(1, 4, 3)
    x = nodes[0]
    joint = torch.cat([attention.target.weight, attention.source.weight], dim=1)  # W of [x_i; x_j]
    logits = torch.empty(4, 4)
    with torch.inference_mode():
        for i in range(4):
            for j in range(4):
                hidden = joint @ torch.cat([x[i], x[j]]) + attention.target.bias
                logits[i, j] = attention.logit @ nn.functional.leaky_relu(hidden, 0.2) + attention.pair_bias[i, j]
        weights = torch.softmax(logits, dim=1)
        torch.testing.assert_close(attention.weights(nodes)[0], weights)
        torch.testing.assert_close(attention(nodes)[0], torch.sigmoid(weights @ x))


def test_attention_without_pair_bias_follows_a_permutation_of_its_nodes() -> None:
    attention, nodes, order = Attention(5, 3, 0.0).eval(), torch.randn(2, 5, 3), torch.tensor([3, 1, 4, 0, 2])
    with torch.inference_mode():
        torch.testing.assert_close(attention(nodes[:, order]), attention(nodes)[:, order])


def test_the_score_by_hand() -> None:
    detector = small(gamma=0.5).fit(rows())
    network = cast("Network", detector.network_)
    fresh = rows(30, seed=1)
    scaled = torch.from_numpy((fresh - rows().min(axis=0)) / np.ptp(rows(), axis=0)).float()
    scaled = torch.cat([scaled[:1].expand(10, -1), scaled])
    expected = np.empty((30, 3))
    with torch.inference_mode():
        for row in range(10, 40):
            forecast, _ = network(scaled[None, row - 10 : row])
            _, reconstruction = network(scaled[None, row - 9 : row + 1])
            missed = (forecast[0] - scaled[row]).abs() + 0.5 * (reconstruction[0, -1] - scaled[row]).abs()
            expected[row - 10] = missed.numpy() / 1.5 / 3
    np.testing.assert_allclose(detector.contributions(fresh), expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(detector.score(fresh), expected.sum(axis=1), rtol=1e-4, atol=1e-6)


def test_the_loss_is_the_sum_of_both_roots() -> None:
    detector = small(dropout=0.0).fit(rows())
    windows = torch.randn(4, 11, 3)
    with torch.inference_mode():
        forecast, reconstruction = detector.network_(windows[:, :10])
        expected = nn.functional.mse_loss(forecast, windows[:, 10]).sqrt()
        expected = expected + nn.functional.mse_loss(reconstruction, windows[:, :10]).sqrt()
        torch.testing.assert_close(detector._loss(windows), expected)


def test_training_levels_and_makes_a_broken_coupling_dear() -> None:
    detector = small(epochs=25, stride=1, patience=25).fit(rows(400))
    losses = [loss for loss, _ in detector.losses_]
    assert losses[-1] < 0.7 * losses[0]
    normal, faulty = rows(200, seed=1), rows(200, seed=1)
    faulty[150:, 0] += 2.0
    assert detector.score(faulty)[150:].mean() > 1.5 * detector.score(normal)[150:].mean()


def test_dropout_is_off_when_scoring_and_windows_do_not_see_each_other() -> None:
    detector, fresh = small(dropout=0.9).fit(rows()), rows(60, seed=1)
    np.testing.assert_array_equal(detector.score(fresh), detector.score(fresh))
    np.testing.assert_allclose(detector.score(fresh)[30:45], detector.score(fresh[20:45])[10:], rtol=1e-4)


def test_recordings_shorter_than_a_window_are_scored() -> None:
    detector, whole = small().fit(rows()), rows(60, seed=1)
    for n_rows in (1, 9, 10, 11):
        np.testing.assert_allclose(detector.score(whole[:n_rows]), detector.score(whole)[:n_rows], rtol=1e-4)


def test_sensors_that_never_move_leave_the_loss_finite() -> None:
    detector = small().fit(np.full((60, 2), 4.0))
    assert all(np.isfinite(loss) for loss, _ in detector.losses_)


@pytest.mark.parametrize(("parameter", "value"), [("gamma", -1.0), ("dropout", 1.0), ("stride", 0), ("hidden_size", 0)])
def test_wrong_parameters_are_named(parameter: str, value: object) -> None:
    with pytest.raises(UsageError, match=parameter):
        small(**{parameter: value}).fit(rows())


def test_the_network_in_numpy() -> None:
    torch.manual_seed(0)
    network = Network(window=9, n_sensors=3, hidden_size=4, dropout=0.3).double().eval()
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    w = {name: tensor.numpy() for name, tensor in network.state_dict().items()}
    window = np.random.default_rng(0).normal(size=(9, 3))

    padded = np.pad(window, ((3, 3), (0, 0)))
    around = np.stack([padded[row : row + 7] for row in range(9)])  # [row, offset, sensor]
    smooth = np.einsum("tos,cso->tc", around, w["smoothing.weight"]) + w["smoothing.bias"]
    smooth = np.maximum(0.0, smooth)
    beside = [smooth, attended(smooth.T, w, "between_sensors").T, attended(smooth, w, "between_rows")]
    last = states(np.concatenate(beside, axis=1), w, "encoder")[-1]
    hidden = last
    for layer in (0, 3, 6):
        hidden = np.maximum(0.0, w[f"forecast.{layer}.weight"] @ hidden + w[f"forecast.{layer}.bias"])
    forecast = w["forecast.9.weight"] @ hidden + w["forecast.9.bias"]
    decoded = states(np.tile(last, (9, 1)), w, "decoder")
    reconstruction = decoded @ w["reconstruction.weight"].T + w["reconstruction.bias"]

    with torch.inference_mode():
        found_forecast, found_reconstruction = network(torch.from_numpy(window)[None])
    np.testing.assert_allclose(found_forecast[0], forecast, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found_reconstruction[0], reconstruction, rtol=1e-9, atol=1e-12)


def test_training_drops_attention_and_scales_the_rest() -> None:
    attention, nodes = Attention(n_nodes=40, n_features=3, dropout=0.3), torch.rand(8, 40, 3)
    with torch.no_grad(), torch.random.fork_rng():
        torch.manual_seed(0)
        dropped, kept = (attention.train(mode)(nodes).logit() for mode in (True, False))
    assert not torch.equal(dropped, kept)
    torch.testing.assert_close(dropped.mean(), kept.mean(), rtol=0.03, atol=0.0)


def test_every_stride_th_window_is_trained_on() -> None:
    detector = small(stride=4).fit(rows())
    windows = detector._training_windows([Recording("a", rows(), ("x", "y", "z"))])
    assert len(windows) == len(range(0, 200 - 10, 4))


@pytest.mark.parametrize("n_windows", [1, 33, 70])
def test_windows_attend_alone_however_many_are_scored_at_once(n_windows: int) -> None:
    attention, nodes = Attention(5, 3, 0.3).eval(), torch.randn(n_windows, 5, 3)
    with torch.inference_mode():
        torch.testing.assert_close(attention(nodes), torch.cat([attention(window[None]) for window in nodes]))


def test_the_last_row_alone_is_reconstructed_as_with_all_others() -> None:
    network, windows = Network(9, 2, 4, 0.3).eval(), torch.randn(3, 9, 2)
    with torch.inference_mode():
        (forecast, whole), (same, last) = network(windows), network(windows, last_only=True)
    torch.testing.assert_close(same, forecast)
    torch.testing.assert_close(last, whole[:, -1:])


def test_the_names_of_the_weights_are_those_of_model_files() -> None:
    names = list(Network(9, 2, 4, 0.3).state_dict())
    layer = ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"]
    attention = ["logit", "pair_bias", "target.weight", "target.bias", "source.weight"]
    linear = ["weight", "bias"]
    expected = [f"smoothing.{name}" for name in linear]
    expected += [f"{part}.{name}" for part in ("between_sensors", "between_rows") for name in attention]
    expected += [f"encoder.{name}" for name in layer]
    expected += [f"forecast.{number}.{name}" for number in (0, 3, 6, 9) for name in linear]
    expected += [f"decoder.{name}" for name in layer] + [f"reconstruction.{name}" for name in linear]
    assert names == expected


@pytest.mark.parametrize("n_sensors", [1, 2])
@pytest.mark.parametrize("n_rows", [11, 12])
def test_one_or_two_training_windows_and_sensors_do(n_rows: int, n_sensors: int) -> None:
    detector = small().fit(rows(n_rows, n_sensors=n_sensors))
    assert np.isfinite(detector.score(rows(30, n_sensors=n_sensors, seed=1))[10:]).all()
