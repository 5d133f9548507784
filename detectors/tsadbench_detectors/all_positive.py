"""Floor: flag every row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from tsadbench.base import Detector, FloatArray, Recording, Traits


class AllPositive(Detector):
    """Scores 1 for every row, with the fixed threshold 0: the F1 that needs no skill.

    Notes
    -----
    Equations
        ``s(t) = 1``, with the threshold 0.
    Differences
        No publication: a rule that learns nothing.
    Defaults
        No parameters.

    Examples
    --------
    >>> AllPositive().fit(np.zeros((5, 2))).score(np.zeros((3, 2)))
    array([1., 1., 1.])
    """

    traits: ClassVar[Traits] = Traits(family="floor", floor=True, memory=0, fixed_threshold=0.0)

    def expected_check_failures(self) -> Mapping[str, str]:  # noqa: D102
        return {"not-constant": "a floor: it gives every row the score 1"}

    def _fit(self, recordings: tuple[Recording, ...]) -> None:
        pass

    def _score(self, recording: Recording) -> FloatArray:
        return np.ones(recording.n_rows)
