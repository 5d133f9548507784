"""Distribution shift: the distance of normal test rows from the training rows."""

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
        The rows and the column.
    train_median, test_median
        In the sensor's own unit.
    z
        Median z-score of the normal test rows by the training rows' mean and standard deviation; None if the sensor is
        constant in training.
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
    every = []
    for split, members in data.dataset.splits.items():
        normal = np.concatenate([by_id[member][~data.labels.rows[member]] for member in members])
        if not len(normal):
            continue
        medians = np.median(normal, axis=0)
        outside = ((normal < low) | (normal > high)).mean(axis=0)
        for i, sensor in enumerate(data.dataset.sensors):
            z = float((medians[i] - mean[i]) / deviation[i]) if low[i] < high[i] else None
            every.append(Shift(split, sensor, float(median[i]), float(medians[i]), z, float(outside[i])))
    return tuple(every)
