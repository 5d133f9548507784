"""The data sets that ship, from their published files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tsadbench.base.dataset import DataOptions, LabelledDataset
from tsadbench.datasets.loading import load_dataset


def real(name: str) -> LabelledDataset:
    """Return a data set from its published files; skip the test with a message if they are missing."""
    if name == "pumploop":  # it is simulated
        return load_dataset(name)(DataOptions())
    return load_dataset(name)(DataOptions(directory=published_folder(name)))


def published_folder(name: str) -> Path:
    """Return the folder that holds a data set's folder. Without one, the test is skipped; SKAB's fail in CI."""
    above = os.environ.get("TSADBENCH_DATA")
    if above and Path(above, name).is_dir():
        return Path(above)
    message = f"{name} is not here: set TSADBENCH_DATA to the folder that holds {name}/"
    if name == "skab" and os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)
