"""MTAD-GAT: attention and scores against slow implementations of their formulas."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from tests.helpers.planted import in_range, padded, waves, windows
from tsadbench.utils.arrays import FloatArray
from tsadbench_detectors.mtad_gat import MTADGAT, Attention, Network


def small(**parameters: object) -> MTADGAT:
    return MTADGAT(**{"window": 10, "stride": 2, "hidden_size": 8, "epochs": 2, "min_steps": 1, **parameters})  # type: ignore[arg-type]


def sigmoid(x: FloatArray) -> FloatArray:
    return 1.0 / (1.0 + np.exp(-x))


def attended(nodes: FloatArray, w: dict[str, FloatArray], name: str) -> FloatArray:
    z = nodes @ w[f"{name}.target.weight"].T + nodes @ w[f"{name}.source.weight"][0]
    exponentials = np.exp(np.where(z > 0, z, 0.2 * z))
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


def test_the_score_by_hand() -> None:
    detector, fresh = small(gamma=0.5).fit(waves()), waves(30, seed=1)
    given = windows(padded(in_range(fresh, waves()), 10), 11)
    with torch.inference_mode():
        forecast, reconstruction = detector.network_(given[:, :10])[0], detector.network_(given[:, 1:])[1]
        missed = (forecast - given[:, 10]).abs() + 0.5 * (reconstruction[:, -1] - given[:, 10]).abs()
    np.testing.assert_allclose(detector.contributions(fresh), missed / 1.5 / 3, rtol=1e-4, atol=1e-6)


def test_the_loss_is_the_sum_of_both_roots() -> None:
    detector, given = small(dropout=0.0).fit(waves()), torch.randn(4, 11, 3)
    with torch.inference_mode():
        forecast, reconstruction = detector.network_(given[:, :10])
        expected = nn.functional.mse_loss(forecast, given[:, 10]).sqrt()
        expected = expected + nn.functional.mse_loss(reconstruction, given[:, :10]).sqrt()
        torch.testing.assert_close(detector._loss(given), expected)


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
    attention, nodes = Attention(n_features=3, dropout=0.3), torch.rand(8, 40, 3)
    with torch.no_grad(), torch.random.fork_rng():
        torch.manual_seed(0)
        dropped, kept = (attention.train(mode)(nodes).logit() for mode in (True, False))
    assert not torch.equal(dropped, kept)
    torch.testing.assert_close(dropped.mean(), kept.mean(), rtol=0.03, atol=0.0)
