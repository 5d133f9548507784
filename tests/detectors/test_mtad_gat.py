"""MTAD-GAT: attention and scores against slow implementations of their formulas."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from tests.helpers.planted import in_range, padded, waves, windows
from tsadbench_detectors.mtad_gat import MTADGAT, Attention, Network


def small(**parameters: object) -> MTADGAT:
    return MTADGAT(**{"window": 10, "stride": 2, "hidden_size": 8, "epochs": 2, "min_steps": 1, **parameters})  # type: ignore[arg-type]


def attended(nodes: Tensor, attention: Attention) -> Tensor:
    """Attend pair by pair, with w' [v_i; v_j] written out."""
    weight = torch.cat([attention.target.weight[0], attention.source.weight[0]])
    logits = torch.stack([torch.stack([weight @ torch.cat([one, other]) for other in nodes]) for one in nodes])
    return torch.sigmoid(nn.functional.leaky_relu(logits, 0.2).softmax(dim=1) @ nodes)


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


def test_the_network_for_one_window() -> None:
    torch.manual_seed(0)
    network = Network(window=9, n_sensors=3, hidden_size=4, dropout=0.3).eval()
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    window = torch.randn(9, 3)
    with torch.inference_mode():
        smooth = network.smoothing(window.T).relu().T
        beside = [smooth, attended(smooth.T, network.between_sensors).T, attended(smooth, network.between_rows)]
        last = network.encoder(torch.cat(beside, dim=1))[0][-1]
        decoded, _ = network.decoder(last.repeat(9, 1))
        forecast, reconstruction = network(window[None])
        torch.testing.assert_close(forecast[0], network.forecast(last))
        torch.testing.assert_close(reconstruction[0], network.reconstruction(decoded))
