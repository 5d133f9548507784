"""Floor: the distance of a row to an earlier row."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from tsadbench.base import FloatArray, Ge, detector
from tsadbench_detectors.averaged_floor import SumFloor


@detector
class Lag(SumFloor):
    """Squared distance, in z-scores, of a row to the row ``lag`` rows before it.

    Rows before a recording's first are taken to be equal to the first. A sensor that is constant over the training rows
    counts in its own unit (`Standardiser`). Contributions are the squared differences; the score is their sum. Both are
    averaged over the last ``mean`` rows.

    Parameters
    ----------
    lag
        How many rows back, at least 1.

    Notes
    -----
    Equations
        ``s(t) = |z(t) - z(t - lag)|^2``.
    Differences
        No publication: a rule that learns next to nothing.
    Defaults
        lag = 60 and mean = 1: no averaging. Runs add mean = 10 too.

    Examples
    --------
    >>> rows = np.array([[0.0], [1.0], [2.0], [5.0]])
    >>> Lag(lag=2).fit(np.array([[0.0], [2.0]])).score(rows)
    array([ 0.,  1.,  4., 16.])
    """

    lag: Annotated[int, Ge(1)] = 60

    @property
    def _n_past(self) -> int:
        return self.lag

    def _by_sensor(self, rows: FloatArray) -> FloatArray:
        z = self.standardiser_.z_scores(rows)
        before = z[np.maximum(np.arange(len(z)) - self.lag, 0)]
        squares: FloatArray = (z - before) ** 2
        return squares
