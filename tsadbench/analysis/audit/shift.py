"""How far normal test rows lie from the training rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tsadbench.base.dataset import LabelledDataset


@dataclass(frozen=True, slots=True)
class Shift:
    """One sensor in the normal rows of one split, against the training rows.

    Parameters
    ----------
    split, sensor
        Which.
    train_median, test_median
        In the sensor's own unit.
    z
        Median z-score of the normal test rows by the training rows' mean and standard deviation; None where the sensor
        never moves in training.
    outside
        Share of the normal test rows outside the training rows' range.
    """

    split: str
    sensor: str
    train_median: float
    test_median: float
    z: float | None
    outside: float


def shifts(data: LabelledDataset) -> tuple[Shift, ...]:
    """Return the shift of every sensor in every split; splits without normal rows are left out."""
    train = np.concatenate([recording.values for recording in data.dataset.train])
    mean, deviation = train.mean(axis=0), train.std(axis=0)
    low, high, median = train.min(axis=0), train.max(axis=0), np.median(train, axis=0)
    by_id = {recording.id: recording.values for recording in data.dataset.test}
    found = []
    for split, members in data.dataset.splits.items():
        normal = np.concatenate([by_id[member][~data.labels.rows[member]] for member in members])
        if not len(normal):
            continue
        medians = np.median(normal, axis=0)
        outside = ((normal < low) | (normal > high)).mean(axis=0)
        for place, sensor in enumerate(data.dataset.sensors):
            z = float((medians[place] - mean[place]) / deviation[place]) if low[place] < high[place] else None
            found.append(Shift(split, sensor, float(median[place]), float(medians[place]), z, float(outside[place])))
    return tuple(found)
