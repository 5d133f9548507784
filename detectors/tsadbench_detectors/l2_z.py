"""Floor: the root of a row's summed squared z-scores."""

from __future__ import annotations

from tsadbench.base import FloatArray
from tsadbench_detectors.averaged_floor import ZScoreFloor


class L2Z(ZScoreFloor):
    """Euclidean distance of a row to the training mean, in each sensor's training standard deviations.

    A sensor that is constant over the training rows counts in its own unit (`Standardiser`). Contributions are the
    squared z-scores; the score is the root of their sum. Both are averaged over the last ``mean`` rows.

    Notes
    -----
    Equations
        ``s(x) = sqrt(sum_i ((x_i - mean_i) / deviation_i)^2)`` over the training rows' mean and standard deviation.
    Differences
        No publication: a rule that learns next to nothing.
    Defaults
        mean = 1: no averaging. Runs add mean = 10 too.

    Examples
    --------
    >>> import numpy as np
    >>> detector = L2Z().fit(np.array([[0.0, 10.0], [2.0, 30.0]]))
    >>> detector.score(np.array([[4.0, 60.0]]))
    array([5.])
    """

    def _by_sensor(self, rows: FloatArray) -> FloatArray:
        return super()._by_sensor(rows) ** 2
