"""Rows to choose a detector by, none of them from a test: later training rows, with faults planted into them.

Short faults of one sensor are those of `tsadbench tune`. The longer ones here concern several sensors or their timing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from tsadbench.base import BoolArray, FloatArray, Recording
from tsadbench.tuning.faults import KINDS, Plant, with_faults
from tsadbench_protocols.held_out import GAP, between

FIFTHS = 5
FOLDS = (2, 3, 4)  # so many fifths are learned from, the next one is judged
MOST_ROWS = 3_000

LongKind: TypeAlias = Literal["several", "slow-drift", "gain", "delay", "speed", "order", "common"]
LONG_KINDS: tuple[LongKind, ...] = ("several", "slow-drift", "gain", "delay", "speed", "order", "common")
ALL_KINDS = (*(kind.name for kind in KINDS), *LONG_KINDS)
# One long fault in so many rows, somewhere within them.
_SLOT = 600
_LENGTHS = (60, 300)
_LARGEST_DELAY = 30
_DIRECTIONS = 3


@dataclass(frozen=True, slots=True)
class Judged:
    """One fold: what is learned from, and the rows after it.

    Parameters
    ----------
    number
        Of the fold, from 0.
    train, later
        Recordings; all rows of ``later`` come after those of ``train``.
    """

    number: int
    train: tuple[Recording, ...]
    later: tuple[Recording, ...]


def folds(recordings: Sequence[Recording]) -> Iterator[Judged]:
    """Yield the folds of an entity's training recordings."""
    n_rows = sum(one.n_rows for one in recordings)
    gap = min(GAP, n_rows // FIFTHS // 4)
    for number, fifths in enumerate(FOLDS):
        border = n_rows * fifths // FIFTHS
        end = min(n_rows * (fifths + 1) // FIFTHS, border + MOST_ROWS)
        train = tuple(one for one in between(recordings, 0, border - gap) if one.n_rows > 1)
        yield Judged(number, train, tuple(one for one in between(recordings, border, end) if one.n_rows > 1))


def faulty(fold: Judged, kind: str, seed: int = 0) -> tuple[list[Recording], BoolArray]:
    """Return the later recordings with faults of a kind planted, and which of their rows, joined, belong to a fault."""
    plant = Plant.of(fold.train)
    short = {one.name: one for one in KINDS}
    recordings, rows = [], []
    for number, recording in enumerate(fold.later):
        generator = np.random.default_rng([seed, fold.number, ALL_KINDS.index(kind), number])
        if kind in short:
            planted = with_faults(recording, 1, short[kind], plant, generator)
            changed, marked = planted.recording, planted.rows
        else:
            changed, marked = _with_long_faults(recording, kind, plant, _directions(fold.train, plant), generator)
        recordings.append(changed)
        rows.append(marked)
    return recordings, np.concatenate(rows)


def _directions(train: Sequence[Recording], plant: Plant) -> FloatArray:
    """Return the leading principal directions [n, n_sensors], each as long as one standard deviation along it."""
    rows = np.concatenate([one.values for one in train])
    z = (rows - rows.mean(axis=0))[:, plant.varying] / plant.scale[plant.varying]
    _, lengths, directions = np.linalg.svd(z, full_matrices=False)
    n = min(_DIRECTIONS, len(lengths))
    whole = np.zeros((n, rows.shape[1]))
    along = lengths[:n, None] / np.sqrt(len(z)) * directions[:n]
    whole[:, plant.varying] = along * plant.scale[plant.varying]
    return whole


def _with_long_faults(
    recording: Recording, kind: str, plant: Plant, directions: FloatArray, generator: np.random.Generator
) -> tuple[Recording, BoolArray]:
    """Plant one fault in each slot; a recording that is shorter than a slot is one."""
    values, marked = recording.values.copy(), np.zeros(recording.n_rows, dtype=np.bool_)
    n_slots = max(1, recording.n_rows // _SLOT)
    for number in range(n_slots):
        first, end = (recording.n_rows * border // n_slots for border in (number, number + 1))
        longest = min(_LENGTHS[1], (end - first) // 2)
        if longest < 2:
            continue
        length = int(generator.integers(min(_LENGTHS[0], longest), longest + 1))
        start = int(generator.integers(first, end - length + 1))
        values[start : start + length] = _effect(recording.values, start, length, kind, plant, directions, generator)
        marked[start : start + length] = True
    return Recording(recording.id, values, recording.sensors, recording.time), marked


def _effect(
    values: FloatArray,
    start: int,
    length: int,
    kind: str,
    plant: Plant,
    directions: FloatArray,
    generator: np.random.Generator,
) -> FloatArray:
    """Return what a fault makes of ``length`` rows from ``start`` on."""
    rows = values[start : start + length].copy()
    sensor = int(generator.choice(plant.varying))
    sign = 1.0 if generator.random() < 0.5 else -1.0
    match kind:
        case "several":
            most = max(2, len(plant.varying) // 2)
            chosen = generator.choice(
                plant.varying, min(int(generator.integers(2, most + 1)), len(plant.varying)), False
            )
            sizes = generator.uniform(0.5, 2.0, len(chosen)) * generator.choice([-1.0, 1.0], len(chosen))
            rows[:, chosen] += sizes * plant.scale[chosen]
        case "slow-drift":
            ramp = np.arange(1, length + 1) / length
            rows[:, sensor] += sign * generator.uniform(1.0, 4.0) * plant.scale[sensor] * ramp
        case "gain":
            factor = generator.uniform(0.2, 0.6) if sign < 0 else generator.uniform(1.6, 3.0)
            middle = values[:, sensor].mean()
            rows[:, sensor] = middle + factor * (rows[:, sensor] - middle)
        case "delay":
            sensor = int(generator.choice(plant.coupled))
            delay = int(generator.integers(5, _LARGEST_DELAY + 1))
            rows[:, sensor] = values[np.maximum(np.arange(start, start + length) - delay, 0), sensor]
        case "speed":
            fast = sign > 0 and start + 2 * length <= len(values)
            steps = np.arange(length) * 2 if fast else np.arange(length) // 2
            rows = values[start + steps]
        case "order":
            rows = rows[generator.permutation(length)]
        case _:
            along = directions[int(generator.integers(len(directions)))]
            rows += sign * generator.uniform(2.0, 5.0) * along
    return rows
