"""Two data sets with clock times, sessions and events of which detectors find some, and a store of trials on both."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.helpers.plans import make_plan
from tsadbench import Dataset, Labels, Recording
from tsadbench.base.dataset import LabelledDataset
from tsadbench.execution.runner import run_plan
from tsadbench.execution.store import Store

SENSORS = ("flow", "level", "pressure")
DETECTORS = ("t2", "max-z", "isolation-forest")
# 2024-01-02T03:04:05 in UTC.
START = 1704164645
N_ROWS = 240
_SHIFTS = (1.2, 4.0, 8.0)


def reported_data(name: str, seed: int) -> LabelledDataset:
    """Return a data set whose runs have one event each, of rising size; one recording is calm, one has no clock."""
    rng = np.random.default_rng(seed)

    def recording(id_: str, shift: float, time: float | None) -> Recording:
        values = rng.normal(size=(N_ROWS, len(SENSORS)))
        values[100:140, 0] += shift
        return Recording(id_, values, SENSORS, None if time is None else time + np.arange(N_ROWS, dtype=float))

    test = [recording(f"run {i}", shift, START + 86400.0 * i) for i, shift in enumerate(_SHIFTS)]
    test += [recording("calm", 0.0, START + 1e6), recording("clockless", 5.0, None)]
    fault = np.zeros(N_ROWS, dtype=bool)
    fault[100:140] = True
    labels = {one.id: np.zeros(N_ROWS, dtype=bool) if one.id == "calm" else fault.copy() for one in test}
    splits = {"overall": tuple(labels), "some": ("run 1", "run 2", "calm")}
    train = tuple(recording(f"normal {i}", 0.0, START - 1e5 * (i + 1)) for i in range(3))
    sessions = {one: one for one in (*labels, *(recording.id for recording in train))}
    return LabelledDataset(
        Dataset(name=name, train=train, test=tuple(test), splits=splits, sessions=sessions), Labels(labels, splits)
    )


@dataclass(frozen=True)
class Reported:
    """A store, its data sets by name, and the report of it."""

    store: Store
    data: dict[str, LabelledDataset]
    file: Path


def reported(folder: Path) -> Reported:
    """Run the detectors on both data sets and write the report."""
    from tsadbench.reporting.report import write_report

    store = Store.create(folder / "runs")
    data = {name: reported_data(name, seed) for name, seed in (("plant", 1), ("mill", 2))}
    for one in data.values():
        run_plan(make_plan(list(DETECTORS), dataset=one, floors=False, seeds=2, contributions=True), store)
    return Reported(store, data, write_report(store, data.__getitem__, folder / "report"))
