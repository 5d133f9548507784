"""Checks of trials: they run the boxes of trials, from a process in which no code of the detector runs."""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from tsadbench.base.detector import Detector, Traits
from tsadbench.base.protocol import Episode, Scored
from tsadbench.base.replay import MIN_CORRELATION, Replay
from tsadbench.sandbox import Box, BoxFailure, Construction, Crossing, Description
from tsadbench.sandbox.replay import Audit, Copies
from tsadbench.testing import synthetic
from tsadbench.testing.check import Failed, Skipped, Warned, check, require_equal
from tsadbench.testing.subject import Data, Subject
from tsadbench.utils.arrays import FloatArray
from tsadbench.utils.distributions import OWN, distributions_of, normalised, required_by_core, requirements
from tsadbench.utils.files import cache_folder

of_trials = partial(check, of_trials=True)

# Part of the failure of a detector that reached for the data in the box.
_REACHED = "the data's folder"
# What is drawn is the same in each check, so that its result repeats.
_SECRET = "0123456789abcdef" * 2


@dataclass(frozen=True, slots=True)
class Outside:
    """What the detector is and gives beside the checks, outside of the boxes of trials.

    Its traits with the parameters of tests and with those of its runs, whether these are the same, its scores of
    `Data.test`, and whether scores and fits repeat. If that fails, ``fault`` says why.
    """

    traits: Traits
    own_traits: Traits
    same_parameters: bool
    scores: list[float] | None = None
    repeats_scores: bool = False
    repeats_fits: bool = False
    fault: str = ""

    @classmethod
    def of(cls, subject: Subject, own: Detector) -> Outside:
        """Fit and score."""
        # Values may not compare as equal or unequal: arrays, priors.
        same = repr(own.get_params(deep=False)) == repr(subject.make().get_params(deep=False))
        facts = subject.traits, own.declared_traits(), same
        try:
            scores = subject.usual.tolist()
            return cls(*facts, scores, subject.repeats_scores, subject.repeats_fits)
        except Exception as error:  # other checks say so
            return cls(*facts, fault=f"{type(error).__name__}: {error}")


class Trials(Data):
    """A detector in the boxes of trials, constructed with the parameters of tests or with those of its runs."""

    def __init__(
        self, cheap: Construction, own: Construction, description: Description, outside: Outside, *, full: bool
    ) -> None:
        super().__init__(full=full)
        self.cheap, self.own, self.description, self.outside = cheap, own, description, outside

    @property
    def repeats_scores(self) -> bool:
        """Whether it gives the same scores twice."""
        if self.outside.fault:
            raise RuntimeError(self.outside.fault)
        return self.outside.repeats_scores

    @property
    def repeats_fits(self) -> bool:
        """Whether two fits give the same scores."""
        return self.outside.repeats_fits

    @cached_property
    def boxed(self) -> tuple[FloatArray, dict[str, frozenset[str]]]:
        """Scores of `test` from a box, and the packages that it loads, each with its importers.

        A BoxFailure if the detector fails, or opens something in a folder that holds data sets.
        """
        named = os.environ.get("TSADBENCH_DATA")
        with tempfile.TemporaryDirectory() as decoy:
            (Path(decoy) / "labels.csv").write_text("anomaly\n1\n", encoding="utf-8")
            forbidden = [Path(decoy), cache_folder(), *([Path(named)] if named else [])]
            with Box(self.cheap, threads=1, crossing=Crossing(synthetic.SENSORS), forbidden=forbidden) as box:
                box.fit(self.train())
                return box.score(self.test()), box.imported()


@of_trials("reproducibility")
def libraries(trials: Trials) -> None:
    """The libraries that a fit loads are those that its files import or its class declares."""
    importers, description = trials.boxed[1], trials.description
    own = {module.partition(".")[0] for module in trials.cheap.source.modules}
    named = {name for package in description.sources.packages for name in distributions_of(package)}
    known = {OWN, *required_by_core(), *requirements([*named, *description.libraries], extras=True)}
    loaded = importers.keys() - own
    of_package = {package: {normalised(name): name for name in distributions_of(package)} for package in loaded}
    explained = [package for package, names in of_package.items() if names.keys() <= known]
    unexplained = {package: names for package, names in of_package.items() if package not in explained}
    for package in explained:  # grows: what a known library imports without requiring it is known by its version too
        for other in [one for one in unexplained if package in importers[one]]:
            explained.append(other)
            del unexplained[other]
    # What a hidden library imports is explained when that one is declared.
    roots = {package for package in unexplained if not importers[package] & unexplained.keys()}
    hidden = sorted({name for package in roots or unexplained for name in unexplained[package].values()})
    if hidden:
        reason = (
            f"its fit loads {', '.join(hidden)}, which its files do not import by name: with another version of it, a "
            f"kept trial would still count as done; declare it in the class: libraries = {tuple(hidden)}"
        )
        raise Warned(reason, hidden=list(hidden))


@of_trials("leakage", "fits")
def same_in_box(trials: Trials) -> None:
    """In the box, where trials run, it gives the same scores as outside, to the bit."""
    try:
        boxed, _ = trials.boxed
    except BoxFailure as failure:
        if _REACHED in failure.reason:
            raise Skipped("the check `files` reports why it fails in the box") from failure
        raise
    require_equal(boxed, np.asarray(trials.outside.scores), "scores in the box differ from those outside")


@of_trials("leakage")
def files(trials: Trials) -> None:
    """It opens nothing in the folders that hold data sets, labels among them."""
    try:
        _ = trials.boxed
    except BoxFailure as failure:
        if _REACHED in failure.reason:
            raise Failed(failure.reason) from failure
        raise Skipped(f"it fails in the box for another reason ({failure.reason})") from failure


@of_trials("replay", "scores")
def replays(trials: Trials) -> None:
    """Parts of test recordings, renamed and at another time, are scored as the whole was."""
    outside = trials.outside
    audits = [_replay(trials, trials.cheap, outside.traits, "")]
    if not outside.same_parameters:
        audits.append(_replay(trials, trials.own, outside.own_traits, "in its runs, "))
    for replay in [] if outside.traits.floor else audits:
        if not replay.forgets and not outside.traits.adaptive:
            reason = (
                f"behind other rows, ranks of scores change even 500 rows later: correlation {replay.correlation:.2f}, "
                f"expected {MIN_CORRELATION}; if scores depend on the rows before theirs alone, declare memory"
            )
            raise Failed(reason, correlation=replay.correlation)
        if not replay.calibrated:
            reason = "its training scores are of another size than fresh scores of the same rows: thresholds are wrong"
            raise Warned(reason, median_ratio=replay.median_ratio, tail_ratio=replay.tail_ratio)


def _replay(trials: Trials, construction: Construction, traits: Traits, when: str) -> Replay:
    """Return the replay audit of a trial on simulated recordings."""
    crossing = Crossing(synthetic.SENSORS, _SECRET)
    train = trials.train()
    faulty, _ = synthetic.with_fault(synthetic.normal(2000, 1004, "long"), 1500, 1600)
    episode = Episode("check", train, (faulty, synthetic.normal(240, 1005, "short")))

    def fresh() -> Box:
        return Box(construction, threads=1, crossing=crossing)

    try:
        with fresh() as box:
            box.fit(train)
            copies = Copies(box, fresh, train, n_copies=1, adaptive=traits.adaptive, audited=True)
            with copies, copies.take(construction, ()) as copy:
                of_training, start = box.training_scores(), time.perf_counter()
                scored = Scored(episode, of_training, tuple(box.score(one) for one in episode.test))
                return Audit(copy, copies.how, traits, crossing, scored, time.perf_counter() - start).run()
    except BoxFailure as failure:
        if failure.status != "invalid" and not when:
            raise Skipped(f"it fails in the box ({failure.reason}), as other checks say") from failure
        raise Failed(when + failure.reason) from failure
