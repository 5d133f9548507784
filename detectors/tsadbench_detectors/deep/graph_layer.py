"""Graph layers of torch_geometric over one sensor graph, for a batch of windows."""

from __future__ import annotations

import math
import warnings
from functools import partial
from importlib.util import find_spec
from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn

from tsadbench.base import extra

# It is imported only if a graph needs it, which is known after planning; that it is missing is said before.
if find_spec("torch_geometric") is None:
    raise ModuleNotFoundError("No module named 'torch_geometric'", name="torch_geometric")

Backbone: TypeAlias = Literal["sage", "gcn", "gat", "transformer"]

_WITH_EDGE_WEIGHTS = ("sage", "gcn")
# The linear maps of torch_geometric's layers, and whether each has a bias.
_LINEAR = {
    "sage": {"lin_rel": True, "lin_root": False},
    "gcn": {"lin": False},
    "gat": {"lin": False},
    "transformer": dict.fromkeys(("lin_key", "lin_query", "lin_value", "lin_skip"), True),
}
# The leaky ReLU's, of torch_geometric's GATConv.
_GAT_SLOPE = 0.2
# Whole matrices take less time than single edges if at least this share of their entries are edges or loops. Measured
# with 2.5 drivers a sensor: up to 200 sensors (sage, gcn), 100 (gat), 50 (transformer); this draws the line at 100.
_DENSE_FROM = 1 / 30


class GraphLayer(nn.Module):
    """One graph layer, without an activation. A message goes from sensor j to sensor i if ``A[j, i] > 0``.

    Parameters, their initial values and the results are those of torch_geometric's layers. Unless the graph is large
    and sparse, the results are computed from the whole matrix A, which takes less time than going along the edges.

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
    mixing: Tensor

    def __init__(self, backbone: Backbone, n_in: int, n_out: int, adjacency: Tensor) -> None:
        super().__init__()
        edges = adjacency.nonzero().t().contiguous()
        self.register_buffer("edges", edges)
        self.register_buffer("weights", adjacency[edges[0], edges[1]])
        self.takes_weights = backbone in _WITH_EDGE_WEIGHTS
        n_sensors, n_edges = len(adjacency), edges.shape[1]
        self.dense = _DENSE[backbone] if n_sensors + n_edges >= _DENSE_FROM * n_sensors**2 else None
        if self.dense:
            self.layer: nn.Module = _Parameters(backbone, n_in, n_out)
            self.register_buffer("mixing", _MIXING[backbone](adjacency), persistent=False)
        else:
            self.layer = _along_edges(backbone, n_in, n_out)

    def forward(self, nodes: Tensor) -> Tensor:
        """Return [batch, n_sensors, n_out] for [batch, n_sensors, n_in]."""
        if self.dense:
            return self.dense(self.layer, nodes, self.mixing)
        if self.takes_weights:
            weighted: Tensor = self.layer(nodes, self.edges, self.weights)
            return weighted
        n_windows, n_sensors, _ = nodes.shape
        attended: Tensor = self.layer(nodes.flatten(0, 1), repeated(self.edges, n_sensors, n_windows))
        return attended.view(n_windows, n_sensors, -1)


def _along_edges(backbone: Backbone, n_in: int, n_out: int) -> nn.Module:
    # Imported for a large, sparse graph alone: it takes as long as an epoch of training.
    with extra("dprgm", "deep"), warnings.catch_warnings():
        # It uses deprecated parts of PyTorch, and users of a detector can do nothing about that.
        warnings.simplefilter("ignore", DeprecationWarning)
        from torch_geometric.nn import GATConv, GCNConv, GraphConv, TransformerConv

    # GraphSAGE's own layer takes no edge weights; GraphConv with the mean is that layer with weighted messages.
    sage = partial(GraphConv, aggr="mean")
    made: nn.Module = {"sage": sage, "gcn": GCNConv, "gat": GATConv, "transformer": TransformerConv}[backbone](
        n_in, n_out
    )
    return made


class _Parameters(nn.Module):
    """The parameters of torch_geometric's layer, under its names, with the initial values that it draws."""

    def __init__(self, backbone: Backbone, n_in: int, n_out: int) -> None:
        super().__init__()
        linear = {name: nn.Linear(n_in, n_out, bias=bias) for name, bias in _LINEAR[backbone].items()}
        for name, module in linear.items():
            self.add_module(name, module)
        glorot = backbone in ("gcn", "gat")
        # A second time: torch_geometric draws when it makes a linear map, and again when its layer is complete.
        for module in linear.values():
            nn.init.uniform_(module.weight, *_around_0(math.sqrt(6 / (n_in + n_out if glorot else 6 * n_in))))
            if module.bias is not None:
                nn.init.uniform_(module.bias, *_around_0(1 / math.sqrt(n_in)))
        if backbone == "gat":
            for name in ("att_src", "att_dst"):
                attention = torch.empty(1, 1, n_out).uniform_(*_around_0(math.sqrt(6 / (1 + n_out))))
                self.register_parameter(name, nn.Parameter(attention))
        if glorot:
            self.register_parameter("bias", nn.Parameter(torch.zeros(n_out)))


def _around_0(bound: float) -> tuple[float, float]:
    return -bound, bound


def repeated(edges: Tensor, n_nodes: int, times: int) -> Tensor:
    """Return the edges of ``times`` copies of a graph, [2, times * n_edges], nodes numbered copy after copy."""
    offsets = n_nodes * torch.arange(times, device=edges.device)
    return (offsets[:, None] + edges[:, None]).flatten(1)


def _mean_over_drivers(adjacency: Tensor) -> Tensor:
    """Return [to, from]: A's weights, divided by the number of in-neighbours."""
    n_drivers = (adjacency > 0).sum(dim=0).clamp(min=1)
    return (adjacency / n_drivers).t().contiguous()


def _normalised(adjacency: Tensor) -> Tensor:
    """Return [to, from]: A with loops of weight 1 for sensors without one, each edge divided by both ends' degrees."""
    looped = adjacency + torch.diag((adjacency.diagonal() == 0).to(adjacency.dtype))
    scale = looped.sum(dim=0).rsqrt()
    return (scale[:, None] * looped * scale).t().contiguous()


def _barred(adjacency: Tensor) -> Tensor:
    """Return [to, from]: 0 for an edge and -infinity elsewhere, to be added before a softmax."""
    return torch.zeros_like(adjacency).masked_fill_(adjacency == 0, -torch.inf).t().contiguous()


def _barred_but_loops(adjacency: Tensor) -> Tensor:
    return _barred(adjacency.clone().fill_diagonal_(1.0))


def _graph_conv(layer: nn.Module, nodes: Tensor, mixing: Tensor) -> Tensor:
    by_itself, by_drivers = layer.get_submodule("lin_root"), layer.get_submodule("lin_rel")
    mixed: Tensor = by_itself(nodes) + by_drivers(mixing @ nodes)
    return mixed


def _gcn(layer: nn.Module, nodes: Tensor, mixing: Tensor) -> Tensor:
    mixed: Tensor = mixing @ layer.get_submodule("lin")(nodes) + layer.get_parameter("bias")
    return mixed


def _gat(layer: nn.Module, nodes: Tensor, barred: Tensor) -> Tensor:
    mapped = layer.get_submodule("lin")(nodes)
    by_source, by_target = (mapped @ layer.get_parameter(f"att_{end}").flatten() for end in ("src", "dst"))
    logits = nn.functional.leaky_relu(by_target[:, :, None] + by_source[:, None, :], _GAT_SLOPE)
    attended: Tensor = (logits + barred).softmax(dim=-1) @ mapped + layer.get_parameter("bias")
    return attended


def _transformer(layer: nn.Module, nodes: Tensor, barred: Tensor) -> Tensor:
    query, key, value, skip = (layer.get_submodule(f"lin_{name}")(nodes) for name in ("query", "key", "value", "skip"))
    # A sensor without drivers hears nothing: a softmax over nothing would be NaN, and so would its gradient.
    hears = (barred == 0).any(dim=1, keepdim=True)
    logits = query @ key.mT / query.shape[-1] ** 0.5 + barred.where(hears, 0.0)
    attended: Tensor = skip + hears * (logits.softmax(dim=-1) @ value)
    return attended


_MIXING = {"sage": _mean_over_drivers, "gcn": _normalised, "gat": _barred_but_loops, "transformer": _barred}
_DENSE = {"sage": _graph_conv, "gcn": _gcn, "gat": _gat, "transformer": _transformer}
