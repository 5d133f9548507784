"""Every outlier detector of scikit-learn by the name of its class: ``sklearn:IsolationForest``.

Scores are ``score_samples`` with the sign turned, so that higher is more anomalous. A local outlier factor scores new
rows (``novelty=True``); its training scores are its own, in which no row is its own neighbour.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tsadbench.base import FloatArray
from tsadbench_detectors.adapters.foreign import ForeignDetector
from tsadbench_detectors.adapters.known import Known
from tsadbench_detectors.adapters.library import InstalledLibrary

_ONE_SIDED = (
    "its boundary is a plane, so that rows far out on the side where normal rows lie look the more normal for it"
)
CLASSES: Mapping[str, Known] = {
    **dict.fromkeys(("EllipticEnvelope", "IsolationForest", "LocalOutlierFactor", "OneClassSVM"), Known()),
    "SGDOneClassSVM": Known(
        fails=(
            ("fault", _ONE_SIDED),
            ("spike", _ONE_SIDED),
        )
    ),
}


class SklearnDetector(ForeignDetector):
    """An outlier detector of scikit-learn as a detector."""

    def _construct(self, n_features: int) -> Any:
        model = super()._construct(n_features)
        model._validate_params()  # scikit-learn would do so only in fit, long after planning
        return model

    def _scores_of(self, model: Any, windows: FloatArray) -> FloatArray:
        return -np.asarray(model.score_samples(windows), dtype=np.float64)

    def _own_training_scores(self) -> FloatArray | None:
        factors = getattr(self.model_, "negative_outlier_factor_", None)
        return None if factors is None else -np.asarray(factors, dtype=np.float64)


family = InstalledLibrary(
    "sklearn",
    description=__doc__,
    package="sklearn",
    bases=frozenset({"OutlierMixin"}),
    adapter=SklearnDetector,
    known=CLASSES,
)


def __getattr__(name: str) -> type[ForeignDetector]:
    """Return the detector of a class; other processes find it here."""
    return family.attribute(name)
