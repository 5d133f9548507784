"""The checked detector: constructed and fitted as often as a check needs."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tsadbench.base.detector import Detector, Traits
from tsadbench.base.recording import Recording
from tsadbench.base.scores import difference
from tsadbench.sandbox import Construction
from tsadbench.testing import synthetic
from tsadbench.testing.check import Compared
from tsadbench.testing.synthetic import Change
from tsadbench.utils.arrays import BoolArray, FloatArray
from tsadbench.utils.parameters import parameter_defaults


@dataclass
class Data:
    """The checks' recordings, new ones at each call; more rows if ``full``."""

    full: bool

    def train(self, change: Change = np.copy, seed: int = 1) -> tuple[Recording, Recording]:
        """Return two normal recordings."""
        one, other = (synthetic.normal(2000 if self.full else 300, number) for number in (seed, seed + 100))
        return synthetic.changed(one, change), synthetic.changed(other, change)

    def test(self, change: Change = np.copy, *, seed: int = 2, n_rows: int = 240) -> Recording:
        """Return a normal recording that no fit has seen."""
        return synthetic.changed(synthetic.normal(n_rows, seed + 1000), change)

    def faulty(self) -> tuple[Recording, BoolArray]:
        """Return `test` with a fault of six standard deviations in every sensor, and its labels."""
        return synthetic.with_fault(self.test(), 120, 160)


class Subject(Data):
    """A detector class with parameters."""

    def __init__(self, construction: Construction, full: bool) -> None:
        super().__init__(full)
        self.cls: type[Detector] = construction.source.load()
        self.parameters = construction.values(self.cls)
        self.takes_seed = "seed" in parameter_defaults(self.cls)

    @property
    def traits(self) -> Traits:
        """The traits that the detector declares with these parameters."""
        return self.make().declared_traits()

    def make(self, **changes: object) -> Detector:
        """Return a new detector."""
        return self.cls(**{**self.parameters, **changes})

    def fit(self, **changes: object) -> Detector:
        """Return a new detector, fitted on `train`."""
        return self.make(**changes).fit(self.train())

    @cached_property
    def _fitted(self) -> Detector:
        return self.fit()

    @property
    def fitted(self) -> Detector:
        """A copy of a detector fitted on `train`, so that checks cannot affect each other."""
        try:
            return copy.deepcopy(self._fitted)
        except Exception:  # the check `copies` reports it; other checks continue
            return self.fit()

    def score(self, recording: Recording) -> FloatArray:
        """Score a copy of the recording with a copy of the detector, so that checks cannot affect each other."""
        return self.fitted.score(synthetic.changed(recording, np.copy))

    def refit(self, train: Sequence[Recording] | None = None, **changes: object) -> FloatArray:
        """Return the scores of `test` by a new detector, fitted on these recordings or on `train`."""
        return self.make(**changes).fit(self.train() if train is None else train).score(self.test())

    @property
    def usual(self) -> FloatArray:
        """The scores of `test`, computed again: another fit may have changed them."""
        return self.score(self.test())

    @cached_property
    def repeats(self) -> Compared:
        """What repeats to the bit, and so what checks compare: "scores" of one fit, of two "fits", or "nothing"."""
        if difference(self.usual, self.usual, exact=True)[0] is not None:
            return "nothing"
        return "fits" if difference(self.refit(), self.usual, exact=True)[0] is None else "scores"

    @cached_property
    def warm_up(self) -> int:
        """Number of rows at a recording's start without a score."""
        return int(np.isnan(self.usual).cumprod().sum())

    @property
    def reach(self) -> int:
        """Earlier rows that a score needs: the larger of the declared memory and the number of unscored first rows."""
        return max(self.warm_up, self.traits.memory or 0)

    @cached_property
    def constant(self) -> bool:
        """Whether it gives every row the same score, even in a fault."""
        scores = self.score(self.faulty()[0])
        return len(np.unique(scores[np.isfinite(scores)])) < 2
