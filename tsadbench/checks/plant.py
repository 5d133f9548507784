"""A small simulated plant: normal recordings, faults whose rows are known, and a coupling graph that is the truth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tsadbench.arrays import BoolArray, FloatArray
from tsadbench.dataset import Dataset, LabelledDataset, Labels
from tsadbench.prior import Edge, Prior
from tsadbench.recording import Recording

_COUPLINGS = (("drive", "flow"), ("flow", "pressure"), ("flow", "heat"), ("drive", "heat"))
# A sensor keeps this much of its state from row to row, and takes this much from the sensors that drive it: the sum
# is below 1, so that the plant is stable whatever its graph.
_KEPT, _TAKEN = 0.5, 0.4
_SETTLING_ROWS = 50
_FAULT_ROWS = 40


@dataclass(frozen=True, slots=True)
class Plant:
    """A linear plant whose sensors drive each other along the edges of a prior.

    Each sensor's state is ``0.5`` of its last one, ``0.4`` of the mean of the last states of the sensors that drive
    it, and unit noise; a sensor shows ``level + spread * state``, its own level and spread.

    Parameters
    ----------
    prior
        The couplings; sensors are its ends, in order of appearance.
    """

    prior: Prior = Prior(tuple(Edge(source, target) for source, target in _COUPLINGS), origin="the checks' plant")

    @property
    def sensors(self) -> tuple[str, ...]:
        """The sensors' names."""
        return tuple(dict.fromkeys(end for edge in self.prior.edges for end in (edge.source, edge.target)))

    @property
    def level(self) -> FloatArray:
        """Each sensor's level, [n_sensors]."""
        return 10.0 * np.arange(1, len(self.sensors) + 1)

    @property
    def spread(self) -> FloatArray:
        """What a sensor shows of its state's unit noise, [n_sensors]."""
        return 1.0 + 0.5 * np.arange(len(self.sensors))

    def recording(
        self,
        id: str,
        n_rows: int,
        seed: int,
        *,
        fault: slice | None = None,
        regime: str = "usual",
    ) -> Recording:
        """Return rows of normal operation, and of a gross fault where one is wanted.

        In the fault's rows every sensor shows noise of eight times its spread around a level that is shifted by
        eight spreads: an outlier in level, step, pattern and coupling alike, so that no honest method can miss it.

        Parameters
        ----------
        id, n_rows
            Of the recording.
        seed
            Two recordings with the same seed have the same noise.
        fault
            Rows of the fault.
        regime
            "usual", or "other": another plant, with other levels, spreads and faster sensors.
        """
        rng = np.random.default_rng([seed, n_rows])
        states = self._states(rng, n_rows, kept=_KEPT if regime == "usual" else -_KEPT)
        if fault is not None:
            states[fault] = 8.0 + 8.0 * rng.normal(size=states[fault].shape)
        values = self.level + self.spread * states
        if regime == "other":
            values = 3.0 * self.level[::-1] + 5.0 * self.spread[::-1] * states
        return Recording(id, values, self.sensors, time=np.arange(n_rows, dtype=np.float64))

    def _states(self, rng: np.random.Generator, n_rows: int, kept: float) -> FloatArray:
        drivers = self.prior.matrix(self.sensors).T
        drivers /= np.maximum(drivers.sum(axis=1, keepdims=True), 1.0)
        noise = rng.normal(size=(_SETTLING_ROWS + n_rows, len(self.sensors)))
        states = np.zeros_like(noise)
        for row in range(1, len(noise)):
            states[row] = kept * states[row - 1] + _TAKEN * drivers @ states[row - 1] + noise[row]
        return states[_SETTLING_ROWS:]


def fault_rows(n_rows: int) -> slice:
    """Return the rows in the middle of a recording in which its fault lies."""
    start = n_rows // 2 - _FAULT_ROWS // 2
    return slice(start, start + _FAULT_ROWS)


def small_dataset(n_rows: int = 300, seed: int = 0) -> LabelledDataset:
    """Return a small data set with a known answer: what a detector's first test can be written against.

    Two training recordings of normal operation, one normal test recording, and two with a gross fault in the 40
    rows in their middle. The data set's prior is the plant's true coupling graph.

    Parameters
    ----------
    n_rows
        Of each recording, at least 100.
    seed
        Another seed gives other noise.

    Examples
    --------
    >>> dataset, labels = small_dataset()
    >>> [recording.id for recording in dataset.test], dataset.sensors
    (['normal', 'fault-1', 'fault-2'], ('drive', 'flow', 'pressure', 'heat'))
    >>> int(labels.rows["fault-1"].sum())
    40
    """
    plant = Plant()
    faults = {"normal": None, "fault-1": fault_rows(n_rows), "fault-2": fault_rows(n_rows)}
    test = tuple(
        plant.recording(name, n_rows, 10 * seed + number, fault=fault)
        for number, (name, fault) in enumerate(faults.items(), start=2)
    )
    train = tuple(plant.recording(f"train-{number}", n_rows, 10 * seed + number) for number in range(2))
    splits = {"overall": tuple(faults)}
    dataset = Dataset(name="small", train=train, test=test, splits=splits, prior=plant.prior)
    return LabelledDataset(dataset, Labels({name: _labels(n_rows, rows) for name, rows in faults.items()}, splits))


def _labels(n_rows: int, fault: slice | None) -> BoolArray:
    labels = np.zeros(n_rows, dtype=np.bool_)
    if fault is not None:
        labels[fault] = True
    return labels
