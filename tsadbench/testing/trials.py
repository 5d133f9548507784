"""Checks that run trials' boxes, from a process in which no code of the detector runs."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import tokenize
import zlib
from dataclasses import dataclass
from functools import cached_property, partial
from io import BytesIO
from pathlib import Path

import numpy as np

from tsadbench.base.protocol import Episode, Scored
from tsadbench.base.replay import MIN_CORRELATION
from tsadbench.registry import Source
from tsadbench.sandbox import Box, BoxFailure, Construction, Crossing, Limits, describe
from tsadbench.sandbox.replay import Audit, Copies
from tsadbench.testing import synthetic
from tsadbench.testing.check import Compared, Failed, Skipped, Warned, check, require_equal
from tsadbench.testing.subject import Data
from tsadbench.utils.arrays import FloatArray
from tsadbench.utils.distributions import distributions_of, find_package, normalised, requirements
from tsadbench.utils.files import cache_folder

_SECRET = "0123456789abcdef" * 2  # fixed, so that results repeat
_MOST_CARRIED = 16 * 1024  # the largest detector that ships has 10 KiB of texts and comments
_LITERALS = {getattr(tokenize, name, None) for name in ("STRING", "NUMBER", "COMMENT", "FSTRING_MIDDLE")}


@dataclass
class Trials(Data):
    """A detector in trials' boxes, with its test and run parameters, and its scores outside a box."""

    cheap: Construction
    own: Construction
    scores: list[float]
    repeats: Compared

    @cached_property
    def boxed(self) -> FloatArray | BoxFailure:
        """The scores of `test` from a box that may open no folder of data sets, or why that box failed."""
        named = os.environ.get("TSADBENCH_DATA")
        with tempfile.TemporaryDirectory() as decoy:
            (Path(decoy) / "labels.csv").write_text("anomaly\n1\n", encoding="utf-8")
            forbidden = [Path(decoy), cache_folder(), *([Path(named)] if named else [])]
            try:
                with Box(self.cheap, crossing=Crossing(synthetic.SENSORS), forbidden=forbidden) as box:
                    box.fit(self.train())
                    return box.score(self.test())
            except BoxFailure as failure:
                return failure


@check("reproducibility", of_trials=True)
def libraries(trials: Trials) -> None:
    """A fit only loads libraries that its files import or its class declares."""
    description = describe(trials.own.source)
    with Box(trials.cheap, construct=False) as box:  # a new process has loaded none of the detector's modules
        answer = box.answer(loaded_by_fit, (trials.cheap, Data(trials.full)), Limits()).answer
    named = {name for package in description.sources.packages for name in distributions_of(package)}
    known = requirements([*named, *description.libraries])
    own = {module.partition(".")[0] for module in trials.own.source.modules}
    loaded = {name for package in json.loads(answer) if package not in own for name in distributions_of(str(package))}
    if names := sorted(name for name in loaded if normalised(name) not in known):
        reason = f"its fit loads {', '.join(names)}, unknown to a trial's identity: declare libraries = {tuple(names)}"
        raise Warned(reason, hidden=list(names))


def loaded_by_fit(construction: Construction, data: Data) -> list[str]:
    """Fit a detector in a box, and return the packages that this loads."""
    before = set(sys.modules)
    construction.construct().fit(data.train())
    return sorted({name.partition(".")[0] for name in sys.modules.keys() - before} - sys.stdlib_module_names)


@check("leakage", "fits", of_trials=True)
def same_in_box(trials: Trials) -> None:
    """In a trial's box it gives the same scores as outside, to the bit."""
    if isinstance(trials.boxed, BoxFailure):
        raise Skipped("the check `files` reports why it fails in the box") if trials.boxed.forbidden else trials.boxed
    require_equal(trials.boxed, np.asarray(trials.scores), "scores in the box differ from those outside")


@check("leakage", of_trials=True)
def files(trials: Trials) -> None:
    """It opens nothing in the folders of data sets, which contain labels, and carries at most 16 KiB of data itself."""
    if isinstance(failure := trials.boxed, BoxFailure):
        other = Skipped(f"it fails in the box for another reason ({failure.reason})")
        raise Failed(failure.reason) if failure.forbidden else other
    if (size := carried(trials.own.source)) > _MOST_CARRIED:
        raise Warned(f"carries {size / 1024:.0f} KiB of data")


def carried(source: Source) -> int:
    """Return the bytes of data in a detector's own code: compressed literals and comments, and its package's data."""
    place = source.reference.rpartition(":")[0]
    spec = None if source.text else find_package(place.partition(".")[0])
    folders = spec.submodule_search_locations or [] if spec else []
    roots = folders or [str(Path(place).parent) if spec is None else spec.origin or ""]
    own = [file for file in describe(source).sources.files if any(Path(file).is_relative_to(root) for root in roots)]
    words = (one for file in own for one in tokenize.tokenize(BytesIO(Path(file).read_bytes()).readline))
    literals = "\n".join(one.string for one in words if one.type in _LITERALS)
    data = {file for folder in folders for file in Path(folder).rglob("*") if file.suffix not in (".py", ".pyc")}
    return len(zlib.compress(literals.encode())) + sum(file.stat().st_size for file in data if file.is_file())


@check("replay", "scores", of_trials=True)
def replays(trials: Trials) -> None:
    """Parts of test recordings, under other names and times, get the scores of the whole."""
    traits, train = describe(trials.own).declared, trials.train()
    faulty, _ = synthetic.with_fault(synthetic.normal(2000, 1004, "long"), 1500, 1600)
    episode = Episode("check", train, (faulty, synthetic.normal(240, 1005, "short")))
    crossing = Crossing(synthetic.SENSORS, _SECRET)
    fresh = partial(Box, trials.own, crossing=crossing)
    try:
        with fresh() as box:
            box.fit(train)
            copies = Copies(box, fresh, train, n_copies=1, adaptive=traits.adaptive, audited=True)
            with copies, copies.take(trials.own, ()) as copy:
                scored = Scored(episode, box.training_scores(), tuple(box.score(one) for one in episode.test))
                replay = Audit(copy, copies.how, traits, crossing, scored).run()
    except BoxFailure as failure:
        raise Failed(failure.reason) from failure
    if not (replay.forgets or traits.adaptive or traits.floor):
        reason = f"500 rows after another start, scores still rank differently (correlation below {MIN_CORRELATION})"
        raise Failed(f"{reason}; declare memory if it is limited", correlation=replay.correlation)
    if not (replay.calibrated or traits.floor):
        reason = "its training scores are on another scale than fresh scores of the same rows: thresholds are wrong"
        raise Warned(reason, median_ratio=replay.median_ratio, tail_ratio=replay.tail_ratio)
