"""What one model is trained and tested on: an entity of a data set, or all of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from tsadbench.base.dataset import LabelledDataset
from tsadbench.base.recording import Recording
from tsadbench.utils.arrays import BoolArray, FloatArray
from tsadbench.utils.grouping import grouped
from tsadbench.utils.text import first_of


class Part(NamedTuple):
    """Recordings of one entity, in the data set's order, and their rows together; it may lack either kind.

    ``entity`` is empty if the data set has at most one, and the part is all of it. ``splits`` lack other entities'
    recordings. Rows are [n_rows, n_sensors]; labels, by test recording's id and of all test rows, are True where
    anomalous, and all False without labels.
    """

    entity: str
    sensors: tuple[str, ...]
    train: tuple[Recording, ...]
    test: tuple[Recording, ...]
    splits: Mapping[str, tuple[str, ...]]
    labels: Mapping[str, BoolArray]
    train_rows: FloatArray
    test_rows: FloatArray
    anomalous: BoolArray


def parts_of(data: LabelledDataset) -> tuple[Part, ...]:
    """Return a data set's entities, in the order of their first test recordings; those without any are left out.

    Without any test recording at all, every entity is a part.
    """
    dataset, parts = data.dataset, []
    of_train, of_test = (
        grouped(recordings, lambda recording: dataset.entities.get(recording.id, ""))
        for recordings in (dataset.train, dataset.test)
    )
    several, none = len({*of_train, *of_test}) > 1, np.empty((0, len(dataset.sensors)))
    for entity in of_test or of_train:
        train, test = of_train.get(entity, ()), of_test.get(entity, ())
        labels = {one.id: data.labels.rows.get(one.id, np.zeros(one.n_rows, dtype=np.bool_)) for one in test}
        members = {split: tuple(one for one in every if one in labels) for split, every in dataset.splits.items()}
        splits = {split: own for split, own in members.items() if own}
        train_rows, test_rows = (np.concatenate([none, *(one.values for one in of)]) for of in (train, test))
        of_rows = train_rows, test_rows, np.concatenate([none[:, 0] > 0, *labels.values()])
        parts.append(Part(entity if several else "", dataset.sensors, train, test, splits, labels, *of_rows))
    return tuple(parts)


def by_entity(parts: Sequence[Part], describe: Callable[[Part], Mapping[str, object]]) -> pd.DataFrame:
    """Return a row for each part, in the column "entity" its name unless the data set has at most one."""
    frame = pd.DataFrame([{"entity": part.entity, **describe(part)} for part in parts])
    return frame if any(part.entity for part in parts) else frame.drop(columns="entity")


def within(rows: pd.DataFrame) -> str:
    """Return of which entities some rows of `by_entity` are, " in a, b"; empty if the data set has at most one."""
    names = list(rows.get("entity", ()))
    return f" in {first_of(names)}" if names else ""
