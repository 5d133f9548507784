"""Data sets that nothing can be judged on, because test recordings or labels are missing: fits alone are made there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tsadbench.base.dataset import Dataset, LabelledDataset
from tsadbench.base.protocol import Episode, Protocol
from tsadbench.errors import UsageError


def require_judgeable(data: LabelledDataset, called: str) -> None:
    """Raise a UsageError unless a data set has test recordings with labels.

    Parameters
    ----------
    data
        Recordings and labels.
    called
        What the user calls the data set: its name, or the path of its card.
    """
    if data.missing:
        add = "labels" if data.missing == "labels" else "a [test] part with labels"
        raise UsageError(
            f"data set {called} has no {data.missing}, so there is nothing to judge: fit a detector and score files "
            f"with it (tsadbench fit --dataset {called} --out plant.model, then tsadbench score plant.model "
            f"FILE), or add {add} (docs/adding-a-data-set.md)"
        )


def fitting_episodes(protocol: Protocol, dataset: Dataset) -> Iterator[Episode]:
    """Yield a protocol's episodes, and then the fit of each entity that has no test recordings, as if it were alone."""
    yield from protocol.episodes(dataset)
    for entity, (train, test) in dataset.by_entity.items():
        if dataset.test and train and not test:
            alone = replace(dataset, train=train, test=(), splits={}, sessions={}, entities={})
            yield from (replace(episode, id=entity) for episode in protocol.episodes(alone))
