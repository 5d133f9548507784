"""The table of PyOD's classes: which pass, which fail a check and why, which cannot be run and why (PyOD 3.6.7)."""

from __future__ import annotations

from collections.abc import Mapping

from tsadbench_detectors.adapters.known import Known

CLASSES: Mapping[str, Known] = {
"ECOD": Known(alone=True), "COPOD": Known(alone=True),
**{n: Known(global_chance=True) for n in ("AE1SVM", "ALAD", "AnoGAN", "SO_GAAL", "MO_GAAL")},
}
