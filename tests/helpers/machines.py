"""Three machines of one kind: a data set with entities whose scores have different scales."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tests.helpers.plans import make_plan
from tsadbench.base.dataset import Dataset, LabelledDataset, Labels
from tsadbench.base.recording import Recording
from tsadbench.execution.record import Record
from tsadbench.execution.runner import run_plan
from tsadbench.execution.store import Store
from tsadbench.results.trial_result import TrialResult
from tsadbench.utils.arrays import BoolArray

SENSORS = ("load", "memory")
DISTANCE, NOISY = "tests.helpers.tiny:Distance", "tests.helpers.tiny:Noisy"
# The mean and spread of each machine's values, and the anomalous rows of its two test recordings.
MACHINES = {
    "alpha": (0.0, 1.0, ((100, 140), (60, 75))),
    "beta": (500.0, 40.0, ((150, 200), None)),
    "gamma": (-30.0, 0.01, (None, None)),
}


def make_machines(order: Sequence[str] = tuple(MACHINES), n_rows: int = 240) -> LabelledDataset:
    """Return a data set: two training and two test recordings per machine, in this order; no row of gamma is anomalous.

    Test recordings are "<machine>/1" and "<machine>/2", training recordings "<machine>/a" and "<machine>/b"; each is a
    session. The splits are "overall" and "first", the first test recording of each machine. A machine's recordings
    depend only on its name and the number of rows.
    """
    train: list[Recording] = []
    test: list[Recording] = []
    labels: dict[str, BoolArray] = {}
    for machine in order:
        level, spread, faults = MACHINES[machine]
        rng = np.random.default_rng([n_rows, *machine.encode()])
        for part, fault in zip(("a", "b", "1", "2"), (None, None, *faults), strict=True):
            values = level + spread * rng.normal(size=(n_rows, len(SENSORS)))
            name = f"{machine}/{part}"
            if part in ("1", "2"):
                labels[name] = np.zeros(n_rows, dtype=np.bool_)
                if fault:
                    labels[name][slice(*fault)] = True
                    values[slice(*fault), 0] += 2.0 * spread
            (train if name not in labels else test).append(Recording(name, values, SENSORS, np.arange(float(n_rows))))
    splits = {"overall": tuple(labels), "first": tuple(name for name in labels if name.endswith("/1"))}
    names = [one.id for one in (*train, *test)]
    dataset = Dataset(
        "machines",
        tuple(train),
        tuple(test),
        splits,
        entities={name: name.partition("/")[0] for name in names},
        sessions={name: name for name in names},
    )
    return LabelledDataset(dataset, Labels(labels, splits))


class Made(NamedTuple):
    """The data, a store of trials on them, and the trials' records."""

    data: LabelledDataset
    store: Store
    records: tuple[Record, ...]

    def results(self) -> list[TrialResult]:
        return [TrialResult(record, self.store, self.data) for record in self.records]


def made_machines(folder: Path, *detectors: str, seeds: int = 2) -> Made:
    """Return trials of detectors on the three machines, in a new store."""
    data, store = make_machines(), Store.create(folder / "runs")
    records = run_plan(make_plan(detectors, dataset=data, floors=False, seeds=seeds), store)
    assert {record.status for record in records} == {"ok"}
    return Made(data, store, tuple(records))
