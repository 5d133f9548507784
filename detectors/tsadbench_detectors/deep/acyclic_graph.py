"""Learning a directed acyclic graph: the constraint h(A) = 0, how a loss is held to it, and what is cut at the end."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from tsadbench.base import BoolArray, FloatArray

# Beyond it, the paper's code gives up making the constraint weigh more.
_LARGEST_RHO = 1e16


def acyclicity(adjacency: Tensor) -> Tensor:
    """Return ``h(A) = tr(exp(A * A)) - n``: 0 if the graph has no cycle, otherwise above 0 (Zheng et al. 2018).

    Parameters
    ----------
    adjacency
        A [n, n]; its square, element by element, is what counts, so that signs do not matter.
    """
    # In double precision: n is subtracted from a sum that is hardly larger.
    return torch.as_tensor(torch.linalg.matrix_exp(adjacency.double().square()).diagonal().sum() - len(adjacency))


class AugmentedLagrangian:
    """What a constraint h = 0 adds to a loss: ``rho / 2 * h^2 + alpha * h``.

    Attributes
    ----------
    rho, alpha
        They begin with 1 and 0. After each update, ``alpha`` has grown by ``rho * h``; then ``rho`` is 10 times as
        large if h is still above half of what it was at the update before.
    """

    def __init__(self) -> None:
        self.rho, self.alpha = 1.0, 0.0
        self._before = math.inf

    def penalty(self, h: Tensor) -> Tensor:
        """Return the addition to the loss."""
        return 0.5 * self.rho * h.square() + self.alpha * h

    def update(self, h: float) -> None:
        """Let the constraint weigh more, given how far from 0 it still is."""
        self.alpha += self.rho * h
        if h > 0.5 * self._before and self.rho < _LARGEST_RHO:
            self.rho *= 10.0
        self._before = h


def strongest_acyclic(adjacency: FloatArray) -> BoolArray:
    """Return which edges an acyclic graph keeps: from the strongest to the weakest, all that close no cycle.

    Parameters
    ----------
    adjacency
        A [n, n]; entry [i, j] is the strength of the edge from i to j, at least 0. There is no edge where it is 0.

    Returns
    -------
    BoolArray
        [n, n]

    Examples
    --------
    >>> strongest_acyclic(np.array([[0.0, 0.9, 0.0], [0.2, 0.0, 0.5], [0.4, 0.0, 0.0]])).astype(int)
    array([[0, 1, 0],
           [0, 0, 1],
           [0, 0, 0]])
    """
    n = len(adjacency)
    kept = np.zeros((n, n), dtype=np.bool_)
    # Entry [i, j]: a path leads from i to j, or they are the same.
    reached = np.eye(n, dtype=np.bool_)
    order = np.argsort(-adjacency, axis=None, kind="stable")
    for source, target in zip(*np.unravel_index(order, adjacency.shape), strict=True):
        if adjacency[source, target] > 0.0 and not reached[target, source]:
            kept[source, target] = True
            reached |= np.outer(reached[:, source], reached[target])
    return kept
