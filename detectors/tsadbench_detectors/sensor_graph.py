"""Graphs over sensors, as matrices [n_sensors, n_sensors] with an entry [i, j] for the edge from i to j."""

from __future__ import annotations

import numpy as np

from tsadbench.base import FloatArray
from tsadbench_detectors.standardise import Standardiser

_EPSILON = 1e-8
_ROUNDING = 1e-12


def complete_graph(n_sensors: int) -> FloatArray:
    """Return the graph with an edge between any two sensors, in both directions."""
    return np.ones((n_sensors, n_sensors)) - np.eye(n_sensors)


def random_graph(n_sensors: int, n_edges: int, seed: int) -> FloatArray:
    """Return a graph with ``n_edges`` random edges; no sensor has an edge to itself."""
    pairs = np.argwhere(complete_graph(n_sensors))
    sources, targets = np.random.default_rng(seed).choice(pairs, size=n_edges, replace=False).T
    graph = np.zeros((n_sensors, n_sensors))
    graph[sources, targets] = 1.0
    return graph


def correlations(standardiser: Standardiser, rows: FloatArray) -> FloatArray:
    """Return the Pearson correlation of every two sensors over raw training rows; 0 for a constant sensor."""
    z_scores = standardiser.z_scores(rows) * standardiser.varies
    return np.clip(z_scores.T @ z_scores / len(rows), -1.0, 1.0)


def weighted(graph: FloatArray, correlation: FloatArray) -> FloatArray:
    """Return ``A = D * (0.5 + 0.5 * rho)``, the graph D with its edges weighted by how sensors correlate.

    A correlation of 1, 0 or -1 leaves all, half or nothing of an edge.
    """
    weights = graph * (0.5 + 0.5 * correlation)
    # Rounding must not leave a trace of an edge whose correlation is -1: a trace would count as an in-neighbour.
    return np.where(weights < _ROUNDING, 0.0, weights)


def node_weights(standardiser: Standardiser) -> FloatArray:
    """Return the sensors' weights in the score, [n_sensors], with sum 1: the steadiest sensors weigh most.

    The weight follows the inverse of the coefficient of variation in percent over the raw training rows,
    ``CV = sigma / (|mu| + eps) * 100``, ``r = 1 / (CV + eps)``, ``w = r / sum(r)``, eps = 1e-8. A constant sensor
    weighs nothing; if all are constant, all weigh the same.
    """
    variation = standardiser.scale / (np.abs(standardiser.mean) + _EPSILON) * 100.0
    reliability = np.where(standardiser.varies, 1.0 / (variation + _EPSILON), 0.0)
    if not reliability.any():
        return equal_node_weights(len(reliability))
    weights: FloatArray = reliability / reliability.sum()
    return weights


def equal_node_weights(n_sensors: int) -> FloatArray:
    """Return the weight 1 / n_sensors for every sensor."""
    return np.full(n_sensors, 1.0 / n_sensors)
