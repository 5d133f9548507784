"""The autoencoders and the LSTM forecaster: sizes, losses and scores against independent truth."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from tsadbench.utils.arrays import FloatArray
from tsadbench_detectors import conv_ae, lstm_ae, lstm_vae, vanilla_ae, vanilla_lstm
from tsadbench_detectors.conv_ae import ConvAE
from tsadbench_detectors.deep.reconstructor import Reconstructor
from tsadbench_detectors.lstm_ae import LSTMAE
from tsadbench_detectors.lstm_vae import LSTMVAE, divergence
from tsadbench_detectors.vanilla_ae import VanillaAE
from tsadbench_detectors.vanilla_lstm import VanillaLSTM

RECONSTRUCTORS = [VanillaAE, ConvAE, LSTMAE]


def rows(n_rows: int = 120, n_sensors: int = 3, seed: int = 0) -> FloatArray:
    """Return sensors that swing together, with noise."""
    generator = np.random.default_rng(seed)
    phase = np.arange(n_rows)[:, None] / 7.0 + np.arange(n_sensors)
    return 5.0 + np.sin(phase) + 0.1 * generator.normal(size=(n_rows, n_sensors))


def n_weights(network: nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


@pytest.mark.parametrize(
    ("network", "expected"),
    [
        (vanilla_ae.Network(1, 8), 200),
        (conv_ae.Network(8, 8, 0.2), 12_648),
        (conv_ae.Network(8, 1, 0.2), 11_073),
        # Keras has one bias a gate, PyTorch two that are added: 4 x 100 more a layer.
        (vanilla_lstm.Network(8, 100), 124_808 + 2 * 400),
        (lstm_ae.Network(8, 100), 124_808 + 2 * 400),
    ],
    ids=["vanilla-ae", "conv-ae", "conv-ae, one output", "vanilla-lstm", "lstm-ae"],
)
def test_networks_have_as_many_weights_as_published(network: nn.Module, expected: int) -> None:
    assert n_weights(network) == expected


@pytest.mark.parametrize(("window", "n_sensors"), [(1, 3), (2, 1), (29, 3)])
def test_reconstructions_have_the_windows_shape(window: int, n_sensors: int) -> None:
    windows = torch.randn(4, window, n_sensors)
    for network in (
        vanilla_ae.Network(window, n_sensors),
        conv_ae.Network(n_sensors, n_sensors, 0.0),
        lstm_ae.Network(n_sensors, 4),
    ):
        assert network(windows).shape == windows.shape


@pytest.mark.parametrize("cls", RECONSTRUCTORS)
def test_a_rows_score_is_the_sum_of_its_absolute_errors_in_the_window_that_ends_with_it(
    cls: type[Reconstructor],
) -> None:
    window = 6
    detector = cls(window=window, epochs=2, min_steps=1).fit(rows())  # type: ignore[call-arg]
    fresh = rows(40, seed=1)
    z = torch.from_numpy((fresh - rows().mean(axis=0)) / rows().std(axis=0)).float()
    z = torch.cat([z[:1].expand(window - 1, -1), z])
    expected = np.empty(40)
    with torch.inference_mode():
        for row in range(40):
            one = z[row : row + window]
            reconstruction = detector.network_(one[None])[0]
            expected[row] = (reconstruction[-1] - one[-1]).abs().sum().item()
    np.testing.assert_allclose(detector.score(fresh), expected, rtol=1e-4)
    np.testing.assert_allclose(detector.contributions(fresh).sum(axis=1), expected, rtol=1e-4)


def test_the_forecasters_score_is_the_sum_of_the_absolute_errors_of_the_forecast_row() -> None:
    detector = VanillaLSTM(window=4, hidden_size=5, epochs=1, min_steps=1).fit(rows())
    fresh = rows(20, seed=1)
    z = torch.from_numpy((fresh - rows().mean(axis=0)) / rows().std(axis=0)).float()
    z = torch.cat([z[:1].expand(4, -1), z])
    with torch.inference_mode():
        expected = [
            (detector.network_(z[None, row - 4 : row])[0, 0] - z[row]).abs().sum().item() for row in range(4, 24)
        ]
    np.testing.assert_allclose(detector.score(fresh), expected, rtol=1e-4)


def test_one_output_channel_stands_for_all_sensors() -> None:
    detector = ConvAE(window=8, shared_output=True, epochs=1, min_steps=1).fit(rows())
    z = torch.randn(5, 8, 3)
    with torch.inference_mode():
        curve = detector.network_(z)
    assert curve.shape == (5, 8, 1)
    fresh = rows(8, seed=2)
    scaled = (fresh - rows().mean(axis=0)) / rows().std(axis=0)
    with torch.inference_mode():
        last = detector.network_(torch.from_numpy(scaled).float()[None])[0, -1, 0].item()
    assert detector.score(fresh)[-1] == pytest.approx(np.abs(scaled[-1] - last).sum(), rel=1e-4)


def test_the_divergence_is_that_of_pytorchs_distributions() -> None:
    mean, log_variance = torch.randn(6, 3), torch.randn(6, 3)
    ours = torch.distributions.Normal(mean, (0.5 * log_variance).exp())
    standard = torch.distributions.Normal(torch.zeros(3), torch.ones(3))
    expected = torch.distributions.kl_divergence(ours, standard).sum(dim=1)
    torch.testing.assert_close(divergence(mean, log_variance), expected)


def test_the_variational_score_is_the_last_rows_negative_log_density() -> None:
    detector = LSTMVAE(window=5, hidden_size=6, epochs=2, min_steps=1).fit(rows())
    fresh = rows(30, seed=3)
    z = torch.from_numpy((fresh - rows().mean(axis=0)) / rows().std(axis=0)).float()
    z = torch.cat([z[:1].expand(4, -1), z])
    expected = np.empty((30, 3))
    network = detector.network_
    assert isinstance(network, lstm_vae.Network)
    with torch.inference_mode():
        for row in range(30):
            latent, _ = network.encode(z[None, row : row + 5])
            mean, log_variance = network.decode(latent, 5)
            density = torch.distributions.Normal(mean[0, -1], (0.5 * log_variance[0, -1]).exp())
            expected[row] = -density.log_prob(z[row + 4]).numpy()
    np.testing.assert_allclose(detector.contributions(fresh), expected, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(detector.score(fresh), expected.sum(axis=1), rtol=1e-3, atol=1e-4)
