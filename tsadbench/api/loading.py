"""Data sets and priors by name."""

from __future__ import annotations

from pathlib import Path

from tsadbench import datasets
from tsadbench.base.dataset import DataOptions, LabelledDataset
from tsadbench.base.prior import Prior
from tsadbench.datasets.loading import load_dataset as loader_of
from tsadbench.errors import UsageError
from tsadbench.registry import entries

_PRIOR_ENDING = ".prior.json"
_DATASETS = Path(datasets.__file__).parent


def load_dataset(name: str, data: str | Path | None = None) -> LabelledDataset:
    """Return a data set with its labels.

    Parameters
    ----------
    name
        Its name, or the path of its card.
    data
        Folder with the data sets' folders; None searches as the documentation says.

    Raises
    ------
    UsageError
        If there is no such data set.
    DataNotFoundError
        If its files are not on this machine.
    """
    return loader_of(name)(DataOptions(directory=None if data is None else Path(data)))


def load_prior(name: str) -> Prior:
    """Return the prior in a file, or that of a data set; its files are read only if the prior does not ship.

    Raises
    ------
    UsageError
        If it is neither, or the data set has no prior.
    DataNotFoundError
        If the prior lies among the data set's files, and these are not here.
    """
    if Path(name).is_file():
        return Prior.load(name)
    shipped = {file.name.removesuffix(_PRIOR_ENDING): file for file in _DATASETS.rglob(f"*{_PRIOR_ENDING}")}
    if name in shipped:
        return Prior.load(shipped[name], origin=name)
    if name in {entry.name for entry in entries("datasets")}:
        prior = load_dataset(name).dataset.prior
        if prior is not None:
            return prior
        raise UsageError(f"{name}: the data set has no prior; name a prior's file, or one of {sorted(shipped)}")
    raise UsageError(f"{name}: expected a prior's file or one of {sorted(shipped)}; there is no such file")
