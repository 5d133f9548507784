"""Checks of the detector's contract; the first reports whether it works at all, and if not, where it fails."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import cloudpickle
import numpy as np

from tsadbench.base.detector import Detector
from tsadbench.base.prior import Prior
from tsadbench.errors import ContractError, UsageError
from tsadbench.testing import synthetic
from tsadbench.testing.check import Failed, Skipped, Warned, check, require_equal
from tsadbench.testing.subject import Subject
from tsadbench.utils.error_place import own_place, place_of
from tsadbench.utils.parameters import parameter_defaults
from tsadbench.utils.text import one_line

_HOOKS = {"_fit": "def _fit(self, recordings)", "_score": "def _score(self, recording)"}
# Error text -> hint for newcomers.
_HINTS = {
    "'Recording' object has no attribute 'label": "no detector is given labels: training recordings are normal",
    "'Recording'": "a Recording is no data frame: it has id, values [n_rows, n_sensors], sensors and time",
    "'numpy.ndarray' object has no attribute": "recording.values is a NumPy array [n_rows, n_sensors]",
    "read-only": "recordings are read-only: work on recording.values.copy()",
}
_SEALED = (
    *("fit", "score", "training_scores", "contributions", "held_out_loss", "training_facts", "check"),
    *("_ready", "_forget", "_require"),
)
_PUBLISHED = ("Accelerometer1RMS", "Accelerometer2RMS", "Current", "Pressure")  # SKAB's


@check("contract")
def works(subject: Subject) -> None:
    """The detector can be constructed, fitted on a small data set, and score a recording."""
    cls, train, test = subject.cls, subject.train(), subject.test()
    each = [f"{one.n_rows} rows x {one.n_sensors} sensors" for one in (*train, test)]
    shapes = {"training": ", ".join(each[:-1]), "test": each[-1]}
    with _phase(cls, "construct", place_of(cls)):
        detector = _constructed(subject)
    with _phase(cls, "fit", place_of(cls._fit), **shapes):
        detector.fit(train)
    with _phase(cls, "score", place_of(cls._score), **shapes):
        detector.score(test)


@contextmanager
def _phase(cls: type[Detector], phase: str, place: str, **shapes: str) -> Iterator[None]:
    """Turn errors (except for wrong parameters) into `Failed`, with the phase, the author's line and the shapes."""
    try:
        yield
    except UsageError:
        raise
    except (Exception, SystemExit) as error:
        text = one_line(str(error), 500)
        said = text if isinstance(error, ContractError) else f"{type(error).__name__}: {text}".removesuffix(": ")
        own = [name for name in ("fit", "score") if getattr(cls, name) is not getattr(Detector, name)]
        hints = [hint for part, hint in _HINTS.items() if part in said]
        if own:  # `_fit` and `_score` may never run
            hints = [f"it overrides {' and '.join(own)}: write {' and '.join(f'_{name}' for name in own)} instead"]
        reason = "; ".join([f"{phase}: {said}", *hints[:1]])
        raise Failed(reason, phase=phase, raised_in=own_place(error, cls.__module__) or place, **shapes) from error


def _constructed(subject: Subject) -> Detector:
    cls = subject.cls
    taken = inspect.signature(cls).parameters.values()
    if stars := [str(one) for one in taken if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]:
        expected = "named parameters, each with a default: def __init__(self, *, window: int = 30)"
        raise ContractError(f"its constructor takes {' and '.join(stars)}; expected {expected}")
    if missing := sorted(cls.__abstractmethods__):
        expected = " and ".join(_HOOKS.get(name, name) for name in missing)
        raise ContractError(f"it does not define {' and '.join(missing)}; expected {expected}")
    detector = subject.make()
    if lost := [name for name in parameter_defaults(cls) if not hasattr(detector, name)]:
        raise ContractError(f"its constructor does not store {lost[0]!r}; expected self.{lost[0]} = {lost[0]}")
    return detector


@check("contract")
def sealed(subject: Subject) -> None:
    """The public methods, which validate calls, are not overridden."""
    if overridden := [name for name in _SEALED if getattr(subject.cls, name) is not getattr(Detector, name)]:
        raise Failed(f"overrides {overridden}; write _fit, _score, _training_scores, _contributions, _check instead")


@check("contract")
def constructor(subject: Subject) -> None:
    """The constructor only stores its arguments, and neither fit nor score changes them."""
    detector = subject.make()
    arguments = parameter_defaults(subject.cls) | subject.parameters
    if extra := sorted(set(vars(detector)) - set(arguments)):
        raise Failed(f"the constructor sets more than its arguments: {extra}; set them in _fit")
    detector.fit(subject.train()).score(subject.test())
    if changed := [name for name, value in arguments.items() if getattr(detector, name) is not value]:
        raise Failed(f"parameters have changed: {changed}; keep learned values in attributes that end in _")


@check("contract")
def learned_names(subject: Subject) -> None:
    """Learned attributes have names that end in an underscore."""
    detector = subject.fitted
    if odd := sorted(name for name in vars(detector).keys() - detector.get_params().keys() if not name.endswith("_")):
        raise Failed(f"learned attributes must end in _, these do not: {odd}")


@check("contract")
def scores(subject: Subject) -> None:
    """Every recording gets one finite score per row, with NaN only as one leading and one trailing run."""
    detector = subject.fitted
    for n_rows in (240, 101, subject.reach + 1):
        detector.score(subject.test(n_rows=n_rows))
    detector.training_scores(subject.train())
    if np.isnan(detector.score(subject.test())).all():
        raise Failed("no row of a recording of 240 rows has a score")


@check("contract")
def every_row(subject: Subject) -> None:
    """Every row has a score; missing scores count as the worst case."""
    missing = np.isnan(subject.usual)
    first, last = subject.warm_up, int(missing[::-1].cumprod().sum())
    if 0 < first < len(missing) or last:
        reason = f"the first {first} and last {last} rows have no score: each counts as a false alarm or a miss; "
        reason += "tsadbench.base.trailing_windows(rows, length) pads the first windows"
        raise Warned(reason, first_rows=first, last_rows=last)


@check("contract")
def contributions(subject: Subject) -> None:
    """Contributions, if offered, exist for all scored rows and mostly blame the sensor that moved."""
    if not subject.cls.offers_contributions():
        raise Skipped("it does not offer contributions")
    detector = subject.fitted
    missing = np.isnan(detector.contributions(subject.test())).any(axis=1)
    rows = np.flatnonzero(missing != np.isnan(detector.score(subject.test())))
    if len(rows):
        raise Failed("contributions and score are not missing in the same rows", first_row=int(rows[0]))
    sensors, blamed = list(synthetic.SENSORS), []
    for number in range(len(sensors)):
        moved = subject.test(synthetic.raised(140, 150, 100.0, slice(number, number + 1)))
        found = np.nansum(np.abs(subject.fitted.contributions(moved)[140:150]), axis=0)
        blamed.append(sensors[int(np.nanargmax(found))])
    # Half of them suffice, because contributions spread over correlated sensors, above all in principal components.
    if sum(one == moved for one, moved in zip(blamed, sensors, strict=True)) < len(sensors) / 2:
        raise Failed(f"of {sensors}, each moved by a hundred standard deviations, it blames {blamed}")


@check("contract", "scores")
def copies(subject: Subject) -> None:
    """A copied or pickled detector gives the same scores, to the bit."""
    detector = subject.fit()
    dumps = cloudpickle.dumps if subject.cls.__module__ == "__main__" else pickle.dumps  # pickle finds no class there
    copies = ("copied", copy.deepcopy(detector)), ("pickled", pickle.loads(dumps(detector)))
    expected = detector.score(subject.test())
    for way, copied in copies:
        require_equal(copied.score(subject.test()), expected, f"the {way} detector gives other scores")


@check("contract", "fits")
def sensor_names(subject: Subject) -> None:
    """Scores do not depend on the names of sensors."""
    if any(isinstance(value, Prior) or "sensor" in name for name, value in subject.parameters.items()):
        raise Skipped("its parameters name sensors")
    *train, test = (replace(one, sensors=_PUBLISHED) for one in (*subject.train(), subject.test()))
    found = subject.make().fit(train).score(test)
    require_equal(found, subject.usual, "the same rows of sensors with other names get other scores")


@check("contract", "scores")
def anonymous(subject: Subject) -> None:
    """Scores do not depend on a recording's name or start time."""
    renamed = replace(subject.test(), id="another name", time=np.arange(240.0) + 1_000_003.0)
    require_equal(subject.fitted.score(renamed), subject.usual, "the same rows under another name get other scores")
