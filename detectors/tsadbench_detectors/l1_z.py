"""Floor: the sum of a row's absolute z-scores."""

from __future__ import annotations

import numpy as np

from tsadbench.base import FloatArray
from tsadbench_detectors.averaged_floor import ZScoreFloor


class L1Z(ZScoreFloor):
    """The sum, over all sensors, of how many training standard deviations one lies from its training mean.

    A sensor that is constant over the training rows counts in its own unit (`Standardiser`). Contributions are the
    absolute z-scores; the score is their sum. Both are averaged over the last ``mean`` rows.

    Notes
    -----
    Equations
        ``s(x) = sum_i |x_i - mean_i| / deviation_i`` over the training rows' mean and standard deviation.
    Differences
        No publication: a rule that learns next to nothing.
    Defaults
        mean = 1: no averaging. Runs add mean = 10 too.

    Examples
    --------
    >>> detector = L1Z().fit(np.array([[0.0, 10.0], [2.0, 30.0]]))
    >>> detector.score(np.array([[4.0, 60.0]]))
    array([7.])
    """

    def _row_scores(self, by_sensor: FloatArray) -> FloatArray:
        return np.asarray(by_sensor.sum(axis=1))
