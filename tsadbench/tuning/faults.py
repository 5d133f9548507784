"""Faults of known kinds, planted into normal rows: what a detector is tuned to find without labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tsadbench.base.recording import Recording
from tsadbench.errors import DataError
from tsadbench.utils.arrays import BoolArray, FloatArray, IntArray

# One fault per slot of so many rows, somewhere within it; a fault takes at most a fifth of its slot.
SLOT = 200
_LARGEST_SHARE = 5


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of fault in some rows of one sensor.

    Parameters
    ----------
    name, meaning
        Its name in tables, and what it does to the sensor's values in these rows.
    rows
        Smallest and largest number of rows.
    size
        Smallest and largest size, in standard deviations of the sensor over the rows trained on; None if the fault has
        no size.
    """

    name: str
    meaning: str
    rows: tuple[int, int]
    size: tuple[float, float] | None


KINDS = (
    Kind("spike", "a jump up or down, and back", (1, 3), (3.0, 8.0)),
    Kind("level-shift", "a constant is added or taken away", (10, 40), (1.0, 3.0)),
    Kind("drift", "a ramp from nothing up or down to the size", (20, 40), (1.0, 4.0)),
    Kind("stuck", "the value of the row before is repeated", (10, 40), None),
    Kind("noise-burst", "normal noise is added whose standard deviation is the size", (10, 40), (1.0, 3.0)),
    Kind(
        "broken-coupling",
        "the sensor shows what it showed at another time of the recording; a sensor that correlates with another one "
        "is drawn",
        (20, 40),
        None,
    ),
)


@dataclass(frozen=True, slots=True, eq=False)
class Plant:
    """Statistics of the rows trained on, from which faults are drawn.

    Parameters
    ----------
    scale
        [n_sensors] standard deviations.
    varying, coupled
        Indices of the sensors that vary, and of the half of these that correlates most with another sensor.
    """

    scale: FloatArray
    varying: IntArray
    coupled: IntArray

    @classmethod
    def of(cls, train: Sequence[Recording]) -> Plant:
        """Compute them from training recordings. A DataError if no sensor varies."""
        rows = np.concatenate([recording.values for recording in train])
        scale = rows.std(axis=0)
        varying = np.flatnonzero(scale > len(rows) * np.finfo(np.float64).eps * np.abs(rows.mean(axis=0)))
        if len(varying) == 0:
            raise DataError("expected a sensor that varies in the training rows, found all constant")
        strongest = np.zeros(len(varying))
        if len(varying) > 1:
            correlation = np.abs(np.corrcoef(rows[:, varying], rowvar=False))
            np.fill_diagonal(correlation, 0.0)
            strongest = correlation.max(axis=0)
        return cls(scale, varying, varying[strongest >= np.median(strongest)])


@dataclass(frozen=True, slots=True, eq=False)
class Faulty:
    """A recording with faults of one kind.

    Parameters
    ----------
    recording
        The recording with the faults.
    rows
        [n_rows], True in the rows of a fault.
    """

    recording: Recording
    rows: BoolArray


def with_faults(recording: Recording, first: int, kind: Kind, plant: Plant, generator: np.random.Generator) -> Faulty:
    """Return a recording with faults of a kind in its rows from ``first`` on, and unchanged elsewhere."""
    values = recording.values.copy()
    faulty = np.zeros(recording.n_rows, dtype=np.bool_)
    for start, stop in _segments(first, recording.n_rows, kind, generator):
        sensor = int(generator.choice(plant.coupled if kind.name == "broken-coupling" else plant.varying))
        size = 0.0 if kind.size is None else float(generator.uniform(*kind.size) * plant.scale[sensor])
        values[start:stop, sensor] = _effect(kind.name, recording.values[:, sensor], start, stop, size, generator)
        faulty[start:stop] = True
    return Faulty(Recording(recording.id, values, recording.sensors, recording.time), faulty)


def _segments(first: int, stop: int, kind: Kind, generator: np.random.Generator) -> list[tuple[int, int]]:
    """Return the first row of each fault and the row after its last: one fault in each of equal slots."""
    n_slots = max(1, (stop - first) // SLOT)
    borders = [first + (stop - first) * number // n_slots for number in range(n_slots + 1)]
    segments = []
    for start, end in pairwise(borders):
        most = max(1, min(kind.rows[1], (end - start) // _LARGEST_SHARE))
        length = int(generator.integers(min(kind.rows[0], most), most + 1))
        begin = int(generator.integers(start, end - length + 1))
        segments.append((begin, begin + length))
    return segments


def _effect(
    kind: str, values: FloatArray, start: int, stop: int, size: float, generator: np.random.Generator
) -> FloatArray:
    """Return what a fault makes of rows ``start`` to ``stop - 1`` of a sensor's values [n_rows]."""
    rows = values[start:stop]
    match kind:
        case "spike" | "level-shift":
            return rows + size * _sign(generator)
        case "drift":
            return rows + size * _sign(generator) * (np.arange(1, len(rows) + 1) / len(rows))
        case "stuck":
            return np.full_like(rows, values[start - 1])
        case "noise-burst":
            return rows + generator.normal(0.0, size, len(rows))
        case _:
            return _elsewhere(values, start, stop, generator)


def _elsewhere(values: FloatArray, start: int, stop: int, generator: np.random.Generator) -> FloatArray:
    """Return values from rows that do not overlap these; without such rows, these values in reverse."""
    length = stop - start
    before, after = max(0, start - length + 1), max(0, len(values) - length - stop + 1)
    if before + after == 0:
        return values[start:stop][::-1]
    drawn = int(generator.integers(before + after))
    begin = drawn if drawn < before else stop + drawn - before
    return values[begin : begin + length]


def _sign(generator: np.random.Generator) -> float:
    return 1.0 if generator.random() < 0.5 else -1.0
