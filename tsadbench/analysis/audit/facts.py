"""Facts about a data set: of each recording, of pairs that share rows, of sensors that have moved since training."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from tsadbench.base.dataset import LabelledDataset
from tsadbench.base.recording import Recording
from tsadbench.base.shared_rows import shared_rows
from tsadbench.utils.arrays import BoolArray

# A step longer than this many usual ones is a gap.
_GAP = 3.0


@dataclass(frozen=True, slots=True)
class Gap:
    """A jump in time.

    Parameters
    ----------
    row
        The first row after it.
    seconds
        From the row before it.
    """

    row: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingFacts:
    """Facts about one recording.

    Parameters
    ----------
    id, role
        Its id; "train" or "test".
    n_rows
        Its length.
    n_anomalous, first_anomalous
        The number of anomalous rows, and the first; None if it has no labels, or none is anomalous.
    step_seconds
        The median step in time; None without time.
    gaps
        Steps of more than three usual ones.
    duplicates
        Rows that are equal to the row just before them, in all sensors.
    constant
        Sensors that never move in it.
    """

    id: str
    role: str
    n_rows: int
    n_anomalous: int | None
    first_anomalous: int | None
    step_seconds: float | None
    gaps: tuple[Gap, ...]
    duplicates: int
    constant: tuple[str, ...]


def facts_of(recording: Recording, role: str, anomalous: BoolArray | None) -> RecordingFacts:
    """Return the facts about one recording.

    Parameters
    ----------
    recording
        The recording.
    role
        "train" or "test".
    anomalous
        Its labels [n_rows]; None if it has none.
    """
    step, gaps = _steps(recording)
    anomalies = np.flatnonzero(anomalous) if anomalous is not None else np.empty(0, dtype=np.int64)
    repeated = (recording.values[1:] == recording.values[:-1]).all(axis=1)
    constant = np.ptp(recording.values, axis=0) == 0.0
    return RecordingFacts(
        id=recording.id,
        role=role,
        n_rows=recording.n_rows,
        n_anomalous=None if anomalous is None else len(anomalies),
        first_anomalous=int(anomalies[0]) if len(anomalies) else None,
        step_seconds=step,
        gaps=gaps,
        duplicates=int(np.count_nonzero(repeated)),
        constant=tuple(sensor for sensor, still in zip(recording.sensors, constant, strict=True) if still),
    )


def _steps(recording: Recording) -> tuple[float | None, tuple[Gap, ...]]:
    if recording.time is None or recording.n_rows < 2:
        return None, ()
    steps = np.diff(recording.time)
    usual = float(np.median(steps))
    after = np.flatnonzero(steps > _GAP * usual) + 1
    return usual, tuple(Gap(int(row), float(steps[row - 1])) for row in after)


@dataclass(frozen=True, slots=True)
class SharedRows:
    """Rows that two recordings share: the same values and, if all recordings have times, the same time.

    Parameters
    ----------
    first, second
        Ids of the recordings.
    roles
        "train and test", "test and test" or "train and train".
    n_rows
        The number of different rows that occur in both.
    n_contradicting
        The number of these that are anomalous in one and normal in the other; None if one of them has no labels.
    """

    first: str
    second: str
    roles: str
    n_rows: int
    n_contradicting: int | None


def recordings_sharing_rows(
    train: Sequence[Recording], test: Sequence[Recording], labels: Mapping[str, BoolArray]
) -> tuple[SharedRows, ...]:
    """Return all pairs of recordings that share rows, in the data set's order.

    Without times, rows are compared by their values alone: a system at rest may repeat itself without being copied, so
    such findings need a second look.
    """
    recordings = [*train, *test]
    roles = ["train"] * len(train) + ["test"] * len(test)
    # By row: its label in each recording that has it, at its first occurrence; None without labels.
    occurrences: dict[int, dict[int, bool | None]] = {}
    for position, numbers in enumerate(shared_rows(recordings, untimed="by value")):
        anomalous = labels.get(recordings[position].id)
        for row in np.flatnonzero(numbers >= 0).tolist():
            label = None if anomalous is None else bool(anomalous[row])
            occurrences.setdefault(int(numbers[row]), {}).setdefault(position, label)
    n_rows: Counter[tuple[int, int]] = Counter()
    n_contradicting: Counter[tuple[int, int]] = Counter()
    for label_of in occurrences.values():
        for first, second in combinations(label_of, 2):
            n_rows[first, second] += 1
            n_contradicting[first, second] += {label_of[first], label_of[second]} == {True, False}
    return tuple(
        SharedRows(
            recordings[first].id,
            recordings[second].id,
            f"{roles[first]} and {roles[second]}",
            n_rows[first, second],
            n_contradicting[first, second] if roles[first] == "test" else None,
        )
        for first, second in sorted(n_rows)
    )


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
