"""Series of eight coupled sensors with faults that no single value shows, and what a one-liner makes of them."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from scipy.signal import lfilter
from sklearn.metrics import roc_auc_score

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


def planted(fault: Fault, seed: int = 1) -> tuple[FloatArray, BoolArray]:
    """Return 600 rows with three faults of 60 rows and their labels; each sensor's values stay in their usual range.

    Parameters
    ----------
    fault
        "coupling": two sensors of the first group lose the phase of the others. "rhythm": all sensors move twice as
        fast. "order": the rows of the stretch come in another order, each as it was.
    seed
        Decides the series.
    """
    rows, labels = series(600, seed), np.zeros(600, dtype=bool)
    elsewhere = series(2_000, seed + 1_000)
    rng = np.random.default_rng(seed)
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
    """Return normal rows [n_rows, 4]: mixtures, always the same, of four autoregressive processes in steady state."""
    noise = np.random.default_rng(seed).normal(size=(n_rows + 100, 4))
    mixture = np.random.default_rng(9).normal(size=(4, 4))
    return np.asarray(lfilter([1.0], [1.0, -0.7], noise, axis=0)[100:] @ mixture)


def auroc(scores: FloatArray, labels: BoolArray) -> float:
    """Return the area under the ROC curve."""
    return float(roc_auc_score(labels, scores))
