"""Data sets and priors by name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tsadbench import datasets
from tsadbench.base.dataset import DataOptions, LabelledDataset
from tsadbench.base.prior import Prior
from tsadbench.datasets import loading
from tsadbench.datasets.shipped import Source, download, place
from tsadbench.errors import UsageError
from tsadbench.registry import entries

_PRIOR_ENDING = ".prior.json"
_DATASETS = Path(datasets.__file__).parent


def load_dataset(name: str, data: str | Path | None = None) -> LabelledDataset:
    """Return a data set with its labels, by its name or the path of its card.

    ``data`` is the folder with the data sets' folders; by default TSADBENCH_DATA, or else the cache, to which missing
    files are downloaded. Raises a UsageError for an unknown data set, a DataNotFoundError if files are missing.
    """
    return loading.load_dataset(name)(DataOptions(directory=None if data is None else Path(data)))


def fetch(name: str, data: Path | None = None) -> tuple[Path, int, int]:
    """Download a data set's missing or changed files; return the folder, the number of files and of downloads.

    Raises a UsageError if they are not published, a DataError if one cannot be downloaded.
    """
    source, folder = Source.load(name), place(name, data)
    return folder, len(source.sha256), len(download(source, folder))


def load_prior(name: str) -> Prior:
    """Return the prior in a file, or of a data set; its files are only read if the prior does not ship.

    Raises a UsageError if ``name`` is neither, or the data set has no prior; a DataNotFoundError if the data set's
    files are needed but missing.
    """
    if Path(name).is_file():
        return Prior.load(name)
    shipped = {file.name.removesuffix(_PRIOR_ENDING): file for file in _DATASETS.rglob(f"*{_PRIOR_ENDING}")}
    if name in shipped:
        return Prior.load(shipped[name], origin=name)
    prior = load_dataset(name).dataset.prior if name in {entry.name for entry in entries("datasets")} else None
    if prior is None:
        raise UsageError(f"{name}: expected a prior's file, or a data set with a prior: {', '.join(sorted(shipped))}")
    return prior


def one_or_several(value: Any) -> Sequence[Any]:
    """Wrap a single value in a list; return lists and tuples unchanged."""
    if isinstance(value, Sequence) and not isinstance(value, str | bytes | LabelledDataset):
        return value
    return [value]
