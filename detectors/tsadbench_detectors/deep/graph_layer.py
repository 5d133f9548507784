"""Graph layers over one sensor graph, for a batch of windows."""

from __future__ import annotations

import warnings
from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn

Backbone: TypeAlias = Literal["sage", "gcn", "gat", "transformer"]


class SageLayer(nn.Module):
    """GraphSAGE with weighted messages, ``W1 h_i + b + W2 sum_j A[i, j] h_j``."""

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        self.lin_rel, self.lin_root = nn.Linear(n_in, n_out), nn.Linear(n_in, n_out, bias=False)
        _draw_again(self)

    def forward(self, nodes: Tensor, adjacency: Tensor) -> Tensor:
        """Return [batch, n_nodes, n_out] for [batch, n_nodes, n_in]."""
        return torch.as_tensor(self.lin_rel(adjacency @ nodes) + self.lin_root(nodes))


class TransformerLayer(nn.Module):
    """A graph transformer with one head; messages go from node j to node i if ``A[i, j] > 0``."""

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        self.lin_key, self.lin_query = nn.Linear(n_in, n_out), nn.Linear(n_in, n_out)
        self.lin_value, self.lin_skip = nn.Linear(n_in, n_out), nn.Linear(n_in, n_out)
        _draw_again(self)

    def forward(self, nodes: Tensor, adjacency: Tensor) -> Tensor:
        """Return [batch, n_nodes, n_out] for [batch, n_nodes, n_in]."""
        query, key, value = self.lin_query(nodes), self.lin_key(nodes), self.lin_value(nodes)
        # The softmax of a node without neighbours would be NaN, and so would its gradient.
        has_neighbours = (adjacency > 0).any(dim=1, keepdim=True)
        logits = query @ key.mT / query.shape[-1] ** 0.5
        weights = logits.masked_fill((adjacency == 0) & has_neighbours, -torch.inf).softmax(dim=-1)
        return torch.as_tensor(self.lin_skip(nodes) + has_neighbours * (weights @ value))


def _draw_again(layer: nn.Module) -> None:
    """Draw the weights twice, as torch_geometric's layers do, so that seeds reproduce the committed tables."""
    for linear in layer.children():
        linear.reset_parameters()  # type: ignore[operator]  # all children are linear layers


def _layer(backbone: Backbone, n_in: int, n_out: int) -> nn.Module:
    if backbone in ("sage", "transformer"):
        return SageLayer(n_in, n_out) if backbone == "sage" else TransformerLayer(n_in, n_out)
    with warnings.catch_warnings():
        # torch_geometric uses deprecated parts of PyTorch, and users of a detector can do nothing about that. Imported
        # here, because that takes as long as importing PyTorch, and the default needs none of it.
        warnings.simplefilter("ignore", DeprecationWarning)
        from torch_geometric.nn import DenseGATConv, DenseGCNConv

    made: nn.Module = {"gcn": DenseGCNConv, "gat": DenseGATConv}[backbone](n_in, n_out)
    return made


class GraphLayer(nn.Module):
    """One graph layer, without an activation. A message goes from sensor j to sensor i if ``A[j, i] > 0``.

    Parameters
    ----------
    backbone
        "sage": GraphSAGE with weighted messages, ``W1 h_i + b + W2 (1/|N_in(i)|) sum_j A[j, i] h_j``; "gcn": graph
        convolution (Kipf and Welling 2017) with A's weights; "gat": graph attention (Velickovic et al. 2018) and
        "transformer": graph transformer (Shi et al. 2021), both with one head and without A's weights.
    n_in, n_out
        Features of a sensor.
    adjacency
        A [n_sensors, n_sensors], not negative, its diagonal 0.
    """

    adjacency: Tensor

    def __init__(self, backbone: Backbone, n_in: int, n_out: int, adjacency: Tensor) -> None:
        super().__init__()
        self.layer = _layer(backbone, n_in, n_out)
        if backbone == "sage":
            adjacency = adjacency / (adjacency > 0).sum(dim=0).clamp(min=1)
        self.register_buffer("adjacency", adjacency.t().contiguous(), persistent=False)

    def forward(self, nodes: Tensor) -> Tensor:
        """Return [batch, n_sensors, n_out] for [batch, n_sensors, n_in]."""
        return torch.as_tensor(self.layer(nodes, self.adjacency))
