"""Every outlier detector of scikit-learn by the name of its class: ``sklearn:IsolationForest``.

Scores are ``score_samples`` with the sign flipped, so that higher is more anomalous. A local outlier factor scores new
rows (``novelty=True``); its training scores are its own, in which no row is its own neighbour.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tsadbench.base import FloatArray
from tsadbench_detectors.adapters.foreign import ForeignDetector, Known
from tsadbench_detectors.adapters.library import InstalledLibrary

_ONE_SIDED = (
    "its boundary is a plane, so that rows far out on the side where normal rows lie look the more normal for it"
)
CLASSES: Mapping[str, Known] = {
    "EllipticEnvelope": Known(module="covariance"),
    "IsolationForest": Known(module="ensemble"),
    "LocalOutlierFactor": Known(module="neighbors"),
    "OneClassSVM": Known(module="svm"),
    "SGDOneClassSVM": Known(module="linear_model", fails=(("fault", _ONE_SIDED), ("spike", _ONE_SIDED))),
}


class SklearnDetector(ForeignDetector):
    """An outlier detector of scikit-learn as a detector."""

    def _build(self, n_sensors: int) -> Any:
        model = super()._build(n_sensors)
        model._validate_params()  # scikit-learn would do so only in fit, long after planning
        return model

    def _fitted_scores(self, model: Any) -> FloatArray | None:
        factors = getattr(model, "negative_outlier_factor_", None)
        return None if factors is None else -np.asarray(factors, dtype=np.float64)


family = InstalledLibrary(
    name="sklearn", description=__doc__, package="sklearn", adapter=SklearnDetector, known=CLASSES
)


def __getattr__(name: str) -> type[ForeignDetector]:
    """Return the detector of a class, so that other processes can import it from here."""
    return family.attribute(name)
