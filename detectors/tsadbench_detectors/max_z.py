"""Floor: the largest absolute z-score of a row."""

from __future__ import annotations

import numpy as np

from tsadbench.base import FloatArray
from tsadbench_detectors.averaged_floor import ZScoreFloor


class MaxZ(ZScoreFloor):
    """Largest distance of a row's sensors from their training means, each in training standard deviations.

    A sensor that is constant over the training rows counts in its own unit (`Standardiser`). Contributions are the
    absolute z-scores; the score is the largest of them. Both are averaged over the last ``mean`` rows.

    Notes
    -----
    Equations
        ``s(x) = max_i |x_i - mean_i| / deviation_i`` over the training rows' mean and standard deviation.
    Differences
        No publication: a rule that learns next to nothing.
    Defaults
        mean = 1: no averaging. Runs add mean = 10 too.

    Examples
    --------
    >>> rows = np.array([[1.0, 20.0], [4.0, 30.0]])
    >>> MaxZ().fit(np.array([[0.0, 10.0], [2.0, 30.0]])).score(rows)
    array([0., 3.])
    >>> MaxZ(mean=2).fit(np.array([[0.0, 10.0], [2.0, 30.0]])).score(rows)
    array([0. , 1.5])
    """

    def _row_scores(self, by_sensor: FloatArray) -> FloatArray:
        return np.asarray(by_sensor.max(axis=1))
