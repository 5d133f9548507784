"""Floor: a random number for every row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar
from zlib import crc32

import numpy as np

from tsadbench.base import Detector, FloatArray, Ge, Recording, Traits, detector


@detector
class Random(Detector):
    """A uniform random number in [0, 1) for every row: the ranking metrics that need no skill.

    The numbers follow from the seed and the recording's first row, so that scoring is repeatable and two recordings
    do not share their numbers.

    Parameters
    ----------
    seed
        Seed of the random numbers, at least 0.

    Notes
    -----
    Equations
        ``s(t) ~ U[0, 1)``, drawn by the seed and the recording's first row.
    Differences
        No publication: a rule that learns nothing.
    Defaults
        No parameters but the seed.
    """

    traits: ClassVar[Traits] = Traits(family="floor", floor=True, memory=None, stochastic=True)

    seed: Annotated[int, Ge(0)] = 0

    def expected_check_failures(self) -> Mapping[str, str]:  # noqa: D102
        return {
            "alignment": "a floor: only a recording's first row decides what it draws",
            "rounding": "a floor: the first row's last bits decide what it draws",
            **dict.fromkeys(("fault", "spike", "other-data"), "a floor: it scores by chance, and learns nothing"),
        }

    def _fit(self, recordings: tuple[Recording, ...]) -> None:
        pass

    def _score(self, recording: Recording) -> FloatArray:
        generator = np.random.default_rng([self.seed, crc32(recording.values[0].tobytes())])
        return generator.random(recording.n_rows)
