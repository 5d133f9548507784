"""Trials on a small plant for figures, and the same trials with other scores."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.helpers.plans import make_plan
from tests.helpers.stored import stored
from tests.helpers.tiny import Distance
from tsadbench import Dataset, Labels, Recording
from tsadbench.base.dataset import LabelledDataset
from tsadbench.base.prior import Edge, Prior
from tsadbench.execution.runner import run_plan
from tsadbench.execution.store import Store
from tsadbench.results.trial_result import TrialResult

SENSORS = ("flow", "_pressure", "cost $x$")
WARM_UP = 30

DISTANCE, LARGEST_Z = "tests.helpers.tiny:Distance", "tests.helpers.trials:LargestZ"


class LargestZ(Distance):
    """A second detector with contributions: nearly the largest sensor's distance."""

    def __init__(self, *, power: float = 8.0) -> None:
        super().__init__(power=power)


def make_plant(n_rows: int = 240) -> LabelledDataset:
    """Two training recordings, two with a fault in rows 100-139 (one of them without time), one normal throughout."""
    rng = np.random.default_rng(3)

    def recording(name: str, *, fault: bool = False, time: bool = True) -> Recording:
        values = rng.normal(size=(n_rows, len(SENSORS)))
        values[:, 1] += 0.8 * values[:, 0]
        if fault:
            values[100:140, 1] += 3.0
        return Recording(name, values, SENSORS, time=10.0 * np.arange(n_rows) if time else None)

    fault = np.zeros(n_rows, dtype=bool)
    fault[100:140] = True
    splits = {"overall": ("f1", "f2", "h1"), "normal": ("h1",)}
    dataset = Dataset(
        name="plant",
        train=(recording("a"), recording("b")),
        test=(recording("f1", fault=True), recording("f2", fault=True, time=False), recording("h1")),
        splits=splits,
        prior=Prior((Edge("flow", "_pressure", mechanism="more flow, more pressure"),)),
    )
    return LabelledDataset(
        dataset, Labels({"f1": fault, "f2": fault.copy(), "h1": np.zeros(n_rows, dtype=bool)}, splits)
    )


class Made:
    """Trials by label, under a protocol."""

    def __init__(self, store, data, records):
        self.store, self.data, self.records = store, data, records

    def of(self, label: str) -> list[TrialResult]:
        return [TrialResult(record, self.store, self.data) for record in self.records if record.label == label]

    def arrays(self, label: str, seed: int = 0) -> dict:
        """Return a trial's scores from the disk, read without the code under test."""
        (record,) = (one for one in self.records if (one.label, one.seed) == (label, seed))
        return dict(np.load(stored(self.store.path, record.trial).scores))

    def threshold(self, label: str, seed: int = 0) -> float:
        """Return the threshold of a trial's only episode."""
        (record,) = (one for one in self.records if (one.label, one.seed) == (label, seed))
        return record.thresholds[0].threshold.value

    def altered(self, label: str, threshold) -> TrialResult:
        """Return a trial's result with another threshold."""
        record = next(one for one in self.records if one.label == label)
        (one,) = record.thresholds
        record = replace(record, thresholds=(replace(one, threshold=threshold),))
        return TrialResult(record, self.store, self.data)


EVERY = (DISTANCE, "random", LARGEST_Z, "all-positive")


def made(folder, protocol: str, settings=(), detectors=EVERY) -> Made:
    data = make_plant()
    plan = make_plan(
        detectors,
        dataset=data,
        protocol=protocol,
        settings=settings,
        floors=False,
        seeds=3,
    )
    store = Store.create(folder)
    records = run_plan(plan, store)
    assert {record.status for record in records} == {"ok"}
    return Made(store, data, records)


def drawn(figure) -> np.ndarray:
    """Return a figure's pixels; drawing also runs its layout."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())
