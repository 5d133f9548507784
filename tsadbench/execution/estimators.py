"""Scikit-learn estimator objects as detectors: sent to the box by cloudpickle, labelled by their `repr`."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

import cloudpickle

from tsadbench.errors import UsageError
from tsadbench.registry import Source
from tsadbench.sandbox import Construction
from tsadbench.sandbox.construction import pickled
from tsadbench.utils.distributions import distributions_of
from tsadbench.utils.source_digest import source_of

_NAME = "estimator"


@runtime_checkable
class Estimator(Protocol):
    """What scikit-learn calls an estimator."""

    def fit(self, X: Any) -> Any:
        """Learn from rows [n_rows, n_sensors]."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return its parameters."""


def construction_of(estimator: Estimator) -> Construction:
    """Describe an estimator object so that a box can construct it; a UsageError if that is impossible.

    The object is cloned: it stays unchanged, and its fitted state is ignored.
    """
    from sklearn.base import OutlierMixin, clone

    from tsadbench.base.wrapping import EstimatorDetector, names_of

    name = type(estimator).__name__
    steps = dict(getattr(estimator, "steps", ()))
    for step_name, step in steps.items():
        if not (step in (None, "passthrough") or isinstance(step, Estimator)):
            raise UsageError(f"{name}: its step {step_name!r} is not an estimator, found {step!r}")
    last = [*steps.values()][-1] if steps else estimator
    if not (hasattr(last, "score_samples") or isinstance(last, OutlierMixin)):
        raise UsageError(
            f"{name}: expected an outlier or density estimator of scikit-learn, or a pipeline that ends in one, found "
            f"{type(last).__name__}; name PyOD's (pyod:KNN), wrap others in a class (docs/wrapping-a-library.md)"
        )
    try:
        copy = clone(estimator)
        for decided in ("random_state", "n_jobs"):  # set by the trial, whatever the object says
            copy.set_params(**dict.fromkeys(names_of(copy, decided)))
        content = cloudpickle.dumps(copy)
    except Exception as error:  # objects may raise anything here
        raise UsageError(f"{name} cannot be sent to a box: {' '.join(f'{error}'.split())}") from None
    inside = [one for one in copy.get_params().values() if isinstance(one, Estimator) and not isinstance(one, type)]
    classes = sorted({*map(type, [copy, *inside])}, key=lambda cls: f"{cls.__module__}.{cls.__qualname__}")
    # A library's code counts by its version.
    packages = {cls: distributions_of(cls.__module__.partition(".")[0]) for cls in classes}
    own = [source_of(cls).digest.encode() for cls in classes if not packages[cls]]
    digest = hashlib.sha256(b"".join([content, *own])).hexdigest()

    class Wrapped(EstimatorDetector):
        __doc__ = EstimatorDetector.__doc__
        traits = replace(EstimatorDetector.traits, stochastic=any(names_of(copy, "random_state")))

    Wrapped.estimator, Wrapped.content = copy, digest
    Wrapped.libraries = tuple(sorted({name for names in packages.values() for name in names}))
    source = Source(
        _NAME,
        f"{EstimatorDetector.__module__}:{EstimatorDetector.__qualname__}",
        _NAME,
        pickled=pickled(Wrapped, name),
        modules=tuple(dict.fromkeys(cls.__module__ for cls in classes)),
    )
    return Construction(source, arguments={"of": _label(copy, digest)})


def _label(estimator: Any, digest: str) -> str:
    """Return the `repr` (for a pipeline, of its steps) without characters that separate a label's parameters."""
    steps = [step for _, step in getattr(estimator, "steps", ())] or [estimator]
    text = " ".join(" > ".join(map(repr, steps)).split())
    short = re.sub(r"<(?:\w+ )*'?([\w.]+)[^>]*>+", r"\1", text)
    label = short.replace(",", ";").replace("[", "(").replace("]", ")")
    # Different functions or arrays can have the same text.
    return label if short == text and "..." not in text else f"{label} #{digest[:8]}"
