"""Attention logits of every two nodes, without laying out [batch, n_nodes, n_nodes, width] at once."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

_LEAK = 0.2
# Numbers that are laid out at once: they stay in a core's cache, or fill a GPU.
_AT_ONCE, _AT_ONCE_ON_GPU = 160_000, 2**26


def pair_logits(target: Tensor, source: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return ``a . LeakyReLU(target_i + source_j) + b_ij`` for every two nodes, [batch, n_nodes, n_nodes].

    The leak is 0.2.

    Parameters
    ----------
    target, source
        [batch, n_nodes, width] each.
    weight
        a [width].
    bias
        b [n_nodes, n_nodes].
    """
    return cast("Tensor", _PairLogits.apply(target, source, weight, bias))  # type: ignore[no-untyped-call]


class _PairLogits(torch.autograd.Function):
    """The logits with their gradient written out, a few windows at a time.

    With ``x = t + s``, ``LeakyReLU(x) = 0.2 t + s + 0.8 max(t, -s)``: the maximum is the one operation on every pair's
    numbers, and its slope by t is whether t exceeds -s. The gradient finds these slopes again; they are not kept.
    """

    @staticmethod
    def forward(ctx: FunctionCtx, target: Tensor, source: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(target, source, weight)
        logits = torch.add(bias, _LEAK * (target @ weight)[:, :, None]) + (source @ weight)[:, None]
        pairs = _Pairs(target, source)
        for some in pairs.blocks:
            of_target, of_source, room = pairs.of(some)
            larger = torch.maximum(of_target, of_source, out=room)
            logits[some].view(-1).addmv_(larger.movedim(pairs.width, -1).flatten(0, 2), weight, alpha=1 - _LEAK)
        return logits

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, towards: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return the gradients, given that by the logits."""
        target, source, weight = ctx.saved_tensors  # type: ignore[attr-defined]
        pairs = _Pairs(target, source)
        by_target, by_source = torch.empty_like(pairs.target), torch.empty_like(pairs.source)
        for some in pairs.blocks:
            # Compared into floats: PyTorch takes five times as long to write booleans.
            of_target, of_source, room = pairs.of(some)
            exceeds = torch.gt(of_target, of_source, out=room)
            exceeds.mul_(towards[some].unsqueeze(pairs.width))
            by_target[some] = exceeds.sum(dim=pairs.nodes + 1)
            by_source[some] = exceeds.sum(dim=pairs.nodes)
        if pairs.nodes == 2:
            by_target, by_source = by_target.transpose(1, 2), by_source.transpose(1, 2)
        by_target = (1 - _LEAK) * by_target + _LEAK * towards.sum(dim=2)[:, :, None]
        by_source = (1 - _LEAK) * by_source + _LEAK * towards.sum(dim=1)[:, :, None]
        # LeakyReLU(x) is x times its slope.
        by_weight = (target * by_target + source * by_source).sum(dim=(0, 1))
        return by_target * weight, by_source * weight, by_weight, towards.sum(dim=0)


class _Pairs:
    """Every two nodes' numbers, laid out a block of windows at a time.

    Innermost in memory is the longer of a row of nodes and a node's width, where a processor is fastest.

    Attributes
    ----------
    nodes, width
        Dimensions of the pairs: targets are at ``nodes``, sources behind them, a pair's numbers at ``width``.
    target, source
        t and -s, [batch, n_nodes, width], or [batch, width, n_nodes] if ``nodes`` is 2.
    blocks
        Numbers of the windows to lay out at once.
    """

    def __init__(self, target: Tensor, source: Tensor) -> None:
        batch, n_nodes, width = target.shape
        self.nodes, self.width = (2, 1) if n_nodes > width else (1, 3)
        self.target, self.source = target, -source
        if self.nodes == 2:
            self.target, self.source = (part.transpose(1, 2).contiguous() for part in (self.target, self.source))
        at_once = _AT_ONCE if target.device.type == "cpu" else _AT_ONCE_ON_GPU
        n_windows = max(1, at_once // (n_nodes * n_nodes * width))
        self.blocks = [slice(first, min(first + n_windows, batch)) for first in range(0, batch, n_windows)]
        pairs = (n_nodes, n_nodes, width) if self.nodes == 1 else (width, n_nodes, n_nodes)
        # The same memory for every block: it stays in the cache.
        self._room = target.new_empty(min(n_windows, batch), *pairs)

    def of(self, some: slice) -> tuple[Tensor, Tensor, Tensor]:
        """Return a block's t and -s, which broadcast to its pairs, and room for these."""
        room = self._room[: some.stop - some.start]
        return self.target[some].unsqueeze(self.nodes + 1), self.source[some].unsqueeze(self.nodes), room
