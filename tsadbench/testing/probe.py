"""The check that comes before all others: whether a detector works at all, and if not, where and on what it fails."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Literal, TypeAlias, TypeVar

from tsadbench.base.detector import Detector
from tsadbench.base.recording import Recording
from tsadbench.errors import ContractError, UsageError
from tsadbench.testing.check import Failed, Group
from tsadbench.testing.detector_under_test import DetectorUnderTest
from tsadbench.utils.error_place import own_place, place_of, place_of_class
from tsadbench.utils.parameters import parameters_of
from tsadbench.utils.text import one_line

group = Group("contract")
PROBE = "works"
_LONGEST = 500  # characters of a message
_TAKEN = {"_fit": "recordings", "_score": "recording"}

# What newcomers expect and do not find, by what is raised then.
_HINTS = (
    (
        r"'Recording' object has no attribute 'label",
        "no detector is given labels: training recordings are normal, and test recordings come without",
    ),
    (
        r"'Recording' object|^(?:TypeError: )?'Recording'",
        "a Recording is no data frame: it has id, values [n_rows, n_sensors], sensors and time",
    ),
    (r"'numpy.ndarray' object has no attribute", "recording.values is a NumPy array [n_rows, n_sensors]"),
    (r"read-only", "recordings are read-only: work on recording.values.copy()"),
)
_Made = TypeVar("_Made")
Phase: TypeAlias = Literal["construct", "fit", "score"]


@group.check(PROBE, "It can be constructed, fitted on a small data set, and score a recording.")
def works(subject: DetectorUnderTest) -> None:
    """Construct, fit and score once."""
    train, test = subject.train(), subject.test()
    detector = _tried("construct", subject.cls, lambda: _constructed(subject))
    _tried("fit", subject.cls, lambda: detector.fit(train), train, test)
    _tried("score", subject.cls, lambda: detector.score(test), train, test)


def _constructed(subject: DetectorUnderTest) -> Detector:
    cls = subject.cls
    # Without a constructor of its own, a class seems to take anything.
    written = cls.__init__ is not object.__init__
    taken = inspect.signature(cls.__init__).parameters.values() if written else ()
    if stars := [str(one) for one in taken if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]:
        raise ContractError(
            f"its constructor takes {' and '.join(stars)}; expected named parameters, each with a default: "
            f"def __init__(self, *, window: int = 30)"
        )
    if missing := sorted(cls.__abstractmethods__):
        wanted = " and ".join(f"def {name}(self, {_TAKEN[name]})" for name in missing)
        named = [name.removeprefix("_") for name in missing if name.removeprefix("_") in vars(cls)]
        also = f"; its {' and '.join(named)} {'is' if len(named) == 1 else 'are'} never called" if named else ""
        raise ContractError(f"it does not define {' and '.join(missing)}; expected {wanted}{also}")
    detector = subject.make()
    for name in (parameter.name for parameter in parameters_of(cls)):
        if not hasattr(detector, name):
            raise ContractError(
                f"its constructor does not store its parameter {name!r}; expected self.{name} = {name}, or a call of "
                f"super().__init__ that does so"
            )
    return detector


def _tried(
    phase: Phase,
    cls: type[Detector],
    work: Callable[[], _Made],
    train: tuple[Recording, ...] = (),
    test: Recording | None = None,
) -> _Made:
    """Return what the work returns; `Failed` with the phase, the place and the shapes if it raises anything."""
    try:
        return work()
    except UsageError:  # a parameter that is wrong, or does not fit: that is wrong usage
        raise
    except (Exception, SystemExit) as error:
        where = {"construct": place_of_class(cls), "fit": place_of(cls._fit), "score": place_of(cls._score)}[phase]
        text = one_line(str(error), _LONGEST)
        said = text if isinstance(error, ContractError) else f"{type(error).__name__}: {text}".removesuffix(": ")
        place = own_place(error, cls.__module__) or where
        shapes = {} if test is None else {"training": _shapes(*train), "test": _shapes(test)}
        hint = _replaced(cls) or next((hint for pattern, hint in _HINTS if re.search(pattern, said)), "")
        raise Failed(f"{phase}: {said}{hint and f'; {hint}'}", phase=phase, raised_in=place, **shapes) from error


def _replaced(cls: type[Detector]) -> str:
    """Return what to write instead of `fit` and `score`, if the class has its own; its hooks may then never run."""
    own = [name for name in ("fit", "score") if getattr(cls, name) is not getattr(Detector, name)]
    return f"it overrides {' and '.join(own)}: write {' and '.join(f'_{name}' for name in own)} instead" if own else ""


def _shapes(*recordings: Recording) -> str:
    return ", ".join(f"{one.n_rows} rows x {one.n_sensors} sensors" for one in recordings)
