"""Small data with known answers: a stable system of four coupled sensors, and faults in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from tsadbench.base.prior import Edge, Prior
from tsadbench.base.recording import Recording
from tsadbench.utils.arrays import BoolArray, FloatArray

# Returns changed values [n_rows, n_sensors], and leaves the given ones as they are.
Change: TypeAlias = Callable[[FloatArray], FloatArray]

SENSORS = ("drive", "flow", "pressure", "heat")
# The couplings of `normal`: the prior for detectors that need one.
PRIOR = Prior((Edge("drive", "flow"), Edge("pressure", "heat"), Edge("flow", "heat")), origin="the checks' system")
SCALE = np.array([1.0, 0.5, 2.0, 5.0])


def normal(n_rows: int, seed: int, name: str = "normal") -> Recording:
    """Return rows of the system in normal operation.

    "drive" and "pressure" are first-order autoregressive noise. One row later, "flow" follows "drive", and "heat"
    follows "pressure" and "flow". Means and spreads differ from sensor to sensor.
    """
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(n_rows + 50, 4))
    rows = np.zeros_like(noise)
    for i in range(1, len(rows)):
        before = rows[i - 1]
        rows[i, 0] = 0.6 * before[0] + 0.8 * noise[i, 0]
        rows[i, 1] = 0.8 * before[0] + 0.6 * noise[i, 1]
        rows[i, 2] = 0.6 * before[2] + 0.8 * noise[i, 2]
        rows[i, 3] = 0.6 * before[2] - 0.4 * before[1] + 0.6 * noise[i, 3]
    return recording(np.array([10.0, 3.0, -2.0, 50.0]) + SCALE * rows[50:], name)


def recording(values: FloatArray, name: str = "normal", sensors: tuple[str, ...] = SENSORS) -> Recording:
    """Return values [n_rows, n_sensors] as a recording with one row per second."""
    return Recording(name, np.array(values), sensors, time=np.arange(float(len(values))))


def changed(original: Recording, change: Change) -> Recording:
    """Return a copy with changed values."""
    return Recording(original.id, change(original.values), original.sensors, original.time)


def raised(start: int, stop: int, deviations: float, sensors: slice = slice(None)) -> Change:
    """Return a change that raises sensors by standard deviations from row ``start`` to row ``stop - 1``."""

    def change(values: FloatArray) -> FloatArray:
        values = values.copy()
        values[start:stop, sensors] += deviations * SCALE[: values.shape[1]][sensors]
        return values

    return change


def with_fault(original: Recording, start: int, stop: int) -> tuple[Recording, BoolArray]:
    """Return a copy with all sensors six standard deviations high from ``start`` to ``stop - 1``, and its labels."""
    labels = np.zeros(original.n_rows, dtype=np.bool_)
    labels[start:stop] = True
    return changed(original, raised(start, stop, 6.0)), labels
