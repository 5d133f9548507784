"""A small data set with a known answer."""

from __future__ import annotations

import numpy as np

from tsadbench import Dataset, Labels, Recording
from tsadbench.base.dataset import LabelledDataset

SENSORS = ("a", "b", "c")


def make_data(seed: int = 0, n_rows: int = 200) -> LabelledDataset:
    """Two training and three test recordings of noise; rows 100-139 of each test recording are shifted by 8."""
    rng = np.random.default_rng(seed)

    def recording(name: str, fault: bool) -> Recording:
        values = rng.normal(size=(n_rows, len(SENSORS)))
        if fault:
            values[100:140] += 8.0
        return Recording(name, values, SENSORS, time=np.arange(n_rows, dtype=float))

    labels = np.zeros(n_rows, dtype=bool)
    labels[100:140] = True
    splits = {"overall": ("f1", "f2", "g1"), "f": ("f1", "f2"), "g": ("g1",)}
    dataset = Dataset(
        name="small",
        train=(recording("n1", fault=False), recording("n2", fault=False)),
        test=tuple(recording(name, fault=True) for name in splits["overall"]),
        splits=splits,
    )
    return LabelledDataset(dataset, Labels({name: labels.copy() for name in splits["overall"]}, splits))
