"""How often normal rows exceed a threshold, with an interval that knows that neighbouring scores depend on each other.

The rows that set a threshold exceed it at the rate q by construction. So it is found again without each tenth of them,
and the rows of that tenth are compared with it (`cross_fitted`). To first order the mean over the tenths has the
expectation of the rate of the threshold that was set.

Flagged rows come in clusters. These are separated by more rows than a run length, which the extremal index of the
scores above the initial threshold gives [1]_. The interval is the exact one of a Poisson count (Garwood 1936), for as
many clusters as clusters of unequal sizes are worth: (sum of sizes)^2 / sum of squared sizes. docs/studies/coverage.md
has the coverage that was measured.

References
----------
.. [1] C. A. T. Ferro, J. Segers, "Inference for Clusters of Extreme Values", Journal of the Royal Statistical Society B
   65(2), 2003: equations for the extremal index, and declustering with the run length that it implies.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

from tsadbench.base.protocol import Threshold
from tsadbench.utils.arrays import BoolArray, FloatArray, IntArray

BLOCKS = 10
FEWEST_CLUSTERS = 10
CONFIDENCE = 0.9


@dataclass(frozen=True, slots=True)
class FlaggedNormal:
    """The rows that a threshold flags among normal ones, in clusters of neighbours.

    Parameters
    ----------
    n_rows
        Number of normal rows.
    sizes
        Number of flagged rows of each cluster.
    """

    n_rows: int
    sizes: tuple[int, ...]

    @property
    def n_flagged(self) -> int:
        """Number of flagged rows."""
        return sum(self.sizes)

    @property
    def share(self) -> float:
        """Share of the rows that are flagged."""
        return self.n_flagged / self.n_rows

    @property
    def too_few(self) -> bool:
        """Whether there are fewer than ten clusters, which say little about the rate."""
        return len(self.sizes) < FEWEST_CLUSTERS

    @property
    def worth(self) -> float:
        """The number of clusters of equal size that would say as much about the rate."""
        return self.n_flagged**2 / sum(size**2 for size in self.sizes) if self.sizes else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """The 90 % interval of the rate."""
        return rate_interval(self.share, self.worth, self.n_rows)


def rate_interval(share: float, worth: float, n_rows: int) -> tuple[float, float]:
    """Return the 90 % interval of a rate.

    Parameters
    ----------
    share, worth, n_rows
        As observed: the share of flagged rows, what their clusters are worth, and the number of rows. Without a flagged
        row the interval reaches from 0 to what single rows would allow.
    """
    tail = (1 - CONFIDENCE) / 2
    size = share * n_rows / worth if worth else 1.0
    low = float(chi2.ppf(tail, 2 * worth)) / 2 if worth else 0.0
    high = float(chi2.ppf(1 - tail, 2 * worth + 2)) / 2
    return low * size / n_rows, min(1.0, high * size / n_rows)


def flagged_normal(flagged: BoolArray, run: int | None) -> FlaggedNormal:
    """Return flagged rows in clusters: neighbours in one are at most ``run`` rows apart; None: as they say themselves.

    Examples
    --------
    >>> flagged_normal(np.array([1, 1, 0, 1, 0, 0, 0, 1], dtype=bool), run=2).sizes
    (3, 1)
    """
    rows = np.flatnonzero(flagged)
    run = run_length(rows) if run is None else run
    clusters = np.split(rows, np.flatnonzero(np.diff(rows) > run) + 1) if len(rows) else []
    return FlaggedNormal(len(flagged), tuple(len(cluster) for cluster in clusters))


def run_length(rows: IntArray) -> int:
    """Return how many rows apart neighbours of one cluster are at most, from the rows [n] that exceed a level.

    With an extremal index theta they form theta n clusters, and the largest of the gaps between them separate these.
    """
    gaps = np.sort(np.diff(rows))[::-1]
    n_clusters = math.ceil(extremal_index(rows) * len(rows))
    return int(gaps[n_clusters - 1]) if 0 < n_clusters <= len(gaps) else 0


def extremal_index(rows: IntArray) -> float:
    """Return the reciprocal of the mean cluster size of the rows [n] that exceed a level: 1 if they are independent."""
    gaps = np.diff(rows).astype(np.float64)
    if len(gaps) == 0:
        return 1.0
    # Equations 4 and 5 of [1]_: gaps within clusters, of one row, bias the first.
    more = 0 if gaps.max() <= 2 else 1
    below = float(np.sum((gaps - more) * (gaps - 2 * more)))
    return min(1.0, 2 * float(np.sum(gaps - more)) ** 2 / (len(gaps) * below))


def cross_fitted(scores: FloatArray, threshold_from: Callable[[FloatArray], Threshold]) -> FlaggedNormal:
    """Return which normal rows are flagged if each tenth of them is compared with the threshold of the others.

    Parameters
    ----------
    scores
        [n] finite scores in the order of their rows, of which there are at least ten.
    threshold_from
        Returns the threshold that scores of normal rows set.
    """
    flagged = np.zeros(len(scores), dtype=np.bool_)
    for block in np.array_split(np.arange(len(scores)), BLOCKS):
        flagged[block] = scores[block] > threshold_from(np.delete(scores, block)).value
    return flagged_normal(flagged, run_of(scores, threshold_from(scores)))


def run_of(scores: FloatArray, threshold: Threshold) -> int | None:
    """Return the run length of the scores [n] above a threshold's initial one; None if there is none, or no score."""
    above = np.flatnonzero(scores > (np.inf if threshold.t is None else threshold.t))
    return run_length(above) if len(above) else None
