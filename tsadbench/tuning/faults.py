"""Plants faults of known kinds into normal rows, to tune detectors without labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tsadbench.base.recording import Recording
from tsadbench.errors import DataError
from tsadbench.utils.arrays import BoolArray, FloatArray, IntArray

# Rows per slot. Each slot holds one fault, which covers at most a fifth of it.
SLOT = 200
_LARGEST_SHARE = 5


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of fault in some rows of one sensor; docs/tuning.md says what each kind does."""

    name: str
    rows: tuple[int, int]  # smallest and largest number of rows
    size: tuple[float, float] | None = None  # range of sizes, in the sensor's standard deviations over training rows


KINDS = (
    Kind("spike", (1, 3), (3.0, 8.0)),
    Kind("level-shift", (10, 40), (1.0, 3.0)),
    Kind("drift", (20, 40), (1.0, 4.0)),
    Kind("stuck", (10, 40)),
    Kind("noise-burst", (10, 40), (1.0, 3.0)),
    Kind("broken-coupling", (20, 40)),
)


@dataclass(frozen=True, slots=True, eq=False)
class Plant:
    """Statistics of the training rows, from which faults are drawn."""

    scale: FloatArray  # [n_sensors] standard deviations
    varying: IntArray  # indices of the sensors that vary
    coupled: IntArray  # indices of the half of these that correlate most with another sensor

    @classmethod
    def of(cls, train: Sequence[Recording]) -> Plant:
        """Compute the statistics of training recordings. Raises a DataError if no sensor varies."""
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


def with_faults(
    recording: Recording, first: int, kind: Kind, plant: Plant, generator: np.random.Generator
) -> tuple[Recording, BoolArray]:
    """Return a recording with faults of a kind in its rows from ``first`` on, and which rows [n_rows] are faulty."""
    values, faulty = recording.values.copy(), np.zeros(recording.n_rows, dtype=np.bool_)
    for start, stop in _segments(first, recording.n_rows, kind, generator):
        sensor = int(generator.choice(plant.coupled if kind.name == "broken-coupling" else plant.varying))
        size = 0.0 if kind.size is None else float(generator.uniform(*kind.size) * plant.scale[sensor])
        values[start:stop, sensor] = _effect(kind.name, recording.values[:, sensor], start, stop, size, generator)
        faulty[start:stop] = True
    return Recording(recording.id, values, recording.sensors, recording.time), faulty


def _segments(first: int, stop: int, kind: Kind, generator: np.random.Generator) -> list[tuple[int, int]]:
    """Return the half-open row range of each fault: one fault in each of several equal slots."""
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
    """Apply a fault to rows ``start`` to ``stop - 1`` of a sensor's values [n_rows]; return these rows."""
    rows = values[start:stop]
    match kind:
        case "spike" | "level-shift" | "drift":
            sign = 1.0 if generator.random() < 0.5 else -1.0
            return rows + size * sign * (np.arange(1, len(rows) + 1) / len(rows) if kind == "drift" else 1.0)
        case "stuck":
            return np.full_like(rows, values[max(start - 1, 0)])
        case "noise-burst":
            return rows + generator.normal(0.0, size, len(rows))
        case _:
            return _elsewhere(values, start, stop, generator)


def _elsewhere(values: FloatArray, start: int, stop: int, generator: np.random.Generator) -> FloatArray:
    """Return values from other rows that do not overlap these; if there are none, these values in reverse."""
    length = stop - start
    before, after = max(0, start - length + 1), max(0, len(values) - length - stop + 1)
    if before + after == 0:
        return values[start:stop][::-1]
    drawn = int(generator.integers(before + after))
    begin = drawn if drawn < before else stop + drawn - before
    return values[begin : begin + length]
