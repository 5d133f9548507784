"""The recurrent networks against PyTorch's layers written out with the same parameters: outputs, gradients, scores."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tsadbench.utils.arrays import FloatArray
from tsadbench_detectors import lstm_ae, lstm_vae, vanilla_lstm
from tsadbench_detectors.lstm_ae import LSTMAE


def reconstruct(network: nn.Module, windows: Tensor) -> Tensor:
    """Return the reconstruction by `torch.nn` layers that take the batch first and a copy of the summary a step."""
    assert isinstance(network, lstm_ae.Network)
    hidden_size = network.head.in_features
    encoder = nn.LSTM(windows.shape[2], hidden_size, batch_first=True)
    decoder = nn.LSTM(hidden_size, hidden_size, batch_first=True)
    weights = dict(network.named_parameters())
    of_encoder = {name.removeprefix("encoder."): weights[name] for name in weights if name.startswith("encoder.")}
    of_decoder = {name.removeprefix("decoder."): weights[name] for name in weights if name.startswith("decoder.")}
    summary = torch.func.functional_call(encoder, of_encoder, (windows,))[0][:, -1:]
    states = torch.func.functional_call(decoder, of_decoder, (summary.expand(-1, windows.shape[1], -1),))[0]
    reconstruction: Tensor = network.head(states)
    return reconstruction


def outcome(
    network: nn.Module, forward: Callable[[nn.Module, Tensor], Tensor], windows: Tensor
) -> tuple[Tensor, dict[str, Tensor]]:
    """Return the reconstruction, and the gradients of its mean squared error by all parameters and the windows."""
    windows = windows.clone().requires_grad_()
    reconstruction = forward(network, windows)
    network.zero_grad()
    (reconstruction - windows).square().mean().backward()  # type: ignore[no-untyped-call]
    gradients = {name: weight.grad.clone() for name, weight in network.named_parameters() if weight.grad is not None}
    assert windows.grad is not None
    return reconstruction.detach(), {**gradients, "windows": windows.grad}


# The decoder has one way for batches narrower than its states and one for wider ones; one window is a batch, too.
@pytest.mark.parametrize("batch", [1, 4, 5, 6, 30])
@pytest.mark.parametrize("window", [1, 7])
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-12)], ids=["float32", "float64"]
)
def test_the_autoencoder_is_that_of_plain_layers(batch: int, window: int, dtype: torch.dtype, tolerance: float) -> None:
    torch.manual_seed(batch)
    torch.set_default_dtype(dtype)
    try:
        network, windows = lstm_ae.Network(3, 5), torch.randn(batch, window, 3)
        found, gradients = outcome(network, lambda module, inputs: module(inputs), windows)
        expected, expected_gradients = outcome(network, reconstruct, windows)
    finally:
        torch.set_default_dtype(torch.float32)
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)
    assert gradients.keys() == {*dict(network.named_parameters()), "windows"} == expected_gradients.keys()
    for name, gradient in gradients.items():
        # The weights of the state before have none if there is a single step from the state 0.
        assert window == 1 or expected_gradients[name].abs().max() > 0, name
        torch.testing.assert_close(gradient, expected_gradients[name], rtol=tolerance, atol=tolerance, msg=name)


def test_the_autoencoders_gradient_is_the_slope_of_its_output() -> None:
    network = lstm_ae.Network(2, 3).double()
    assert torch.autograd.gradcheck(network, (torch.randn(2, 4, 2, dtype=torch.float64, requires_grad=True),))


def rows(n_rows: int, seed: int) -> FloatArray:
    generator = np.random.default_rng(seed)
    return np.sin(np.arange(n_rows)[:, None] / 5.0 + np.arange(3)) + 0.1 * generator.normal(size=(n_rows, 3))


# 16: every batch is wider than the states; 400: none is; 100: some are.
@pytest.mark.parametrize("hidden_size", [16, 100, 400])
def test_the_autoencoders_scores_are_those_of_plain_layers(hidden_size: int) -> None:
    training, fresh = rows(150, seed=0), rows(300, seed=1)
    detector = LSTMAE(window=6, hidden_size=hidden_size, epochs=1, min_steps=1).fit(training)
    scaled = torch.from_numpy((fresh - training.mean(axis=0)) / training.std(axis=0)).float()
    windows = scaled.unfold(0, 6, 1).transpose(1, 2)
    with torch.no_grad():
        expected = (reconstruct(detector.network_, windows)[:, -1] - windows[:, -1]).abs().sum(dim=1)
    np.testing.assert_allclose(detector.score(fresh)[5:], expected.numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("network", "names"),
    [
        (vanilla_lstm.Network(3, 5), {"recurrent": 2, "head": 0}),
        (lstm_ae.Network(3, 5), {"encoder": 1, "decoder": 1, "head": 0}),
        (lstm_vae.Network(3, 5, 2), {"encoder": 1, "to_latent": 0, "decoder": 1, "to_rows": 0}),
    ],
    ids=["vanilla-lstm", "lstm-ae", "lstm-vae"],
)
def test_model_files_find_their_weights_by_the_names_that_they_have(network: nn.Module, names: dict[str, int]) -> None:
    recurrent = ["weight_ih", "weight_hh", "bias_ih", "bias_hh"]
    expected = [
        f"{layer}.{weight}"
        for layer, n_recurrent in names.items()
        for weight in ([f"{kind}_l{depth}" for depth in range(n_recurrent) for kind in recurrent] or ["weight", "bias"])
    ]
    assert list(network.state_dict()) == expected


def test_the_autoencoders_initial_weights_are_those_of_pytorchs_layers() -> None:
    torch.manual_seed(3)
    network = lstm_ae.Network(3, 5)
    torch.manual_seed(3)
    expected = [*nn.LSTM(3, 5).parameters(), *nn.LSTM(5, 5).parameters(), *nn.Linear(5, 3).parameters()]
    for found, drawn in zip(network.parameters(), expected, strict=True):
        torch.testing.assert_close(found, drawn, rtol=0.0, atol=0.0)
