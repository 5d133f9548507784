"""The graph over sensors on which a detector worked, found again from the training recordings of its trial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from tsadbench.base.prior import Prior
from tsadbench.base.recording import Recording
from tsadbench.execution.plan import make_plan
from tsadbench.registry import load_detector
from tsadbench.results.trial_result import TrialResult
from tsadbench.utils.arrays import FloatArray


@runtime_checkable
class OffersSensorGraph(Protocol):
    """What a detector may have that passes messages over a graph which its fit derives before it learns."""

    def sensor_graph(self, recordings: Sequence[Recording]) -> tuple[FloatArray, FloatArray]:
        """Return, of training recordings, A [n_sensors, n_sensors] ([i, j] for i -> j) and node weights [n_sensors]."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class SensorGraph:
    """A prior, and what a detector made of it.

    Parameters
    ----------
    label
        The detector's.
    title
        What a figure says of it.
    sensors
        The order of rows and columns.
    prior
        The detector's own, else the data set's; None where there is none.
    adjacency, node_weights
        [n_sensors, n_sensors] and [n_sensors]; None where the detector does not offer them (`OffersSensorGraph`).
    """

    label: str
    title: str
    sensors: tuple[str, ...]
    prior: Prior | None
    adjacency: FloatArray | None = None
    node_weights: FloatArray | None = None


def sensor_graph(result: TrialResult) -> SensorGraph:
    """Return the graph of a trial's first fit; nothing is trained for it.

    Parameters
    ----------
    result
        The trial: its detector is constructed again from its label and seed.

    Raises
    ------
    UsageError, DataError, PluginError, MissingExtraError
        If the detector or a prior that its label names is not here any more.
    """
    record = result.record
    plan = make_plan([record.label], dataset=result.data, floors=False, seeds=1)
    construction = plan.trials[0].contender.seeded(record.seed)
    detector = construction.construct()
    given = construction.arguments.get("prior")
    prior = given if isinstance(given, Prior) else result.data.dataset.prior
    place = f"{record.label}, seed {record.seed} · {record.dataset} · protocol {record.protocol}"
    if not isinstance(detector, OffersSensorGraph):
        return SensorGraph(record.label, place, result.data.dataset.sensors, prior)
    episode = result.scored[0].episode
    matrix, weights = detector.sensor_graph(episode.train)
    several = "" if len(result.scored) == 1 else f" · fit of {episode.id}"
    return SensorGraph(record.label, place + several, result.data.dataset.sensors, prior, matrix, weights)


def offers_sensor_graph(detector: str) -> bool:
    """Return whether the detector of this name says on which graph it works.

    Raises
    ------
    UsageError, PluginError, MissingExtraError
        If it cannot be loaded.
    """
    return callable(getattr(load_detector(detector), "sensor_graph", None))
