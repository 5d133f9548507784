"""Data sets that nothing can be judged on, because test recordings or labels are missing: fits alone are made there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tsadbench.base.dataset import Dataset, LabelledDataset
from tsadbench.base.protocol import Episode, Protocol
from tsadbench.base.recording import Recording
from tsadbench.errors import DataError, UsageError


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
    """Yield a protocol's episodes, also for a data set or an entity without test recordings.

    Protocols leave out what nothing is tested on. For each entity without test recordings, one row therefore stands in
    for them while the protocol chooses the training rows. It has no time, so that it equals no training row and none
    is left out for it. The episodes that are returned do not contain it.

    Raises
    ------
    DataError
        If the protocol trains on test recordings, and there are none.
    """
    stand_ins: dict[str, Recording] = {}
    entities = dict(dataset.entities)
    for train, test in dataset.by_entity.values():
        if train and not test:
            last = train[-1]
            name = f"{last.id}/last row"
            stand_ins[name] = Recording(name, last.values[-1:], dataset.sensors)
            if entities:
                entities[name] = entities[last.id]
    if not stand_ins:
        yield from protocol.episodes(dataset)
        return
    extended = replace(dataset, test=(*dataset.test, *stand_ins.values()), splits={}, sessions={}, entities=entities)
    try:
        episodes = list(protocol.episodes(extended))
    except DataError as error:
        if dataset.test:
            raise
        raise DataError(
            f"data set {dataset.name!r} has no test recording, and this protocol cannot choose training rows without: "
            "choose strict or published"
        ) from error
    for episode in episodes:
        test = tuple(one for one in episode.test if one.id not in stand_ins) if dataset.test else ()
        yield replace(episode, test=test)
