"""The anomaly transformer: associations and their discrepancy against numpy, the two phases, the score's weight."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.helpers.planted import series
from tsadbench.base import FloatArray
from tsadbench_detectors.anomaly_transformer import AnomalyTransformer, Layer, scale
from tsadbench_detectors.deep.anomaly_attention import anomaly_attention
from tsadbench_detectors.deep.row_embedding import RowEmbedding, sinusoids


def by_hand(queries: FloatArray, keys: FloatArray, sigma: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return S, P and the discrepancy of one sequence, as the paper's equations 2, 3 and 4 have them."""
    window, width = queries.shape
    attention, prior = np.empty((window, window)), np.empty((window, window))
    for i in range(window):
        logits = np.array([queries[i] @ keys[j] / np.sqrt(width) for j in range(window)])
        attention[i] = np.exp(logits) / np.exp(logits).sum()
        density = [
            np.exp(-((j - i) ** 2) / (2 * sigma[i] ** 2)) / (np.sqrt(2 * np.pi) * sigma[i]) for j in range(window)
        ]
        prior[i] = density / np.sum(density)

    def divergence(p: FloatArray, q: FloatArray) -> FloatArray:
        return np.asarray((p * (np.log(p + 1e-4) - np.log(q + 1e-4))).sum(axis=1))

    return attention, prior, divergence(prior, attention) + divergence(attention, prior)


def drawn(n: int = 5, window: int = 9, width: int = 4) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    queries, keys, values = torch.randn(3, n, window, width, generator=generator, dtype=torch.float64)
    sigma = 0.05 + 1.9 * torch.rand(n, window, generator=generator, dtype=torch.float64)
    return queries, keys, values, sigma


@pytest.mark.parametrize("with_gradient", [True, False])
def test_attention_and_discrepancy_are_the_papers_equations(with_gradient: bool) -> None:
    queries, keys, values, sigma = drawn()
    with torch.set_grad_enabled(with_gradient):
        mixed, for_prior, for_series = anomaly_attention(queries, keys, values, sigma)
    for n in range(len(queries)):
        attention, _, discrepancy = by_hand(queries[n].numpy(), keys[n].numpy(), sigma[n].numpy())
        np.testing.assert_allclose(mixed[n], attention @ values[n].numpy(), rtol=1e-9)
        np.testing.assert_allclose(for_prior[n], discrepancy, rtol=1e-9)
        np.testing.assert_allclose(for_series[n], discrepancy, rtol=1e-9)


def test_scales_are_the_published_ones() -> None:
    raw = np.linspace(-3, 3, 13)
    expected = 3 ** (1 / (1 + np.exp(-5 * raw)) + 1e-5) - 1
    np.testing.assert_allclose(scale(torch.from_numpy(raw)), expected, rtol=1e-9)


def plain(queries: Tensor, keys: Tensor, values: Tensor, sigma: Tensor) -> tuple[Tensor, Tensor, Callable[..., Tensor]]:
    """Return the mixed rows, P as autograd sees it, and the discrepancy of any two associations."""
    attention = torch.softmax(queries @ keys.mT / queries.shape[-1] ** 0.5, dim=-1)
    places = torch.arange(queries.shape[1], dtype=sigma.dtype)
    density = torch.exp(-(places[:, None] - places).square() / (2 * sigma[..., None].square()))
    prior = density / density.sum(dim=-1, keepdim=True)

    def discrepancy(of_prior: Callable[[Tensor], Tensor], of_series: Callable[[Tensor], Tensor]) -> Tensor:
        p, s = of_prior(prior), of_series(attention)
        return ((p - s) * ((p + 1e-4).log() - (s + 1e-4).log())).sum(dim=-1)

    return attention @ values, prior, discrepancy


def same(tensor: Tensor) -> Tensor:
    return tensor


# All sequences are worked on at once, or two of them.
@pytest.mark.parametrize("window", [9, 150])
def test_one_pass_has_the_gradients_of_the_papers_two_phases(window: int) -> None:
    inputs = tuple(one.requires_grad_() for one in drawn(window=window))
    target = torch.linspace(-1, 1, inputs[0].numel(), dtype=torch.float64).view_as(inputs[0])

    mixed, _, discrepancy = plain(*inputs)
    error = (mixed - target).square().mean()
    minimise = torch.autograd.grad(
        error + 3 * discrepancy(same, Tensor.detach).mean(), inputs, retain_graph=True, allow_unused=True
    )
    maximise = torch.autograd.grad(error - 3 * discrepancy(Tensor.detach, same).mean(), inputs, allow_unused=True)

    mixed, for_prior, for_series = anomaly_attention(*inputs)
    error = (mixed - target).square().mean()
    found = torch.autograd.grad(error + 1.5 * (for_prior.mean() - for_series.mean()), inputs)
    for one, first, second in zip(found, minimise, maximise, strict=True):
        parts = [part for part in (first, second) if part is not None]
        torch.testing.assert_close(one, torch.stack(parts).sum(dim=0) / 2, rtol=1e-9, atol=1e-15)


def test_a_layer_is_that_of_the_paper() -> None:
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
        torch.testing.assert_close(layer(rows, last_only=True)[0], expected[:, -1:])


def test_a_row_is_described_by_its_circle_and_its_place() -> None:
    embedding, windows = RowEmbedding(7, 2, 5), torch.randn(3, 7, 2)
    circular = torch.nn.Conv1d(2, 5, 3, padding=1, padding_mode="circular", bias=False)
    with torch.no_grad():
        circular.weight.copy_(embedding.values.weight.view(5, 3, 2).transpose(1, 2))
        expected = circular(windows.transpose(1, 2)).transpose(1, 2) + sinusoids(7, 5)
        torch.testing.assert_close(embedding(windows), expected)
    place, column = 3, np.arange(5)
    angles = place / 10_000 ** (2 * (column // 2) / 5)
    np.testing.assert_allclose(sinusoids(7, 5)[place], np.where(column % 2, np.cos(angles), np.sin(angles)), rtol=1e-5)


TINY = {"window": 8, "d_model": 8, "n_heads": 2, "stride": 1, "min_steps": 1, "max_steps": 5}


@pytest.mark.parametrize(("temperature", "n_layers"), [(1.0, 1), (50.0, 2)])
def test_the_score_is_the_weighted_error_of_the_windows_last_row(temperature: float, n_layers: int) -> None:
    rows = series(60)
    detector = AnomalyTransformer(**TINY, n_layers=n_layers, temperature=temperature).fit(rows)
    alone = AnomalyTransformer(**TINY, n_layers=n_layers, association=False).fit(rows)
    z = torch.from_numpy((rows - rows.mean(axis=0)) / rows.std(axis=0)).float()
    windows = torch.stack([z[i : i + 8] for i in range(len(z) - 7)])
    with torch.inference_mode():
        reconstruction, discrepancy, _ = detector.network_(windows)
    errors = (reconstruction - windows).square()[:, -1].numpy()
    exponents = np.exp(-temperature * discrepancy.numpy().astype(np.float64))
    weights = exponents[:, -1] / exponents.sum(axis=1)
    np.testing.assert_allclose(alone.score(rows)[7:], errors.mean(axis=1), rtol=1e-4, atol=1e-9)
    np.testing.assert_allclose(detector.score(rows)[7:], weights * errors.mean(axis=1), rtol=1e-3, atol=1e-9)
    np.testing.assert_allclose(detector.contributions(rows)[7:], weights[:, None] * errors / 8, rtol=1e-2, atol=1e-8)


def test_the_loss_is_the_reconstruction_error_by_value() -> None:
    rows = series(60)
    detector = AnomalyTransformer(**TINY).fit(rows)
    without = AnomalyTransformer(**TINY, weight=0.0).fit(rows)
    z = torch.from_numpy((rows - rows.mean(axis=0)) / rows.std(axis=0)).float()
    windows = torch.stack([z[i : i + 8] for i in range(len(z) - 7)])
    with torch.no_grad():
        expected = (detector.network_(windows)[0] - windows).square().mean()
    np.testing.assert_allclose(detector.held_out_loss(rows), expected, rtol=1e-5)
    assert detector.losses_[0][0] != without.losses_[0][0]  # the phases' gradients are not those of the error alone
