"""Recordings of noise at SKAB's width, and a prior with as many couplings as SKAB has."""

from __future__ import annotations

import numpy as np

from tsadbench import Prior, Recording
from tsadbench.base.prior import Edge

SENSORS = tuple("abcdefgh")
# A ring in both directions, and three chords.
PRIOR = Prior(
    (
        *(Edge(SENSORS[i], SENSORS[(i + 1) % 8]) for i in range(8)),
        *(Edge(SENSORS[(i + 1) % 8], SENSORS[i]) for i in range(8)),
        *(Edge(SENSORS[i], SENSORS[i + 2]) for i in range(3)),
    )
)


def noise(n_rows: int) -> Recording:
    return Recording("noise", np.random.default_rng(0).normal(size=(n_rows, 8)), SENSORS)
