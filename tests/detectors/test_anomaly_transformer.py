"""The anomaly transformer: associations, their discrepancy, gradients, layers and score by the paper's equations."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.helpers.planted import in_deviations, series, windows
from tsadbench.base import FloatArray
from tsadbench_detectors.anomaly_transformer import AnomalyTransformer, Layer, discrepancy, prior_association, scale
from tsadbench_detectors.deep.row_embedding import RowEmbedding, sinusoids

TINY = {"window": 8, "d_model": 8, "n_heads": 2, "stride": 1, "min_steps": 1, "max_steps": 5}


def test_the_prior_and_the_discrepancy_are_the_papers_equations() -> None:
    window, generator = 9, np.random.default_rng(0)
    sigma = 0.05 + 1.9 * generator.random(window)
    attention = generator.dirichlet(np.ones(window), size=window)
    distance = np.arange(window)[:, None] - np.arange(window)
    density = np.exp(-(distance**2) / (2 * sigma[:, None] ** 2)) / (np.sqrt(2 * np.pi) * sigma[:, None])
    prior = density / density.sum(axis=1, keepdims=True)

    def divergence(p: FloatArray, q: FloatArray) -> FloatArray:
        return np.asarray((p * (np.log(p + 1e-4) - np.log(q + 1e-4))).sum(axis=1))

    np.testing.assert_allclose(scale(torch.zeros(1)), 3 ** (0.5 + 1e-5) - 1, rtol=1e-5)
    found = prior_association(torch.from_numpy(sigma))
    np.testing.assert_allclose(found, prior, rtol=1e-9, atol=1e-15)
    expected = divergence(prior, attention) + divergence(attention, prior)
    np.testing.assert_allclose(discrepancy(found, torch.from_numpy(attention)), expected, rtol=1e-9)


def test_the_gradient_is_half_the_sum_of_the_papers_two_phases() -> None:
    detector = AnomalyTransformer(**TINY).fit(series(60))
    drawn, weights = torch.randn(3, 8, 8), list(detector.network_.parameters())

    def phase(sign: float, of_prior: Callable[[Tensor], Tensor], of_series: Callable[[Tensor], Tensor]) -> Tensor:
        reconstruction, associations = detector.network_(drawn)
        total = sum(discrepancy(of_prior(prior), of_series(attention)).mean() for prior, attention in associations)
        return (reconstruction - drawn).square().mean() + sign * 3 * total / len(associations)

    phases = phase(1, Tensor.clone, Tensor.detach), phase(-1, Tensor.detach, Tensor.clone)
    expected = [gradient / 2 for gradient in torch.autograd.grad(phases[0] + phases[1], weights)]
    torch.testing.assert_close(list(torch.autograd.grad(detector._loss(drawn), weights)), expected)


def test_a_layer_matches_the_paper() -> None:
    """Against PyTorch's attention, with the same weights."""
    torch.manual_seed(0)
    layer, window = Layer(8, 2), 6
    rows = torch.randn(3, window, 8)
    reference = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    with torch.no_grad():
        reference.in_proj_weight.copy_(layer.projection.weight[:24])
        reference.in_proj_bias.copy_(layer.projection.bias[:24])
        reference.out_proj.load_state_dict(layer.mixing.state_dict())
        attended = layer.first_norm(rows + reference(rows, rows, rows)[0])
        inner = torch.nn.functional.gelu(layer.inner(attended))
        expected = layer.second_norm(attended + layer.outer(inner))
        torch.testing.assert_close(layer(rows)[0], expected)


def test_a_row_embedding_is_a_circular_convolution_plus_the_position() -> None:
    embedding, drawn = RowEmbedding(7, 2, 5), torch.randn(3, 7, 2)
    circular = torch.nn.Conv1d(2, 5, 3, padding=1, padding_mode="circular", bias=False)
    with torch.no_grad():
        circular.weight.copy_(embedding.values.weight.view(5, 3, 2).transpose(1, 2))
        expected = circular(drawn.transpose(1, 2)).transpose(1, 2) + sinusoids(7, 5)
        torch.testing.assert_close(embedding(drawn), expected)
    place, column = 3, np.arange(5)
    angles = place / 10_000 ** (2 * (column // 2) / 5)
    np.testing.assert_allclose(sinusoids(7, 5)[place], np.where(column % 2, np.cos(angles), np.sin(angles)), rtol=1e-5)


@pytest.mark.parametrize(("temperature", "n_layers"), [(1.0, 1), (50.0, 2)])
def test_the_score_is_the_weighted_error_of_the_windows_last_row(temperature: float, n_layers: int) -> None:
    rows = series(60)
    detector = AnomalyTransformer(**TINY, n_layers=n_layers, temperature=temperature).fit(rows)
    alone = AnomalyTransformer(**TINY, n_layers=n_layers, association=False).fit(rows)
    given = windows(in_deviations(rows, rows), 8)
    with torch.inference_mode():
        reconstruction, associations = detector.network_(given)
        by_layer = [discrepancy(prior, attention).mean(dim=1).double() for prior, attention in associations]
    errors = (reconstruction - given).square()[:, -1].numpy()
    exponents = np.exp(-temperature * torch.stack(by_layer).mean(dim=0).numpy())
    weights = exponents[:, -1] / exponents.sum(axis=1)
    np.testing.assert_allclose(alone.score(rows)[7:], errors.mean(axis=1), rtol=1e-4, atol=1e-9)
    np.testing.assert_allclose(detector.score(rows)[7:], weights * errors.mean(axis=1), rtol=1e-3, atol=1e-9)
    np.testing.assert_allclose(detector.contributions(rows)[7:], weights[:, None] * errors / 8, rtol=1e-2, atol=1e-8)
