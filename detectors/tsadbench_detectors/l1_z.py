"""Floor: the sum of a row's absolute z-scores."""

from __future__ import annotations

from tsadbench_detectors.averaged_floor import SumFloor


class L1Z(SumFloor):
    """Sum of the sensors' distances from their training means, each in training standard deviations.

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
    >>> import numpy as np
    >>> detector = L1Z().fit(np.array([[0.0, 10.0], [2.0, 30.0]]))
    >>> detector.score(np.array([[4.0, 60.0]]))
    array([7.])
    """
