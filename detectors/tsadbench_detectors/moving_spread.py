"""Floor: how much the sensors move within the last rows."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from tsadbench.base import FloatArray, Ge, detector, trailing_windows
from tsadbench_detectors.averaged_floor import SumFloor
from tsadbench_detectors.rows import by_blocks

_ROWS_AT_ONCE = 2_048


@detector
class MovingSpread(SumFloor):
    """Standard deviation of each sensor's z-scores over the last ``rows`` rows, summed over the sensors.

    Rows before a recording's first are taken to be equal to the first. A sensor that is constant over the training rows
    counts in its own unit (`Standardiser`). Contributions are the standard deviations; the score is their sum. Both are
    averaged over the last ``mean`` rows.

    Parameters
    ----------
    rows
        Rows of each standard deviation (ddof 0), at least 2.

    Notes
    -----
    Equations
        ``s(t) = sum_i std(z_i(t - rows + 1), ..., z_i(t))``.
    Differences
        No publication: a rule that learns next to nothing.
    Defaults
        rows = 30 and mean = 1: no averaging. Runs add mean = 10 too.

    Examples
    --------
    >>> MovingSpread(rows=2).fit(np.array([[0.0], [2.0]])).score(np.array([[0.0], [2.0], [2.0], [6.0]]))
    array([0., 1., 0., 2.])
    """

    rows: Annotated[int, Ge(2)] = 30

    @property
    def _n_past(self) -> int:
        return self.rows - 1

    def _by_sensor(self, rows: FloatArray) -> FloatArray:
        windows = trailing_windows(self.standardiser_.z_scores(rows), self.rows)
        return by_blocks(lambda some: np.asarray(some.std(axis=1)), windows, at_once=_ROWS_AT_ONCE)
