"""Learning a directed acyclic graph: the constraint h(A) = 0, its penalty, and the edges that are cut at the end."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from tsadbench.base import BoolArray, FloatArray

_LARGEST_RHO = 1e16  # beyond it, the paper's code stops raising the constraint's weight


def acyclicity(adjacency: Tensor) -> Tensor:
    """Return ``h(A) = tr(exp(A * A)) - n`` of A [n, n]: 0 without a cycle, otherwise above 0 (Zheng et al. 2018)."""
    # In double precision: n is subtracted from a sum that is hardly larger.
    return torch.as_tensor(torch.linalg.matrix_exp(adjacency.double().square()).diagonal().sum() - len(adjacency))


class AugmentedLagrangian:
    """What a constraint h = 0 adds to a loss: ``rho / 2 * h^2 + alpha * h``, with rho = 1 and alpha = 0 at first.

    An update adds ``rho * h`` to alpha, and multiplies rho by 10 if h is above half of its previous value.
    """

    def __init__(self) -> None:
        self.rho, self.alpha = 1.0, 0.0
        self._before = math.inf

    def penalty(self, h: Tensor) -> Tensor:
        """Return the addition to the loss."""
        return 0.5 * self.rho * h.square() + self.alpha * h

    def update(self, h: float) -> None:
        """Raise the constraint's weights, given its value h."""
        self.alpha += self.rho * h
        if h > 0.5 * self._before and self.rho < _LARGEST_RHO:
            self.rho *= 10.0
        self._before = h


def strongest_acyclic(adjacency: FloatArray) -> BoolArray:
    """Return which edges of A [n, n] an acyclic graph keeps: strongest first, each unless it closes a cycle.

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
