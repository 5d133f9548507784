"""Series for detectors, faults that no single value shows, and windows of rows as networks see them."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
import torch
from scipy.signal import lfilter

from tsadbench.base import BoolArray, FloatArray

Fault: TypeAlias = Literal["coupling", "rhythm", "order"]

N_SENSORS = 8
_PERIOD = 20.0
_FAULTS = [(120, 180), (300, 360), (480, 540)]


def series(n_rows: int, seed: int = 0) -> FloatArray:
    """Return normal rows [n_rows, 8]: two groups of four sensors, each a lagged, noisy copy of its group's signal."""
    rng = np.random.default_rng(seed)
    time = np.arange(n_rows + 40)
    columns = []
    for group in range(2):
        phase = rng.uniform(0, 2 * np.pi) + 0.02 * rng.normal(size=len(time)).cumsum()
        signal = np.sin(2 * np.pi * time / (_PERIOD * (1 + group / 2)) + phase)
        columns += [(1 + sensor / 4) * signal[30 - sensor : 30 - sensor + n_rows] for sensor in range(4)]
    return np.asarray(np.stack(columns, axis=1) + 0.05 * rng.normal(size=(n_rows, N_SENSORS)))


def planted(fault: Fault) -> tuple[FloatArray, BoolArray]:
    """Return 600 rows with three faults of 60 rows and their labels; each sensor's values stay in their usual range.

    "coupling": two sensors of the first group lose the phase of the others. "rhythm": all sensors move twice as fast.
    "order": the rows of each fault are shuffled.
    """
    rows, labels = series(600, seed=1), np.zeros(600, dtype=bool)
    elsewhere = series(2_000, seed=1_001)
    rng = np.random.default_rng(1)
    for start, stop in _FAULTS:
        labels[start:stop] = True
        if fault == "coupling":
            rows[start:stop, 1:3] = elsewhere[start + 700 : stop + 700, 1:3]
        elif fault == "rhythm":
            rows[start:stop] = elsewhere[start : start + 2 * (stop - start) : 2]
        else:
            rows[start:stop] = rows[start:stop][rng.permutation(stop - start)]
    return rows, labels


def autoregressive(n_rows: int, seed: int) -> FloatArray:
    """Return normal rows [n_rows, 4]: fixed mixtures of four autoregressive processes in steady state."""
    noise = np.random.default_rng(seed).normal(size=(n_rows + 100, 4))
    mixture = np.random.default_rng(9).normal(size=(4, 4))
    return np.asarray(lfilter([1.0], [1.0, -0.7], noise, axis=0)[100:] @ mixture)


def noise(n_rows: int, n_sensors: int = 2, seed: int = 0) -> FloatArray:
    return np.random.default_rng(seed).normal(size=(n_rows, n_sensors))


def waves(n_rows: int = 120, n_sensors: int = 3, seed: int = 0) -> FloatArray:
    """Return sensors that swing together, with noise."""
    phase = np.arange(n_rows)[:, None] / 7.0 + np.arange(n_sensors)
    return np.asarray(5.0 + np.sin(phase) + 0.1 * noise(n_rows, n_sensors, seed))


def few_causes(n_rows: int, seed: int = 0) -> FloatArray:
    """Return six sensors that follow three causes, with noise."""
    mixed = noise(n_rows, 3, seed) @ noise(3, 6, 99) + 0.3 * noise(n_rows, 6, seed + 1_000)
    return np.asarray(mixed * [1, 9, 0.1, 1, 50, 1] + 4)


def in_deviations(rows: FloatArray, training: FloatArray) -> FloatArray:
    return np.asarray((rows - training.mean(axis=0)) / training.std(axis=0))


def in_range(rows: FloatArray, training: FloatArray) -> FloatArray:
    return np.asarray((rows - training.min(axis=0)) / np.ptp(training, axis=0))


def padded(rows: FloatArray, n_before: int) -> FloatArray:
    """Return rows with `n_before` copies of the first one in front, as a detector sees a recording's beginning."""
    return np.concatenate([np.repeat(rows[:1], n_before, axis=0), rows])


def stretches(rows: FloatArray, length: int) -> FloatArray:
    """Return the rows of every full window side by side, the oldest first, [n, length * n_sensors]."""
    return np.array([rows[start : start + length].ravel() for start in range(len(rows) - length + 1)])


def windows(rows: FloatArray, length: int) -> torch.Tensor:
    """Return every full window [n, length, n_sensors], in single precision."""
    return torch.from_numpy(np.stack([rows[start : start + length] for start in range(len(rows) - length + 1)])).float()
