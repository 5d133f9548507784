"""A detector that takes a prior, and no other graph."""

from __future__ import annotations

import numpy as np

from tsadbench import Detector, Prior, Traits


class Couplings(Detector):
    """Scores a row by the sensors that the prior says are driven, and by nothing else."""

    traits = Traits(memory=0, needs_prior=True)

    def __init__(self, *, prior: Prior | None = None):
        self.prior = prior

    def _fit(self, recordings):
        self.driven_ = self.prior.matrix(recordings[0].sensors).sum(axis=0)

    def _score(self, recording):
        return np.abs(recording.values) @ self.driven_
