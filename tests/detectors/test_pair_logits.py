"""Logits of every two nodes against all pairs laid out, and a mask of dropout against its share."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from tsadbench_detectors.deep.dropout import Dropout
from tsadbench_detectors.deep.pair_logits import pair_logits

# Batch, nodes, width: both layouts, one window, one node; then sizes that take several blocks of windows.
SHAPES = [(2, 5, 3), (3, 3, 7), (1, 4, 4), (2, 1, 3), (1, 2, 1)]
LARGE = [(7, 130, 4), (9, 40, 50)]


def leaves_of(batch: int, nodes: int, width: int, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    generator = torch.Generator().manual_seed(batch * nodes)
    shapes = ((batch, nodes, width), (batch, nodes, width), (width,), (nodes, nodes))
    return [torch.randn(*shape, generator=generator, dtype=dtype).requires_grad_() for shape in shapes]


def laid_out(target: Tensor, source: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return nn.functional.leaky_relu(target[:, :, None] + source[:, None], 0.2) @ weight + bias


@pytest.mark.parametrize("shape", SHAPES + LARGE)
def test_logits_and_their_gradients_are_those_of_every_pair_laid_out(shape: tuple[int, int, int]) -> None:
    leaves = leaves_of(*shape)
    found, expected = pair_logits(*leaves), laid_out(*leaves)
    torch.testing.assert_close(found, expected)
    upstream = torch.randn(expected.shape, dtype=torch.float64)
    for ours, theirs in zip(
        torch.autograd.grad(found, leaves, upstream), torch.autograd.grad(expected, leaves, upstream), strict=True
    ):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_gradient_against_differences(shape: tuple[int, int, int]) -> None:
    assert torch.autograd.gradcheck(pair_logits, leaves_of(*shape))


@pytest.mark.parametrize("shape", LARGE)
def test_single_precision_is_kept(shape: tuple[int, int, int]) -> None:
    leaves = leaves_of(*shape, dtype=torch.float32)
    expected = laid_out(*(leaf.double() for leaf in leaves)).float()
    torch.testing.assert_close(pair_logits(*leaves), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.5, 0.999_999])
def test_dropout_drops_its_share_and_scales_the_rest(share: float) -> None:
    dropout, ones = Dropout(share), torch.ones(401, 999)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        dropped = dropout(ones)
    realised = min(round(share * 65536), 65535) / 65536
    kept = dropped != 0
    assert (
        abs(kept.double().mean().item() - (1 - realised))
        < 5 * (realised * (1 - realised) / ones.numel()) ** 0.5 + 1e-12
    )
    torch.testing.assert_close(dropped[kept], torch.full_like(dropped[kept], 1 / (1 - realised)))
    # Neighbours come from the same draw: they are dropped independently.
    both = (kept.flatten()[:-1] & kept.flatten()[1:]).double().mean().item()
    assert both == pytest.approx((1 - realised) ** 2, abs=5e-3)


def test_dropout_is_drawn_by_the_seed_and_off_when_scoring() -> None:
    dropout, rows = Dropout(0.4), torch.randn(3, 7)
    with torch.random.fork_rng():
        masks = []
        for seed in (0, 0, 1):
            torch.manual_seed(seed)
            masks.append(dropout(rows))
    assert torch.equal(masks[0], masks[1])
    assert not torch.equal(masks[0], masks[2])
    assert dropout.eval()(rows) is rows


def test_dropouts_gradient_is_its_mask() -> None:
    rows = torch.randn(5, 3, dtype=torch.float64).requires_grad_()
    dropped = Dropout(0.5)(rows)
    (gradient,) = torch.autograd.grad(dropped.sum(), rows)
    torch.testing.assert_close(gradient * rows, dropped)
    assert set(gradient.unique().tolist()) <= {0.0, 2.0}
