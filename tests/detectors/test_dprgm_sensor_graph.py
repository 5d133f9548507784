"""Edges and node weights of a sensor graph, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsadbench import Recording
from tsadbench.utils.arrays import FloatArray
from tsadbench_detectors import sensor_graph
from tsadbench_detectors.standardise import Standardiser


def standardiser_of(rows: FloatArray) -> Standardiser:
    return Standardiser.of([Recording("a", rows, tuple(f"x{i}" for i in range(rows.shape[1])))])


def correlations_of(rows: FloatArray) -> FloatArray:
    return sensor_graph.correlations(standardiser_of(rows), rows)


def test_edge_weights_by_hand() -> None:
    x = np.array([0.1, 0.3, -0.2, 0.4, -0.6])
    # In other units; mirrored; a sensor that never changes; one that rises with x, but not always.
    rows = np.stack([x, 7 * x + 3, 5 - 2 * x, np.full(5, 0.1), [1.0, 0.0, 0.0, 2.0, 0.0]], axis=1)
    graph = np.zeros((5, 5))
    graph[0, [1, 2, 3]] = graph[2, 0] = graph[4, 0] = 1.0
    adjacency = sensor_graph.weighted(graph, correlations_of(rows))

    # Products with the deviations (0.4, -0.6, -0.6, 1.4, -0.6) from the mean 0.6; x has the mean 0.
    rho = (0.04 - 0.18 + 0.12 + 0.56 + 0.36) / np.sqrt(0.66 * 3.2)
    expected = np.zeros((5, 5))
    expected[0, 1], expected[0, 3], expected[4, 0] = 1.0, 0.5, 0.5 + 0.5 * rho
    np.testing.assert_allclose(adjacency, expected, atol=1e-12)
    assert adjacency[0, 2] == adjacency[2, 0] == 0.0
    assert (adjacency <= 1.0).all()


@pytest.mark.parametrize(("correlation", "weight"), [(1.0, 1.0), (0.0, 0.5), (-1.0, 0.0), (0.4, 0.7)])
def test_the_boundary_cases_of_an_edge(correlation: float, weight: float) -> None:
    rho = np.full((2, 2), correlation)
    graph = np.array([[0.0, 1.0], [0.0, 0.0]])
    np.testing.assert_allclose(sensor_graph.weighted(graph, rho), [[0.0, weight], [0.0, 0.0]])


def test_correlations_are_pearsons() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 4)) @ rng.normal(size=(4, 4)) * [1.0, 100.0, 1e-3, 1.0] + [0.0, 1e4, 0.0, -3.0]
    np.testing.assert_allclose(correlations_of(rows), np.corrcoef(rows, rowvar=False), atol=1e-9)


def test_a_constant_sensor_correlates_with_nothing() -> None:
    rows = np.stack([np.arange(6.0), np.full(6, 0.1)], axis=1)
    np.testing.assert_array_equal(correlations_of(rows)[1], 0.0)


def test_node_weights_by_hand() -> None:
    # Means 10, -4 and 0.5; standard deviations 1, 2 and 0: variation 10 %, 50 % and none.
    rows = np.array([[9.0, -6.0, 0.5], [11.0, -2.0, 0.5]])
    weights = sensor_graph.node_weights(standardiser_of(rows))
    np.testing.assert_allclose(weights, [5 / 6, 1 / 6, 0.0], rtol=1e-6)
    assert weights[2] == 0.0
    assert weights.sum() == pytest.approx(1.0)


def test_a_sensor_whose_mean_is_zero_weighs_next_to_nothing() -> None:
    weights = sensor_graph.node_weights(standardiser_of(np.array([[9.0, -1.0], [11.0, 1.0]])))
    # CV = 1 / 1e-8 * 100 against 10.
    np.testing.assert_allclose(weights, [1.0, 10 / 1e10], rtol=1e-6)


def test_where_all_sensors_are_constant_all_weigh_the_same() -> None:
    np.testing.assert_array_equal(sensor_graph.node_weights(standardiser_of(np.full((5, 4), 0.3))), 0.25)


def test_the_complete_graph() -> None:
    np.testing.assert_array_equal(sensor_graph.complete_graph(3), [[0, 1, 1], [1, 0, 1], [1, 1, 0]])
    np.testing.assert_array_equal(sensor_graph.complete_graph(1), [[0]])


@given(n_sensors=st.integers(2, 9), share=st.floats(0, 1), seed=st.integers(0, 2**32))
def test_a_random_graph_has_as_many_edges_and_no_self_loops(n_sensors: int, share: float, seed: int) -> None:
    n_edges = round(share * n_sensors * (n_sensors - 1))
    graph = sensor_graph.random_graph(n_sensors, n_edges, seed)
    assert graph.sum() == n_edges
    assert set(np.unique(graph)) <= {0.0, 1.0}
    assert not graph.diagonal().any()
    np.testing.assert_array_equal(sensor_graph.random_graph(n_sensors, n_edges, seed), graph)


def test_another_seed_draws_another_graph() -> None:
    first, second = (sensor_graph.random_graph(8, 19, seed) for seed in (0, 1))
    assert not np.array_equal(first, second)
