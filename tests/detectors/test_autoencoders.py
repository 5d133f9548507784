"""The autoencoders and the LSTM forecaster: sizes, divergence and scores against independent computations."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from tests.helpers.planted import in_deviations, padded, waves, windows
from tsadbench_detectors import conv_ae, lstm_ae, vanilla_ae, vanilla_lstm
from tsadbench_detectors.conv_ae import ConvAE
from tsadbench_detectors.deep.reconstructor import Reconstructor
from tsadbench_detectors.lstm_ae import LSTMAE
from tsadbench_detectors.lstm_vae import LSTMVAE, divergence
from tsadbench_detectors.vanilla_ae import VanillaAE
from tsadbench_detectors.vanilla_lstm import VanillaLSTM

SHAPE = {"window": 6, "epochs": 2, "min_steps": 1}
TRAINING, FRESH = waves(), waves(40, seed=1)


@pytest.mark.parametrize(
    ("network", "expected"),
    [
        (vanilla_ae.Network(1, 8), 200),
        (conv_ae.Network(8, 8, 0.2), 12_648),
        (conv_ae.Network(8, 1, 0.2), 11_073),
        # Keras has one bias per gate, PyTorch adds two: 4 x 100 more weights per layer.
        (vanilla_lstm.Network(8, 100), 124_808 + 2 * 400),
        (lstm_ae.Network(8, 100), 124_808 + 2 * 400),
    ],
    ids=["vanilla-ae", "conv-ae", "conv-ae, one output", "vanilla-lstm", "lstm-ae"],
)
def test_networks_have_as_many_weights_as_published(network: nn.Module, expected: int) -> None:
    assert sum(parameter.numel() for parameter in network.parameters()) == expected


@pytest.mark.parametrize(
    ("cls", "more"), [(VanillaAE, {}), (ConvAE, {}), (ConvAE, {"shared_output": True}), (LSTMAE, {})]
)
def test_a_score_is_the_sum_of_the_absolute_errors_of_the_windows_last_row(
    cls: type[Reconstructor], more: dict[str, bool]
) -> None:
    detector = cls(**SHAPE, **more).fit(TRAINING)  # type: ignore[arg-type]
    given = windows(padded(in_deviations(FRESH, TRAINING), 5), 6)
    with torch.inference_mode():
        expected = (detector.network_(given) - given)[:, -1].abs().sum(dim=1)
    np.testing.assert_allclose(detector.score(FRESH), expected, rtol=1e-4)


def test_the_forecasters_score_is_the_sum_of_the_absolute_errors_of_the_forecast_row() -> None:
    detector = VanillaLSTM(**SHAPE, hidden_size=5).fit(TRAINING)
    given = windows(padded(in_deviations(FRESH, TRAINING), 6), 7)
    with torch.inference_mode():
        expected = (detector.network_(given[:, :6])[:, 0] - given[:, 6]).abs().sum(dim=1)
    np.testing.assert_allclose(detector.score(FRESH), expected, rtol=1e-4)


def test_the_divergence_matches_pytorchs_distributions() -> None:
    mean, log_variance = torch.randn(6, 3), torch.randn(6, 3)
    ours = torch.distributions.Normal(mean, (0.5 * log_variance).exp())
    standard = torch.distributions.Normal(torch.zeros(3), torch.ones(3))
    expected = torch.distributions.kl_divergence(ours, standard).sum(dim=1)
    torch.testing.assert_close(divergence(mean, log_variance), expected)


def test_the_variational_score_is_the_last_rows_negative_log_density() -> None:
    detector = LSTMVAE(**SHAPE, hidden_size=6).fit(TRAINING)
    given = windows(padded(in_deviations(FRESH, TRAINING), 5), 6)
    with torch.inference_mode():
        latent, _ = detector.network_.encode(given)
        mean, log_variance = detector.network_.decode(latent, 6)
        density = torch.distributions.Normal(mean[:, -1], (0.5 * log_variance[:, -1]).exp())
        expected = -density.log_prob(given[:, -1]).numpy()
    np.testing.assert_allclose(detector.contributions(FRESH), expected, rtol=1e-3, atol=1e-4)
