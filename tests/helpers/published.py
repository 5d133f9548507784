"""Folders for data sets whose files are published: the real ones, or made-up ones in the same layout."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from tsadbench.base.dataset import DataOptions, LabelledDataset
from tsadbench.datasets.loading import load_dataset
from tsadbench.datasets.source import Source


def real(name: str) -> LabelledDataset:
    """Return a data set from its published files; skip loudly where they are not."""
    above = os.environ.get("TSADBENCH_DATA")
    if above is None or not Path(above, name).is_dir():
        pytest.skip(f"{name} is not here: set TSADBENCH_DATA to the folder that holds {name}/")
    return load_dataset(name)(DataOptions(directory=Path(above)))


def made_up(name: str, above: Path, files: Mapping[str, bytes] | None = None) -> LabelledDataset:
    """Return a data set from made-up files in `above`; those that are neither there nor given are empty."""
    for file in Source.load(name).sha256:
        path = above / name / file
        path.parent.mkdir(parents=True, exist_ok=True)
        if files is not None and file in files:
            path.write_bytes(files[file])
        elif not path.exists():
            path.touch()
    return load_dataset(name)(DataOptions(directory=above, allow_changed=True))


def events(labels) -> int:
    """Return how many stretches of anomalous rows there are."""
    found = 0
    for rows in labels.rows.values():
        found += int(rows[0]) + int((rows[1:] & ~rows[:-1]).sum())
    return found
