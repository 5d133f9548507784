"""The data sets that ship, from their published files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tsadbench.base.dataset import DataOptions, LabelledDataset
from tsadbench.datasets.loading import load_dataset


def real(name: str) -> LabelledDataset:
    """Return a data set from its published files; skip loudly where they are not."""
    if name == "pumploop":  # it is simulated
        return load_dataset(name)(DataOptions())
    above = os.environ.get("TSADBENCH_DATA")
    if above is None or not Path(above, name).is_dir():
        pytest.skip(f"{name} is not here: set TSADBENCH_DATA to the folder that holds {name}/")
    return load_dataset(name)(DataOptions(directory=Path(above)))


def events(labels) -> int:
    """Return how many stretches of anomalous rows there are."""
    found = 0
    for rows in labels.rows.values():
        found += int(rows[0]) + int((rows[1:] & ~rows[:-1]).sum())
    return found
