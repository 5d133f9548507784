"""What one model is trained and tested on: an entity of a data set, or all of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tsadbench.base.dataset import LabelledDataset
from tsadbench.base.recording import Recording
from tsadbench.utils.arrays import BoolArray, FloatArray
from tsadbench.utils.grouping import grouped


@dataclass(frozen=True, eq=False)
class Part:
    """Recordings of one entity, with their labels.

    Parameters
    ----------
    entity
        Its name; empty if the data set has at most one, and the part is all of it.
    train, test
        Its recordings, in the data set's order. It may lack either.
    labels
        For each test recording's id, in that order: [n_rows], True where anomalous; nowhere if nobody has labelled it.
    splits
        The data set's splits, without recordings of other entities.
    """

    entity: str
    train: tuple[Recording, ...]
    test: tuple[Recording, ...]
    labels: Mapping[str, BoolArray]
    splits: Mapping[str, tuple[str, ...]]

    @property
    def sensors(self) -> tuple[str, ...]:
        """The sensors' names."""
        return (*self.train, *self.test)[0].sensors

    @cached_property
    def train_rows(self) -> FloatArray:
        """Its training rows, [n_rows, n_sensors]; empty without training recordings."""
        empty = np.empty((0, len(self.sensors)))
        return np.concatenate([empty, *(recording.values for recording in self.train)])

    @cached_property
    def test_rows(self) -> FloatArray:
        """Its test rows, [n_rows, n_sensors]."""
        return np.concatenate([np.empty((0, len(self.sensors))), *(recording.values for recording in self.test)])

    @cached_property
    def anomalous(self) -> BoolArray:
        """The labels of its test rows, [n_rows]."""
        return np.concatenate([np.empty(0, dtype=np.bool_), *(self.labels[recording.id] for recording in self.test)])

    def recording(self, role: str) -> Recording:
        """Return all rows of a role, "train" or "test", as one recording without time."""
        return Recording(role, self.train_rows if role == "train" else self.test_rows, self.sensors)


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
