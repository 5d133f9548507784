"""Every detector of PyOD by the name of its class: ``pyod:KNN``, ``pyod:ECOD[window=5]``.

Scores are the library's ``decision_function``, training scores its ``decision_scores_``. Its contamination rate,
thresholds and labels are not used.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tsadbench.base import FloatArray
from tsadbench_detectors.adapters.foreign import ForeignDetector, on_cpu
from tsadbench_detectors.adapters.library import InstalledLibrary
from tsadbench_detectors.adapters.pyod_classes import CLASSES


class PyODDetector(ForeignDetector):
    """A class of PyOD as a detector."""

    libraries: ClassVar[tuple[str, ...]] = ("pyod", "numba")

    def _rate(self, model: Any, data: FloatArray) -> FloatArray:
        if self.known.alone is not None:
            return self.known.alone(model.X_train, data)
        with on_cpu():
            return self._turned(model.decision_function(data))

    def _fitted_scores(self, model: Any) -> FloatArray:
        return self._turned(model.decision_scores_)

    def _turned(self, scores: object) -> FloatArray:
        flat = np.asarray(scores, dtype=np.float64).ravel()
        return -flat if self.known.turned else flat


family = InstalledLibrary(
    name="pyod", description=__doc__, package="pyod.models", adapter=PyODDetector, known=CLASSES, extra="pyod"
)


def __getattr__(name: str) -> type[ForeignDetector]:
    """Return the detector of a class, so that other processes can import it from here."""
    return family.attribute(name)
