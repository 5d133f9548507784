"""What sensors give away: a shift since training, sensors that never move, the statistics that they were scaled by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tsadbench.analysis.audit.parts import Part
from tsadbench.utils.arrays import BoolArray, FloatArray

# How far from a bound a value may lie that was scaled to it, in shares of the range, and stored as float32.
_EXACT = 1e-6
_BOUNDS = ((0.0, 1.0), (-1.0, 1.0))


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
    entity
        Whose rows; empty if the data set has at most one.
    """

    split: str
    sensor: str
    train_median: float
    test_median: float
    z: float | None
    outside: float
    entity: str = ""


def shifts_of(part: Part) -> Iterator[Shift]:
    """Yield the shift of every sensor in every split; of one entity among several, in all of its test rows.

    Splits without normal rows are left out.
    """
    train = part.train_rows
    if not len(train):
        return
    mean, deviation = train.mean(axis=0), train.std(axis=0)
    low, high, median = train.min(axis=0), train.max(axis=0), np.median(train, axis=0)
    by_id = {recording.id: recording.values for recording in part.test}
    for split, members in {"overall": tuple(by_id)}.items() if part.entity else part.splits.items():
        normal = np.concatenate([by_id[member][~part.labels[member]] for member in members])
        if not len(normal):
            continue
        medians = np.median(normal, axis=0)
        outside = ((normal < low) | (normal > high)).mean(axis=0)
        for i, sensor in enumerate(part.sensors):
            z = float((medians[i] - mean[i]) / deviation[i]) if low[i] < high[i] else None
            yield Shift(split, sensor, float(median[i]), float(medians[i]), z, float(outside[i]), part.entity)


@dataclass(frozen=True, slots=True)
class SensorFacts:
    """What an entity's sensors do in training and in the test.

    ``outside`` is the share of the normal test rows in which at least one sensor lies outside its training range, and
    ``off_constant`` of those in which a sensor that is constant in training has another value. ``train_only`` and
    ``test_only`` sensors move in one of the two; ``anomalies_only`` move in anomalous rows alone. Of those that are
    ``moving`` and take more than two values, ``scaled_by_both``, ``_train``, ``_either`` and ``_each`` count the ones
    that run exactly from 0 to 1, or -1 to 1, or have mean 0 and deviation 1: over training and test rows together but
    not over the training rows; the other way round; over the training rows and over both; over the training and over
    the test rows.
    """

    entity: str
    outside: float | None
    never: tuple[str, ...]
    train_only: tuple[str, ...]
    test_only: tuple[str, ...]
    anomalies_only: tuple[str, ...]
    off_constant: float | None
    moving: int
    scaled_by_both: int
    scaled_by_train: int
    scaled_by_either: int
    scaled_by_each: int


def sensor_facts(part: Part) -> SensorFacts:
    """Return what an entity's sensors do."""
    train, test = part.train_rows, part.test_rows
    normal = test[~part.anomalous]
    both = np.concatenate([train, test])
    still, still_train, still_test, still_normal = (
        np.ptp(rows, axis=0) == 0.0 if len(rows) else np.zeros(both.shape[1], dtype=np.bool_)
        for rows in (both, train, test, np.concatenate([train, normal]))
    )
    outside = off = None
    if len(train) and len(normal):
        beyond = (normal < train.min(axis=0)) | (normal > train.max(axis=0))
        outside, off = float(beyond.any(axis=1).mean()), float(beyond[:, still_train].any(axis=1).mean())
    names = np.array(part.sensors, dtype=np.object_)
    moving = ~still & ~_of_two_values(both)
    by_both, by_train, by_test = (_scaled(rows) & moving for rows in (both, train, test))
    return SensorFacts(
        entity=part.entity,
        outside=outside,
        never=tuple(names[still]),
        train_only=tuple(names[still_test & ~still]),
        test_only=tuple(names[still_train & ~still]),
        anomalies_only=tuple(names[still_normal & ~still]) if len(normal) else (),
        off_constant=off,
        moving=int(moving.sum()),
        scaled_by_both=int((by_both & ~by_train).sum()),
        scaled_by_train=int((by_train & ~by_both).sum()),
        scaled_by_either=int((by_train & by_both).sum()),
        scaled_by_each=int((by_train & by_test).sum()),
    )


def _scaled(rows: FloatArray) -> BoolArray:
    """Return [n_sensors], whether these rows seem to be what a sensor was scaled by."""
    if not len(rows):
        return np.zeros(rows.shape[1], dtype=np.bool_)
    low, high = rows.min(axis=0), rows.max(axis=0)
    scaled = np.zeros(len(low), dtype=np.bool_)
    for least, most in _BOUNDS:
        scaled |= (np.abs(low - least) <= _EXACT) & (np.abs(high - most) <= _EXACT)
    # Rounding of float32 over many rows; the two together are no accident.
    scaled |= (np.abs(rows.mean(axis=0)) < 1e-4) & (np.abs(rows.std(axis=0) - 1.0) < 1e-4)
    return scaled


def _of_two_values(rows: FloatArray) -> BoolArray:
    """Return [n_sensors], whether a sensor takes two values at most: states, which were 0 and 1 from the beginning."""
    low, high = rows.min(axis=0), rows.max(axis=0)
    two: BoolArray = ((rows == low) | (rows == high)).all(axis=0)
    return two
