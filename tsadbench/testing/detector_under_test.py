"""The detector that is checked: constructed and fitted as often as a check needs, and no more often."""

from __future__ import annotations

import copy
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pooch

from tsadbench.base.agreement import difference
from tsadbench.base.detector import Detector, Traits
from tsadbench.base.recording import Recording
from tsadbench.sandbox import Box, Construction, Crossing
from tsadbench.testing import synthetic
from tsadbench.utils.arrays import FloatArray
from tsadbench.utils.parameters import parameters_of


class _Subject:
    """What is checked, and the data that it is checked on."""

    def __init__(self, *, full: bool) -> None:
        self.full = full
        self._n_rows = 2000 if full else 300

    def train(self, seed: int = 1) -> tuple[Recording, Recording]:
        """Return two normal recordings, new copies at each call."""
        return synthetic.normal(self._n_rows, seed), synthetic.normal(self._n_rows, seed + 100)

    def test(self, seed: int = 2, n_rows: int = 240) -> Recording:
        """Return a normal recording that no fit has seen, a new copy at each call."""
        return synthetic.normal(n_rows, seed + 1000)


class DetectorUnderTest(_Subject):
    """A detector class with parameters, and the data that it is checked on.

    Parameters
    ----------
    cls
        The detector's class.
    parameters
        Constructor arguments.
    full
        Whether to use more rows.
    own
        The constructor arguments of its runs, if they are others.
    """

    def __init__(
        self,
        cls: type[Detector],
        parameters: Mapping[str, object],
        *,
        full: bool = False,
        own: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(full=full)
        self.cls = cls
        self.parameters = dict(parameters)
        self.own = dict(parameters if own is None else own)
        for arguments in (self.parameters, self.own):
            if cls.traits.needs_prior and arguments.get("prior") is None:
                arguments["prior"] = synthetic.PRIOR

    @property
    def traits(self) -> Traits:
        """The traits that the detector declares with these parameters."""
        return self.make().declared_traits()

    @property
    def takes_seed(self) -> bool:
        """Whether its constructor has a parameter ``seed``."""
        return any(parameter.name == "seed" for parameter in parameters_of(self.cls))

    def make(self, **changes: object) -> Detector:
        """Return a new detector."""
        return self.cls(**{**self.parameters, **changes})

    @cached_property
    def _fitted(self) -> Detector:
        return self.make().fit(self.train())

    @property
    def fitted(self) -> Detector:
        """A detector fitted on `train`; a copy, so that a check cannot spoil another's."""
        try:
            return copy.deepcopy(self._fitted)
        except Exception:  # the check `copies` reports it; the others go on
            return self.make().fit(self.train())

    def score(self, recording: Recording) -> FloatArray:
        """Return the scores of a copy of the recording by a copy of the detector, so that no check spoils another."""
        return self.fitted.score(synthetic.changed(recording, np.copy))

    @cached_property
    def repeats_scores(self) -> bool:
        """Whether it gives the same scores twice; if not, comparing scores means nothing."""
        return difference(self.score(self.test()), self.score(self.test()), exact=True)[0] is None

    @cached_property
    def repeats_fits(self) -> bool:
        """Whether two fits give the same scores; if not, comparing fits means nothing."""
        again = self.make().fit(self.train()).score(self.test())
        return self.repeats_scores and difference(again, self.score(self.test()), exact=True)[0] is None

    @cached_property
    def warm_up(self) -> int:
        """Number of rows at a recording's start without a score."""
        return int(np.isnan(self.score(self.test())).cumprod().sum())

    @property
    def reach(self) -> int:
        """How many rows before its own a score needs: the declared memory; without one, those without a score."""
        return max(self.warm_up, self.traits.memory or 0)

    @cached_property
    def constant(self) -> bool:
        """Whether it gives every row the same score, even in a fault."""
        faulty, _ = synthetic.with_fault(self.test(), 120, 160)
        scores = self.score(faulty)
        present = scores[np.isfinite(scores)]
        return len(present) == 0 or bool(np.ptp(present) == 0.0)


@dataclass(frozen=True, slots=True)
class Outside:
    """What a detector is and gives outside of the boxes of trials.

    Parameters
    ----------
    traits, own_traits
        As it declares them with the parameters of tests, and with those of its runs.
    same_parameters
        Whether these are the same.
    scores
        Of the recording `test`; None if it fails.
    repeats_scores, repeats_fits
        As `DetectorUnderTest`'s.
    fault
        Why it fails, if it does.
    """

    traits: Traits
    own_traits: Traits
    same_parameters: bool
    scores: list[float] | None = None
    repeats_scores: bool = False
    repeats_fits: bool = False
    fault: str = ""

    @classmethod
    def of(cls, subject: DetectorUnderTest) -> Outside:
        """Fit and score in this process."""
        # Values may not compare as equal or unequal: arrays, priors.
        same = repr(subject.own) == repr(subject.parameters)
        facts = subject.traits, subject.cls(**subject.own).declared_traits(), same
        try:
            scores = subject.score(subject.test()).tolist()
            return cls(*facts, scores, subject.repeats_scores, subject.repeats_fits)
        except Exception as error:  # other checks say so
            return cls(*facts, fault=f"{type(error).__name__}: {error}")


class BoxedSubject(_Subject):
    """A detector as the boxes of trials hold it, for checks that this process runs without its code.

    Parameters
    ----------
    construction, own
        How to construct it with the parameters of tests, and with those of its runs.
    outside
        What it is elsewhere.
    full
        Whether to use more rows.
    """

    def __init__(self, construction: Construction, own: Construction, outside: Outside, *, full: bool) -> None:
        super().__init__(full=full)
        self.construction, self.own, self.outside = construction, own, outside

    @property
    def repeats_scores(self) -> bool:
        """Whether it gives the same scores twice."""
        return self._works() and self.outside.repeats_scores

    @property
    def repeats_fits(self) -> bool:
        """Whether two fits give the same scores."""
        return self._works() and self.outside.repeats_fits

    @property
    def boxed_scores(self) -> FloatArray:
        """Scores of `test` from a real box, in which the folders that hold data sets are forbidden.

        Raises
        ------
        BoxFailure
            If the detector opens something in one of them, or fails.
        """
        return self._boxed[0]

    @property
    def importers(self) -> dict[str, frozenset[str]]:
        """Which packages that box has loaded, and which packages imported each; errors as for `boxed_scores`."""
        return self._boxed[1]

    @cached_property
    def _boxed(self) -> tuple[FloatArray, dict[str, frozenset[str]]]:
        with tempfile.TemporaryDirectory() as decoy:
            (Path(decoy) / "labels.csv").write_text("anomaly\n1\n", encoding="utf-8")
            crossing, forbidden = Crossing(synthetic.SENSORS), _data_folders(decoy)
            with Box(self.construction, threads=1, crossing=crossing, forbidden=forbidden) as box:
                box.fit(self.train())
                return box.score(self.test()), box.imported()

    def _works(self) -> bool:
        if self.outside.fault:
            raise RuntimeError(self.outside.fault)
        return True


def _data_folders(decoy: str) -> list[Path]:
    named = os.environ.get("TSADBENCH_DATA")
    return [Path(decoy), Path(pooch.os_cache("tsadbench")), *([Path(named)] if named else [])]
