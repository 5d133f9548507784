"""The covariance of windows of rows, without a copy of every window."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tsadbench.base import FloatArray


def shrunk_covariance(series: Sequence[FloatArray], length: int) -> tuple[FloatArray, FloatArray]:
    """Return mean [size] and covariance [size, size] of all windows, shrunk by Ledoit and Wolf's formula.

    It equals `sklearn.covariance.ledoit_wolf` of the windows (size = ``length * n_sensors``, the oldest row first),
    which takes ``length`` times the memory of the series and ``length / 2`` times as long. Here, products are reused:
    two rows of a window are one place earlier in the next window. Each series has at least ``length`` rows.
    """
    n_sensors = series[0].shape[1]
    size, n_windows = length * n_sensors, sum(len(rows) - length + 1 for rows in series)
    sums, products, steps = np.zeros((length, n_sensors)), np.zeros((size, size)), np.zeros((size, size))
    for rows in series:
        count = len(rows) - length + 1
        for lag in range(length):
            sums[lag] += rows[lag : lag + count].sum(axis=0)
            products[:n_sensors, lag * n_sensors : (lag + 1) * n_sensors] += rows[:count].T @ rows[lag : lag + count]
        before, after = rows[: length - 1].ravel(), rows[count:].ravel()
        steps[n_sensors:, n_sensors:] += np.outer(after, after) - np.outer(before, before)
    products[:, :n_sensors] = products[:n_sensors].T
    for start in range(n_sensors, size, n_sensors):
        block, previous = slice(start, start + n_sensors), slice(start - n_sensors, start)
        products[block, n_sensors:] = products[previous, :-n_sensors] + steps[block, n_sensors:]
    mean = sums / n_windows
    covariance = products / n_windows - np.outer(mean, mean)
    fourth_moment = sum(_sum_of_squared_lengths(rows, mean) for rows in series) / n_windows
    average, square = np.trace(covariance) / size, float((covariance**2).sum())
    distance = square - size * average**2
    shrinkage = min(1.0, (fourth_moment - square) / n_windows / distance) if distance > 0 else 1.0
    covariance *= 1 - shrinkage
    covariance[np.diag_indices(size)] += shrinkage * average
    return mean.ravel(), covariance


def _sum_of_squared_lengths(rows: FloatArray, mean: FloatArray) -> float:
    """Return the sum of ``|w - mean|^4`` over all windows w of a series."""
    count = len(rows) - len(mean) + 1
    lengths = np.zeros(count)
    for lag, at_lag in enumerate(mean):
        lengths += ((rows[lag : lag + count] - at_lag) ** 2).sum(axis=1)
    return float((lengths**2).sum())
