"""Graph layers of torch_geometric over one sensor graph, for a batch of windows."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn

with warnings.catch_warnings():
    # It uses deprecated parts of PyTorch, and users of a detector can do nothing about that.
    warnings.simplefilter("ignore", DeprecationWarning)
    from torch_geometric.nn import GATConv, GCNConv, GraphConv, TransformerConv

Backbone: TypeAlias = Literal["sage", "gcn", "gat", "transformer"]

# GraphSAGE's own layer takes no edge weights; GraphConv with the mean is that layer with weighted messages.
_LAYERS = {"sage": partial(GraphConv, aggr="mean"), "gcn": GCNConv, "gat": GATConv, "transformer": TransformerConv}
_WITH_EDGE_WEIGHTS = ("sage", "gcn")


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
        A [n_sensors, n_sensors], not negative.
    """

    edges: Tensor
    weights: Tensor

    def __init__(self, backbone: Backbone, n_in: int, n_out: int, adjacency: Tensor) -> None:
        super().__init__()
        edges = adjacency.nonzero().t().contiguous()
        self.register_buffer("edges", edges)
        self.register_buffer("weights", adjacency[edges[0], edges[1]])
        self.takes_weights = backbone in _WITH_EDGE_WEIGHTS
        self.layer: nn.Module = _LAYERS[backbone](n_in, n_out)

    def forward(self, nodes: Tensor) -> Tensor:
        """Return [batch, n_sensors, n_out] for [batch, n_sensors, n_in]."""
        if self.takes_weights:
            weighted: Tensor = self.layer(nodes, self.edges, self.weights)
            return weighted
        n_windows, n_sensors, _ = nodes.shape
        attended: Tensor = self.layer(nodes.flatten(0, 1), repeated(self.edges, n_sensors, n_windows))
        return attended.view(n_windows, n_sensors, -1)


def repeated(edges: Tensor, n_nodes: int, times: int) -> Tensor:
    """Return the edges of ``times`` copies of a graph, [2, times * n_edges], nodes numbered copy after copy."""
    offsets = n_nodes * torch.arange(times, device=edges.device)
    return (offsets[:, None] + edges[:, None]).flatten(1)
