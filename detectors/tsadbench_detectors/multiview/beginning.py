"""What the beginning of a recording differs by from training, for the variant that takes it for normal."""

from __future__ import annotations

import numpy as np

from tsadbench.base import FloatArray

BEGINNING = 60
# Training recordings are cut into stretches of so many rows, each with a beginning of its own.
STRETCH = 1_000


def without_beginning(values: FloatArray) -> FloatArray:
    """Return values [n_rows, n_sensors] less their mean over the first 60 rows; before, over the rows so far.

    Examples
    --------
    >>> without_beginning(np.array([[4.0], [6.0], [5.0]])).ravel().tolist()
    [0.0, 1.0, 0.0]
    """
    # Less the first row, a constant sensor is 0 without rounding.
    moved = values - values[:1]
    counts = np.minimum(np.arange(1, len(values) + 1), BEGINNING)[:, None]
    sums = np.cumsum(moved[:BEGINNING], axis=0)
    means = np.concatenate([sums, np.repeat(sums[-1:], max(0, len(values) - BEGINNING), axis=0)]) / counts
    return np.asarray(moved - means)
