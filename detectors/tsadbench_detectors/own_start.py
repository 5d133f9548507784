"""Floor: how far a row lies from the rows with which its recording begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated

import numpy as np

from tsadbench.base import FloatArray, Ge, Traits, detector
from tsadbench_detectors.averaged_floor import ZScoreFloor


@detector
class OwnStart(ZScoreFloor):
    """Euclidean distance, in z-scores, of a row to the mean of its recording's first ``rows`` rows.

    It assumes that a recording starts normal: tables show it unranked, like others that assume this. Before row
    ``rows`` the mean is over the rows so far. Contributions are the squared differences; the score is the root of their
    sum. Both are averaged over the last ``mean`` rows.

    Parameters
    ----------
    rows
        First rows, assumed to be normal; at least 1.

    Notes
    -----
    Equations
        ``s(t) = |z(t) - mean(z(0), ..., z(rows - 1))|``.
    Differences
        No publication: a rule that learns next to nothing.
    Defaults
        rows = 30, which `strict` does not evaluate; mean = 1: no averaging.

    Examples
    --------
    >>> OwnStart(rows=2).fit(np.array([[0.0], [2.0]])).score(np.array([[4.0], [6.0], [5.0], [9.0]]))
    array([0., 1., 0., 4.])
    """

    rows: Annotated[int, Ge(1)] = 30

    def declared_traits(self) -> Traits:  # noqa: D102
        return replace(self.traits, memory=None)

    @classmethod
    def floor_variants(cls) -> Sequence[Mapping[str, object]]:  # noqa: D102
        return ()

    def _by_sensor(self, rows: FloatArray) -> FloatArray:
        return without_beginning(self.standardiser_.z_scores(rows), self.rows) ** 2


def without_beginning(values: FloatArray, rows: int) -> FloatArray:
    """Return values [n_rows, n_sensors] less their mean over the first ``rows`` rows, or over the rows so far if fewer.

    Examples
    --------
    >>> without_beginning(np.array([[4.0], [6.0], [5.0]]), 2).ravel().tolist()
    [0.0, 1.0, 0.0]
    """
    moved = values - values[:1]  # less the first row, a constant sensor is 0 without rounding
    sums = np.cumsum(moved[:rows], axis=0)
    means = sums / np.arange(1, len(sums) + 1)[:, None]
    moved[:rows] -= means
    moved[rows:] -= means[-1]
    return moved
