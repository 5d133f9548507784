"""The detector of several views, with one more: each sensor against its neighbours in a prior's graph."""

from __future__ import annotations

from typing import ClassVar

from tsadbench import UsageError
from tsadbench.base import Prior, Traits
from tsadbench_detectors.multiview.detector import MultiView
from tsadbench_detectors.multiview.panel import Learner
from tsadbench_detectors.multiview.views import Graph


class MultiViewGraph(MultiView):
    """`MultiView` with a sixth view, *graph*: each sensor against its neighbours in the prior, whichever drives which.

    *relation* weighs all sensors by their correlations; here documents say which ones count. A sensor that the prior
    does not couple to another has no part in this view.

    Parameters
    ----------
    views, truncation, accumulation, least_shape, blocks, adaptive
        Those of `MultiView`.
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

    def __init__(
        self,
        *,
        views: str = "level+range+relation+forecast+movement+graph",
        truncation: float = 0.1,
        accumulation: int = 4,
        least_shape: float = 0.1,
        blocks: int = 5,
        adaptive: bool = False,
        prior: Prior | None = None,
    ) -> None:
        super().__init__(
            views=views,
            truncation=truncation,
            accumulation=accumulation,
            least_shape=least_shape,
            blocks=blocks,
            adaptive=adaptive,
        )
        self.prior = prior

    def _check(self, sensors: tuple[str, ...]) -> None:
        super()._check(sensors)
        self._known_prior().check(sensors)

    def _known_prior(self) -> Prior:
        if not isinstance(self.prior, Prior):
            raise UsageError(
                f"{type(self).__name__}: prior must be a Prior (docs/priors.md says how to get one), "
                f"found {self.prior!r}"
            )
        return self.prior

    def _learners(self, sensors: tuple[str, ...]) -> dict[str, Learner]:
        learners = super()._learners(sensors)
        if "graph" in learners:
            drives = self._known_prior().matrix(sensors) > 0
            learners["graph"] = lambda series, varies: Graph.over((drives | drives.T)[varies][:, varies], series)
        return learners
