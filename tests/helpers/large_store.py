"""A store of SKAB's size: 14 detectors by 34 recordings, contributions kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from tests.helpers.plans import make_plan
from tsadbench import Dataset, Labels, Recording
from tsadbench.base.dataset import LabelledDataset
from tsadbench.execution.run_store import Store
from tsadbench.execution.trial import run_trial

N_DETECTORS = 14
N_RECORDINGS = 34
N_ROWS = 1100
SENSORS = tuple(f"sensor {i}" for i in range(8))


def large_store(folder: Path) -> tuple[Store, LabelledDataset]:
    """Return the store and its data; the detectors are one detector under 14 names."""
    rng = np.random.default_rng(0)

    def recording(name: str) -> Recording:
        return Recording(name, rng.normal(size=(N_ROWS, len(SENSORS))), SENSORS, time=np.arange(N_ROWS, dtype=float))

    anomalous = np.zeros(N_ROWS, dtype=bool)
    anomalous[600:900] = True
    names = tuple(f"recording {i}" for i in range(N_RECORDINGS))
    splits = {"overall": names, "first": names[:16], "second": names[16:20], "third": names[20:]}
    dataset = Dataset("large", (recording("normal"),), tuple(map(recording, names)), splits)
    data = LabelledDataset(dataset, Labels({name: anomalous.copy() for name in names}, splits))
    store = Store.create(folder / "runs")
    plan = make_plan(["t2"], dataset=data, floors=False, contributions=True)
    outcome = run_trial(plan.trials[0], plan)
    for i in range(N_DETECTORS):
        store.add(replace(outcome, record=replace(outcome.record, label=f"detector {i}", trial=f"{i:024d}")))
    return store, data
