"""Graph layers of torch_geometric over one sensor graph, for a batch of windows."""

from __future__ import annotations

import warnings
from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn

with warnings.catch_warnings():
    # torch_geometric uses deprecated parts of PyTorch, and users of a detector can do nothing about that.
    warnings.simplefilter("ignore", DeprecationWarning)
    from torch_geometric.nn import DenseGATConv, DenseGCNConv, DenseGraphConv, TransformerConv

Backbone: TypeAlias = Literal["sage", "gcn", "gat", "transformer"]


class DenseTransformerConv(TransformerConv):  # type: ignore[misc]
    """torch_geometric's graph transformer with one head, for an adjacency matrix instead of a list of edges."""

    def forward(self, nodes: Tensor, adjacency: Tensor) -> Tensor:
        """Return [batch, n_nodes, n_out]; messages go from node j to node i if ``adjacency[i, j] > 0``."""
        query, key, value = self.lin_query(nodes), self.lin_key(nodes), self.lin_value(nodes)
        # The softmax of a node without neighbours would be NaN, and so would its gradient.
        has_neighbours = (adjacency > 0).any(dim=1, keepdim=True)
        logits = query @ key.mT / query.shape[-1] ** 0.5
        weights = logits.masked_fill((adjacency == 0) & has_neighbours, -torch.inf).softmax(dim=-1)
        return torch.as_tensor(self.lin_skip(nodes) + has_neighbours * (weights @ value))


_LAYERS = {"sage": DenseGraphConv, "gcn": DenseGCNConv, "gat": DenseGATConv, "transformer": DenseTransformerConv}


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
        self.layer: nn.Module = _LAYERS[backbone](n_in, n_out)
        if backbone == "sage":
            # A mean over the number of neighbours: torch_geometric's dense mean divides by the sum of their weights.
            adjacency = adjacency / (adjacency > 0).sum(dim=0).clamp(min=1)
        self.register_buffer("adjacency", adjacency.t().contiguous(), persistent=False)

    def forward(self, nodes: Tensor) -> Tensor:
        """Return [batch, n_sensors, n_out] for [batch, n_sensors, n_in]."""
        return torch.as_tensor(self.layer(nodes, self.adjacency))
