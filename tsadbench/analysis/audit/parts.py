"""What one model is trained and tested on: an entity of a data set, or all of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from tsadbench.base.dataset import LabelledDataset
from tsadbench.base.recording import Recording
from tsadbench.utils.arrays import BoolArray, FloatArray
from tsadbench.utils.grouping import grouped
from tsadbench.utils.text import first_of


@dataclass(frozen=True, eq=False)
class Part:
    """Recordings of one entity, with their labels, in the data set's order; it may lack either kind.

    ``entity`` is empty if the data set has at most one, and the part is all of it. ``labels`` are by test recording's
    id, [n_rows], True where anomalous; all False without labels. ``splits`` lack other entities' recordings.
    """

    entity: str
    train: tuple[Recording, ...]
    test: tuple[Recording, ...]
    labels: Mapping[str, BoolArray]
    splits: Mapping[str, tuple[str, ...]]

    @cached_property
    def sensors(self) -> tuple[str, ...]:
        """The sensors' names."""
        return (*self.train, *self.test)[0].sensors

    @cached_property
    def train_rows(self) -> FloatArray:
        """Its training rows, [n_rows, n_sensors]; empty without training recordings."""
        return np.concatenate([np.empty((0, len(self.sensors))), *(one.values for one in self.train)])

    @cached_property
    def test_rows(self) -> FloatArray:
        """Its test rows, [n_rows, n_sensors]."""
        return np.concatenate([np.empty((0, len(self.sensors))), *(one.values for one in self.test)])

    @cached_property
    def anomalous(self) -> BoolArray:
        """The labels of its test rows, [n_rows]."""
        return np.concatenate([np.empty(0, dtype=np.bool_), *(self.labels[one.id] for one in self.test)])


def parts_of(data: LabelledDataset) -> tuple[Part, ...]:
    """Return a data set's entities, in the order of their first test recordings; those without any are left out.

    Without any test recording at all, every entity is a part.
    """
    train, test = (
        grouped(recordings, lambda recording: data.dataset.entities.get(recording.id, ""))
        for recordings in (data.dataset.train, data.dataset.test)
    )
    several = len({*train, *test}) > 1
    parts = []
    for entity, recordings in (test or dict.fromkeys(train, tuple[Recording, ...]())).items():
        labels = {one.id: data.labels.rows.get(one.id, np.zeros(one.n_rows, dtype=np.bool_)) for one in recordings}
        splits = {
            split: own
            for split, members in data.dataset.splits.items()
            if (own := tuple(member for member in members if member in labels))
        }
        parts.append(Part(entity if several else "", train.get(entity, ()), recordings, labels, splits))
    return tuple(parts)


def by_entity(parts: Sequence[Part], describe: Callable[[Part], Mapping[str, object]]) -> pd.DataFrame:
    """Return a row for each part, in the column "entity" its name unless the data set has at most one."""
    frame = pd.DataFrame([{"entity": part.entity, **describe(part)} for part in parts])
    return frame if any(part.entity for part in parts) else frame.drop(columns="entity")


def within(rows: pd.DataFrame) -> str:
    """Return of which entities some rows of `by_entity` are, " in a, b"; empty if the data set has at most one."""
    names = list(rows.get("entity", ()))
    return f" in {first_of(names)}" if names else ""
