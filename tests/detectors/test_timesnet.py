"""TimesNet: periods and folding against numpy, the mean kernel against six convolutions, and the score."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.helpers.planted import in_deviations, series, windows
from tsadbench.base import FloatArray
from tsadbench_detectors.timesnet import Inception, TimesBlock, TimesNet

TINY = {"window": 12, "d_model": 4, "d_ff": 6, "n_layers": 2, "stride": 1, "min_steps": 1, "max_steps": 5}


def six_convolutions(inception: Inception, images: Tensor) -> Tensor:
    """Return the mean of six separate convolutions, one for each kernel."""
    each = [
        nn.functional.conv2d(images, kernel, inception.bias, padding=number)
        for number, kernel in enumerate(inception.kernels)
    ]
    return torch.stack(each).mean(dim=0)


def block_by_hand(block: TimesBlock, rows: Tensor) -> FloatArray:
    """Return the block's output for one window [window, width], period by period."""
    window, width = rows.shape
    spectrum = np.abs(np.fft.rfft(rows.numpy(), axis=0)).mean(axis=1)
    frequencies = 1 + np.argsort(-spectrum[1:])[: block.top_k]
    weights = np.exp(spectrum[frequencies] - spectrum[frequencies].max())
    total = rows.numpy().copy()
    for frequency, weight in zip(frequencies, weights / weights.sum(), strict=True):
        period = math.ceil(window / frequency)
        n_cycles = math.ceil(window / period)
        image = np.zeros((n_cycles * period, width))
        image[:window] = rows.numpy()
        folded_rows = torch.from_numpy(image.reshape(n_cycles, period, width).transpose(2, 0, 1).copy())[None]
        inner = nn.functional.gelu(six_convolutions(block.inner, folded_rows))
        outer = six_convolutions(block.outer, inner)[0].numpy()
        total += weight * outer.transpose(1, 2, 0).reshape(-1, width)[:window]
    return np.asarray(total)


@pytest.mark.parametrize(("window", "top_k"), [(24, 3), (13, 6)])
@torch.no_grad()
def test_a_block_matches_the_paper_for_each_window(window: int, top_k: int) -> None:
    torch.manual_seed(0)
    block, generator = TimesBlock(4, 3, top_k).double(), torch.Generator().manual_seed(0)
    rows = torch.randn(30, window, 4, generator=generator, dtype=torch.float64).cumsum(dim=1)
    assert [kernel.shape[-1] for kernel in block.inner.kernels] == [1, 3, 5, 7, 9, 11]
    for found, one in zip(block(rows), rows, strict=True):
        np.testing.assert_allclose(found, block_by_hand(block, one), rtol=1e-9)


@pytest.mark.parametrize("normalised", [True, False])
def test_the_score_is_the_mean_squared_error_of_the_windows_last_row(normalised: bool) -> None:
    rows = series(60)
    detector = TimesNet(**TINY, normalised=normalised).fit(rows)
    given = windows(in_deviations(rows, rows), 12)
    with torch.inference_mode():
        errors = (detector.network_(given) - given).square()[:, -1].numpy()
    np.testing.assert_allclose(detector.contributions(rows)[11:], errors / 8, rtol=1e-3, atol=1e-8)
