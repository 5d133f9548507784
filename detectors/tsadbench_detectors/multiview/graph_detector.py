"""The detector of several views, with one more: each sensor against its neighbours in a prior's graph."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tsadbench.base import BoolArray, Prior, Traits, detector
from tsadbench_detectors.multiview.detector import MultiView


@detector
class MultiViewGraph(MultiView):
    """`MultiView` with a sixth view, *graph*: each sensor against its neighbours in the prior, whichever drives which.

    *relation* weighs all sensors by their correlations; here documents say which ones count. A sensor that the prior
    does not couple to another has no part in this view.

    Parameters
    ----------
    prior
        Couplings between sensors.

    Notes
    -----
    Equations
        Those of `MultiView`; for *graph*, *relation* with sensor i's neighbours ``{j : D_ij = 1 or D_ji = 1}`` in place
        of all other sensors, D the prior's matrix.
    Differences
        The method is this project's. DPR-GM forecasts by a graph network over the same prior; this view is linear and
        needs no PyTorch.
    Defaults
        Those of `MultiView`.

    References
    ----------
    Y. Liu, J. Xie, Cauchy combination test, Journal of the American Statistical Association 115(529), 2020; the others
    that `MultiView` names.
    """

    traits: ClassVar[Traits] = Traits(family="graph", needs_prior=True, paper="tsadbench")

    views: str = "level+range+relation+forecast+movement+graph"
    prior: Prior | None = None

    def _check(self, sensors: tuple[str, ...]) -> None:
        super()._check(sensors)
        self._require(isinstance(self.prior, Prior), "prior", "a Prior (docs/priors.md says how to get one)")
        self._neighbours(sensors)

    def _neighbours(self, sensors: tuple[str, ...]) -> BoolArray:
        assert self.prior is not None
        drives = self.prior.matrix(sensors) > 0
        return np.asarray(drives | drives.T)
