"""Estimators given as Python objects: as members of a registered library, or else as they are."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from typing import Any, Protocol, runtime_checkable

import cloudpickle

from tsadbench.base.estimator import EstimatorDetector, detector_class
from tsadbench.errors import UsageError
from tsadbench.registry import Source, entries, load_library, locate
from tsadbench.sandbox import Construction, describe
from tsadbench.sandbox.construction import pickled
from tsadbench.utils.source_digest import source_of

# What the harness decides, whatever an object says: seeds, threads, thresholds, output.
_DECIDED = frozenset(
    {"random_state", "n_jobs", "contamination", "novelty", "verbose", "warm_start", "copy", "copy_X", "device"}
)
_NAME = "estimator"


@runtime_checkable
class Estimator(Protocol):
    """What scikit-learn calls an estimator."""

    def fit(self, X: Any) -> Any:
        """Learn from rows [n_rows, n_sensors]."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return its parameters."""


def construction_of(estimator: Estimator) -> Construction:
    """Return how a box constructs an estimator that the caller has made.

    If a registered library is called like the package of its class, has a member of the class's name, and takes all
    parameters that differ from their defaults, it is that member: ``sklearn:IsolationForest[n_estimators=50]``. Any
    other is cloned and pickled, with the code of classes that cannot be imported.

    Parameters
    ----------
    estimator
        The object; it is not changed, and what it has learned does not count.

    Raises
    ------
    UsageError
        If it cannot be cloned or pickled, or is no outlier or density estimator.
    """
    for step_name, step in getattr(estimator, "steps", ()):
        if not (step in (None, "passthrough") or isinstance(step, Estimator)):
            raise UsageError(f"{type(estimator).__name__}: its step {step_name!r} is no estimator, found {step!r}")
    return _member(estimator) or _as_it_is(estimator)


def _member(estimator: Estimator) -> Construction | None:
    cls = type(estimator)
    package = cls.__module__.partition(".")[0]
    if package not in {entry.name for entry in entries("families")}:
        return None
    if not any(one.name == cls.__name__ and not one.refusal for one in load_library(package).members()):
        return None
    source = locate(f"{package}:{cls.__name__}")
    offered = {one.name: one.default for one in describe(source).parameters}
    changed = _changed(estimator)
    if not changed.keys() <= offered.keys() | _DECIDED:
        return None
    return Construction(source, arguments={name: value for name, value in changed.items() if name in offered})


def _changed(estimator: Estimator) -> dict[str, Any]:
    """Return the parameters that differ from their defaults."""
    given = estimator.get_params(deep=False)
    try:
        defaults = type(estimator)().get_params(deep=False)
    except TypeError:  # a parameter without a default
        return given
    return {name: value for name, value in given.items() if repr(value) != repr(defaults.get(name))}


def _as_it_is(estimator: Estimator) -> Construction:
    from sklearn.base import OutlierMixin, clone

    name = type(estimator).__name__
    steps = [step for _, step in getattr(estimator, "steps", ())]
    last = steps[-1] if steps else estimator
    if not (hasattr(last, "score_samples") or isinstance(last, OutlierMixin)):
        raise UsageError(
            f"{name}: expected an outlier or density estimator, with score_samples or decision_function, or a pipeline "
            f"that ends in one, found {type(last).__name__}; wrap it in a class (docs/wrapping-a-library.md)"
        )
    try:
        copy = clone(estimator)
    except Exception as error:  # objects may raise anything here
        raise UsageError(f"{name} cannot be cloned: {' '.join(str(error).split())}") from None
    classes = sorted({type(one) for one in _parts(copy)}, key=lambda cls: f"{cls.__module__}.{cls.__qualname__}")
    content = _content(copy, classes)
    made = detector_class(copy, content, _distributions(classes))
    source = Source(
        _NAME,
        f"{EstimatorDetector.__module__}:{EstimatorDetector.__qualname__}",
        _NAME,
        pickled=pickled(made, name),
        imported=True,
        modules=tuple(dict.fromkeys(cls.__module__ for cls in classes)),
    )
    return Construction(source, arguments={"of": _in_words(copy, steps, content)})


def _parts(estimator: Any) -> Iterator[Any]:
    """Yield an estimator and those inside it."""
    yield estimator
    for value in estimator.get_params().values():
        if isinstance(value, Estimator) and not isinstance(value, type):
            yield value


def _content(estimator: Any, classes: list[type]) -> str:
    digest = hashlib.sha256()
    try:
        digest.update(cloudpickle.dumps(estimator))
    except Exception as error:  # objects may raise anything here
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise UsageError(f"{type(estimator).__name__} cannot be sent to a box ({reason})") from None
    for cls in classes:  # a library's code counts by its version
        if not _distributions([cls]):
            digest.update(source_of(cls).digest.encode())
    return digest.hexdigest()


def _distributions(classes: list[type]) -> tuple[str, ...]:
    known = packages_distributions()
    packages = {cls.__module__.partition(".")[0] for cls in classes}
    return tuple(sorted({name for package in packages for name in known.get(package, ())}))


def _in_words(estimator: Any, steps: list[Any], content: str) -> str:
    """Return an estimator on one line without commas and brackets, which separate the parameters of a label."""
    parts = [_shown(step) for step in steps] or [_shown(estimator)]
    text = " > ".join(parts)
    plain = re.sub(r"<(?:\w+ )*'?([\w.]+)[^>]*>+", r"\1", text)
    plain = plain.replace(",", ";").replace("[", "(").replace("]", ")")
    return plain if text == plain.replace(";", ",") and "..." not in text else f"{plain} #{content[:8]}"


def _shown(estimator: Any) -> str:
    """Return an estimator as code; the seed is the trial's."""
    names = {name: value for name, value in _changed(estimator).items() if name not in ("random_state", "n_jobs")}
    values = ", ".join(f"{name}={value!r}" for name, value in names.items())
    return " ".join(f"{type(estimator).__name__}({values})".split())
