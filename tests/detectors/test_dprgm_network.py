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
# Weighted, directed: 0 -> 1, 0 -> 2, 1 -> 2, 3 -> 2, 2 -> 3. Sensor 0 drives only, sensor 4 stands alone.
ADJACENCY = torch.zeros(5, 5, dtype=torch.float64)
ADJACENCY[0, 1], ADJACENCY[0, 2], ADJACENCY[1, 2], ADJACENCY[3, 2], ADJACENCY[2, 3] = 0.9, 0.4, 0.7, 0.2, 1.0


def made(backbone: Backbone, adjacency: Tensor = ADJACENCY, n_in: int = 3, n_out: int = 4) -> GraphLayer:
    torch.manual_seed(0)
    return GraphLayer(backbone, n_in, n_out, adjacency).double()


def nodes_of(n_windows: int = 6, n_sensors: int = 5, n_features: int = 3) -> Tensor:
    return torch.randn(
        n_windows, n_sensors, n_features, dtype=torch.float64, generator=torch.Generator().manual_seed(1)
    )


def sage(layer: GraphLayer, nodes: Tensor) -> Tensor:
    weight = layer.get_parameter
    n_drivers = (ADJACENCY > 0).sum(dim=0).clamp(min=1)
    message = ADJACENCY.T @ nodes / n_drivers[:, None]
    return (
        nodes @ weight("layer.lin_root.weight").T
        + message @ weight("layer.lin_rel.weight").T
        + weight("layer.lin_rel.bias")
    )


@pytest.mark.parametrize("backbone", BACKBONES)
def test_which_layers_see_edge_weights(backbone: Backbone) -> None:
    nodes = nodes_of()
    weighted, support = made(backbone)(nodes), made(backbone, (ADJACENCY > 0).double())(nodes)
    assert torch.equal(weighted, support) is (backbone in ("gat", "transformer"))


def by_torch_geometric(backbone: Backbone, layer: GraphLayer, nodes: Tensor) -> Tensor:
    """Return what torch_geometric's own layer makes of the nodes with these very parameters."""
    theirs = TORCH_GEOMETRIC[backbone](3, 4)
    theirs.load_state_dict(layer.layer.state_dict(keep_vars=True), assign=True)
    if layer.takes_weights:
        return theirs(nodes, layer.edges, layer.weights)
    return torch.stack([theirs(window, layer.edges) for window in nodes])


def driven_by_chance(n_sensors: int, n_edges: int) -> Tensor:
    """Weighted edges, among them loops; the last sensor stands alone."""
    draws = np.random.default_rng(n_sensors)
    adjacency = torch.zeros(n_sensors, n_sensors, dtype=torch.float64)
    ends = torch.from_numpy(draws.integers(0, n_sensors - 1, size=(2, n_edges)))
    adjacency[ends[0], ends[1]] = torch.from_numpy(draws.uniform(0.01, 1.0, size=n_edges))
    return adjacency


@pytest.mark.parametrize("backbone", BACKBONES)
@pytest.mark.parametrize(
    "adjacency",
    [
        pytest.param(torch.zeros(3, 3, dtype=torch.float64), id="no edges"),
        pytest.param(driven_by_chance(40, 120), id="40 sensors"),
    ],
)
def test_a_layer_and_its_gradient_are_torch_geometrics(backbone: Backbone, adjacency: Tensor) -> None:
    layer, nodes = made(backbone, adjacency), nodes_of(n_sensors=len(adjacency)).requires_grad_()
    upstream = torch.randn(6, len(adjacency), 4, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    leaves = [nodes, *layer.parameters()]
    ours, theirs = layer(nodes), by_torch_geometric(backbone, layer, nodes)
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(
        torch.autograd.grad(ours, leaves, upstream), torch.autograd.grad(theirs, leaves, upstream)
    )


@pytest.mark.parametrize("backbone", BACKBONES)
def test_parameters_and_initial_values_are_torch_geometrics(backbone: Backbone) -> None:
    adjacency = driven_by_chance(8, 16)
    for n_in, n_out in [(40, 32), (17, 7)]:
        torch.manual_seed(n_in)
        layer, drawn_next = GraphLayer(backbone, n_in, n_out, adjacency), torch.rand(1)
        torch.manual_seed(n_in)
        theirs, theirs_next = TORCH_GEOMETRIC[backbone](n_in, n_out), torch.rand(1)
        expected = {"edges": layer.edges, "weights": layer.weights}
        expected |= {f"layer.{name}": tensor for name, tensor in theirs.state_dict().items()}
        state = layer.state_dict()
        assert set(state) == set(expected)
        assert all(torch.equal(state[name], expected[name]) for name in expected)
        assert torch.equal(drawn_next, theirs_next)


def network_of(backbone: Backbone, adjacency: Tensor = ADJACENCY) -> Network:
    torch.manual_seed(0)
    return Network(adjacency, backbone=backbone, horizon=2, hidden_size=4, layers=2, embedding_size=3).double()


def past_of(n_windows: int = 6) -> Tensor:
    return torch.randn(n_windows, 7, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(2))


def test_a_forecast_written_out() -> None:
    network, past = network_of("sage"), past_of(1)
    nodes = []
    for sensor in range(5):
        states = network.encoder.gru(past[0, :, sensor, None])[0]
        pooled = torch.cat([states[-1], states.mean(dim=0), states.max(dim=0).values])
        nodes.append(torch.cat([network.summary(pooled), network.identity.weight[sensor]]))
    features = torch.stack(nodes)[None]
    for layer in network.graph_layers:
        features = sage(layer, features).clamp(min=0)
    expected = torch.stack([network.head(features[0, sensor]) for sensor in range(5)], dim=1)
    torch.testing.assert_close(network(past)[0], expected)


def test_parameters_by_number() -> None:
    network = Network(torch.ones(8, 8), backbone="sage", horizon=10, hidden_size=32, layers=2, embedding_size=8)
    gru = 3 * 32 * (1 + 32) + 2 * 3 * 32
    graph = (40 * 32 * 2 + 32) + (32 * 32 * 2 + 32)
    expected = gru + (96 * 32 + 32) + 8 * 8 + graph + (32 * 10 + 10)
    assert sum(np.prod(parameter.shape) for parameter in network.parameters()) == expected
