"""DPR-GM's network, against the formulas written out with dense matrices."""

from __future__ import annotations

import warnings
from functools import partial
from typing import get_args

import numpy as np
import pytest
import torch
from torch import Tensor

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from torch_geometric.nn import GATConv, GCNConv, GraphConv, TransformerConv

from tsadbench_detectors.deep.graph_layer import Backbone, GraphLayer
from tsadbench_detectors.dprgm import Network

BACKBONES = get_args(Backbone)
TORCH_GEOMETRIC = {
    "sage": partial(GraphConv, aggr="mean"),
    "gcn": GCNConv,
    "gat": GATConv,
    "transformer": TransformerConv,
}
# Weighted, directed: 0 -> 1, 0 -> 2, 1 -> 2, 3 -> 2, 2 -> 3. Sensor 0 has no incoming edge, sensor 4 no edge.
ADJACENCY = torch.zeros(5, 5, dtype=torch.float64)
ADJACENCY[0, 1], ADJACENCY[0, 2], ADJACENCY[1, 2], ADJACENCY[3, 2], ADJACENCY[2, 3] = 0.9, 0.4, 0.7, 0.2, 1.0


def driven_by_chance(n_sensors: int, n_edges: int) -> Tensor:
    """Return random weighted edges without self-loops; the last sensor has none."""
    draws = np.random.default_rng(n_sensors)
    adjacency = torch.zeros(n_sensors, n_sensors, dtype=torch.float64)
    ends = torch.from_numpy(draws.integers(0, n_sensors - 1, size=(2, n_edges)))
    adjacency[ends[0], ends[1]] = torch.from_numpy(draws.uniform(0.01, 1.0, size=n_edges))
    return adjacency.fill_diagonal_(0.0)


@pytest.mark.parametrize("backbone", BACKBONES)
@pytest.mark.parametrize(
    "adjacency",
    [
        pytest.param(torch.zeros(3, 3, dtype=torch.float64), id="no edges"),
        pytest.param(ADJACENCY, id="5 sensors"),
        pytest.param(driven_by_chance(40, 120), id="40 sensors"),
    ],
)
def test_a_layer_and_its_gradient_match_torch_geometric(backbone: Backbone, adjacency: Tensor) -> None:
    nodes = torch.randn(6, len(adjacency), 3, dtype=torch.float64).requires_grad_()
    torch.manual_seed(0)
    layer = GraphLayer(backbone, 3, 4, adjacency).double()
    torch.manual_seed(0)
    sparse = TORCH_GEOMETRIC[backbone](3, 4).double()  # the same seed draws the same initial weights
    parameters = dict(sparse.named_parameters())
    assert parameters.keys() == dict(layer.layer.named_parameters()).keys()
    edges = adjacency.nonzero().t()
    if backbone in ("sage", "gcn"):
        expected = sparse(nodes, edges, adjacency[edges[0], edges[1]])
    else:
        expected = torch.stack([sparse(window, edges) for window in nodes])
    found = layer(nodes)
    upstream = torch.randn_like(found)
    torch.testing.assert_close(found, expected)
    ours = [nodes, *(layer.layer.get_parameter(name) for name in parameters)]
    for one, other in zip(
        torch.autograd.grad(found, ours, upstream),
        torch.autograd.grad(expected, [nodes, *parameters.values()], upstream),
        strict=True,
    ):
        torch.testing.assert_close(one.view_as(other), other)


def test_a_forecast_written_out() -> None:
    torch.manual_seed(0)
    network = Network(ADJACENCY, backbone="sage", horizon=2, hidden_size=4, layers=2, embedding_size=3).double()
    past = torch.randn(1, 7, 5, dtype=torch.float64)
    nodes = []
    for sensor in range(5):
        states = network.encoder.gru(past[0, :, sensor, None])[0]
        pooled = torch.cat([states[-1], states.mean(dim=0), states.max(dim=0).values])
        nodes.append(torch.cat([network.summary(pooled), network.identity.weight[sensor]]))
    features = torch.stack(nodes)[None]
    for layer in network.graph_layers:
        features = layer(features).clamp(min=0)
    expected = torch.stack([network.head(features[0, sensor]) for sensor in range(5)], dim=1)
    torch.testing.assert_close(network(past)[0], expected)
