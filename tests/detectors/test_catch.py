"""CATCH: patches, masks, attention, losses, the way back to rows and the score, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.helpers.planted import series
from tsadbench.base import FloatArray
from tsadbench_detectors.catch import CATCH, Fusion, Network, clustering_loss


def network(window: int = 16, patch: tuple[int, int] = (6, 5), head_layers: int = 0) -> Network:
    """Return a network for three sensors."""
    torch.manual_seed(0)
    layers = [lambda: Fusion(8, 2, 4, 12, 0.0)] * 2
    net = Network(3, window, patch, 8, layers, n_features=4, head_layers=head_layers)
    nn.init.normal_(net.masks.weight)
    return net.double().eval()


def small(**parameters: object) -> CATCH:
    shape = {"window": 12, "patch_size": 4, "patch_stride": 4, "score_rows": 6, "d_model": 4, "cf_dim": 8}
    return CATCH(**{**shape, "head_dim": 4, "feed_forward": 8, "epochs": 2, "min_steps": 1, **parameters})  # type: ignore[arg-type]


def two_windows(length: int = 16) -> FloatArray:
    return np.random.default_rng(0).normal(size=(2, 3, length))


@pytest.mark.parametrize(("window", "patch", "n_patches"), [(16, (6, 5), 3), (64, (8, 4), 15)])
def test_patches_are_real_then_imaginary_parts_of_neighbouring_frequencies(
    window: int, patch: tuple[int, int], n_patches: int
) -> None:
    signals = two_windows(window)
    found = network(window=window, patch=patch).patches(torch.from_numpy(signals)).numpy()
    size, stride = patch
    assert found.shape == (2, n_patches, 3, 2 * size)
    frequencies = np.exp(-2j * np.pi * np.outer(np.arange(window), np.arange(window)) / window)
    spectra = signals @ frequencies / np.sqrt(window)
    for number in range(n_patches):
        part = spectra[:, :, number * stride : number * stride + size]
        np.testing.assert_allclose(found[:, number], np.concatenate([part.real, part.imag], axis=2), atol=1e-10)
    assert n_patches * stride + size - stride == window  # the last patch ends with the last frequency


def test_in_training_masks_are_drawn_with_the_generators_probabilities() -> None:
    net = network().train()
    tokens = torch.from_numpy(np.random.default_rng(2).normal(size=(1, 3, 12)) / 4).expand(40_000, -1, -1)
    mask = net.mask(tokens)
    values = mask.detach().numpy()
    np.testing.assert_allclose(values, values.round(), atol=1e-12)
    probabilities = 1 / (1 + np.exp(-(tokens[0].numpy() @ net.masks.weight.detach().numpy().T)))
    off = ~np.eye(3, dtype=bool)
    np.testing.assert_allclose(values.mean(axis=0)[off], probabilities[off], atol=0.02)
    assert (values[:, ~off] == 1).all()
    # Straight through: the gradient is that of the soft mask.
    mask.sum().backward()
    assert net.masks.weight.grad is not None
    assert net.masks.weight.grad.abs().min() > 0


def attended(layer: Fusion, tokens: Tensor, mask: Tensor) -> Tensor:
    """Return the layer's output tokens, by PyTorch's own attention."""
    parts = layer.query_key_value(layer.first_norm(tokens)).unflatten(2, (3, layer.heads, -1)).permute(2, 0, 3, 1, 4)
    seen = nn.functional.scaled_dot_product_attention(*parts, attn_mask=mask[:, None] > 0)
    tokens = tokens + layer.output(seen.transpose(1, 2).flatten(2))
    return torch.as_tensor(tokens + layer.dense(layer.second_norm(tokens)))


def test_clustering_loss_by_hand() -> None:
    rng = np.random.default_rng(4)
    query, key = rng.normal(size=(2, 5, 2, 3, 4))
    mask = np.maximum(rng.integers(0, 2, size=(5, 3, 3)), np.eye(3))
    terms = []
    for sequence in range(5):
        for head in range(2):
            for i in range(3):
                q = query[sequence, head, i]
                e = [np.exp(q @ k / np.linalg.norm(q) / np.linalg.norm(k) / 0.07) for k in key[sequence, head]]
                terms.append(-np.log(sum(e[j] for j in range(3) if mask[sequence, i, j]) / sum(e)))
    others = np.mean([(one.sum() - 3) / 6 for one in mask])
    found = clustering_loss(*(torch.from_numpy(part) for part in (query, key, mask)))
    np.testing.assert_allclose(found.item(), np.mean(terms) + 0.5 * others, rtol=1e-9)


@pytest.mark.parametrize("head_layers", [0, 2])
@torch.no_grad()
def test_the_way_from_spectrum_to_rows(head_layers: int) -> None:
    net, signals = network(head_layers=head_layers), torch.from_numpy(two_windows())
    found, spectrum, _ = net(signals)
    for window, patches in enumerate(net.patches(signals)):
        tokens, mask = net.embedding(patches), net.mask(patches)
        for layer in net.layers:
            assert isinstance(layer, Fusion)
            tokens = attended(layer, tokens, mask)
        for sensor, flat in enumerate(net.features(tokens).transpose(0, 1).flatten(1)):
            parts = []
            for head in (net.real, net.imaginary):
                inputs = flat
                for dense in head.layers:
                    inputs = inputs + dense(inputs).relu()
                parts.append(head.output(inputs).numpy())
            reconstructed = (parts[0] + 1j * parts[1]) * np.sqrt(16)
            np.testing.assert_allclose(spectrum[window, sensor], reconstructed, atol=1e-9)
            wave = np.fft.ifft(reconstructed)
            expected = net.merge(torch.from_numpy(np.concatenate([wave.real, wave.imag])))
            np.testing.assert_allclose(found[window, sensor], expected, atol=1e-9)


def normal_windows(windows: FloatArray, normalised: bool) -> tuple[FloatArray, FloatArray]:
    mean, scale = windows.mean(axis=1, keepdims=True), np.sqrt(windows.var(axis=1, keepdims=True) + 1e-5)
    return ((windows - mean) / scale, scale) if normalised else (windows, np.ones_like(scale))


@pytest.mark.parametrize("normalised", [True, False])
def test_the_loss_is_the_weighted_sum_of_its_terms(normalised: bool) -> None:
    detector = small(normalised=normalised, clustering_weight=0.2, spectral_weight=0.3).fit(series(80))
    scaled = detector.scaler_.scaled(series(80, seed=1))
    windows = np.stack([scaled[start : start + 12] for start in (0, 20, 40)])
    normal, scale = normal_windows(windows, normalised)
    net = detector.network_.double()
    with torch.no_grad():
        made, spectrum, clustering = net(torch.from_numpy(normal).mT, with_clustering=True)
        found = detector._loss(torch.from_numpy(windows)).item()
    back = made.mT.numpy() * scale
    spectral = np.abs(spectrum.mT.numpy() - np.fft.fft(normal, axis=1)).mean()
    error = ((back - normal * scale) ** 2).mean()
    np.testing.assert_allclose(found, error + 0.2 * clustering.item() + 0.3 * spectral, rtol=1e-6)


@pytest.mark.parametrize("normalised", [True, False])
def test_a_row_is_scored_by_its_error_and_the_spectrum_of_the_last_rows(normalised: bool) -> None:
    detector = small(normalised=normalised).fit(series(80))
    fresh = series(60, seed=1)
    scaled, by_sensor = detector.scaler_.scaled(fresh), detector.contributions(fresh)
    for row in (11, 30, 59):
        normal, scale = normal_windows(scaled[None, row - 11 : row + 1], normalised)
        with torch.no_grad():
            made = detector.network_(torch.from_numpy(normal).float().mT)[0].mT.numpy()
        errors = ((made - normal) * scale)[0, -6:]
        spectral = np.abs(np.fft.fft(errors, axis=0)).mean(axis=0)
        np.testing.assert_allclose(by_sensor[row], (errors[-1] ** 2 + 0.05 * spectral) / 8, rtol=1e-3)
    np.testing.assert_allclose(detector.score(fresh), by_sensor.sum(axis=1), rtol=1e-12)
