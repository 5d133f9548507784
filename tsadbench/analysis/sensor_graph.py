"""Derives the sensor graph of a detector again from the training recordings of its trial."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from pydantic import FiniteFloat

from tsadbench.base.prior import Prior
from tsadbench.base.recording import Recording
from tsadbench.errors import PluginError
from tsadbench.execution.plan import contender_from_label
from tsadbench.results.trial_result import TrialResult
from tsadbench.sandbox import Construction, ask
from tsadbench.utils.arrays import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class SensorGraph:
    """The prior of the detector (or the data set), and the graph that the detector derived from it.

    In the order of ``sensors``, ``adjacency`` [n_sensors, n_sensors] and ``node_weights`` [n_sensors] are None if the
    detector offers no graph.
    """

    label: str
    title: str
    sensors: tuple[str, ...]
    prior: Prior | None
    adjacency: FloatArray | None = None
    node_weights: FloatArray | None = None


class _Derived(NamedTuple):
    adjacency: list[list[FiniteFloat]]  # [i][j] for the edge from sensor i to sensor j
    node_weights: list[FiniteFloat]


def sensor_graph(result: TrialResult) -> SensorGraph:
    """Return the graph of a trial's first fit without training.

    The detector is constructed in a box, which runs any code that the label names: the user must have named it. A
    UsageError, DataError, PluginError or MissingExtraError if it or its prior is not available.
    """
    record, dataset = result.record, result.data.dataset
    contender = contender_from_label(record.label, dataset)
    construction = contender.seeded(record.seed)
    prior = construction.arguments.get("prior")
    title = f"{record.label}, seed {record.seed} · {record.dataset} · protocol {record.rules}"
    graph = SensorGraph(record.label, title, dataset.sensors, prior if isinstance(prior, Prior) else dataset.prior)
    if not contender.description.offers_sensor_graph:
        return graph
    episode = result.scored[0].episode
    edges, weights = ask(construction.source, derived_graph, _Derived, construction, episode.train)
    n = len(dataset.sensors)
    try:
        adjacency, node_weights = np.array(edges).reshape(n, n), np.array(weights).reshape(n)
    except ValueError as error:
        raise PluginError(f"{record.label}: its graph does not cover the {n} sensors") from error
    title = title if len(result.scored) == 1 else f"{title} · fit of {episode.id}"
    return replace(graph, title=title, adjacency=adjacency, node_weights=node_weights)


def derived_graph(construction: Construction, training: tuple[Recording, ...]) -> _Derived:
    """Return the graph that a detector derives from its training recordings. Runs in the box."""
    adjacency, node_weights = construction.construct().sensor_graph(training)  # type: ignore[attr-defined]  # optional
    return _Derived(adjacency.tolist(), node_weights.tolist())
