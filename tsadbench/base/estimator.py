"""An outlier estimator of scikit-learn, or a pipeline that ends in one, as a detector: for objects without a name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

from tsadbench.base.detector import Traits
from tsadbench.base.wrapping import WrappedDetector

_SEED = "random_state"


class EstimatorDetector(WrappedDetector):
    """An estimator on rows as they are: what is to be standardised, its pipeline standardises.

    Scores are ``score_samples``, or else ``decision_function``, with the sign turned, so that higher is more anomalous.
    ``estimator`` is cloned for each fit; ``of`` is the estimator in words; ``seed`` replaces every ``random_state``.
    """

    traits: ClassVar[Traits] = Traits(family="estimator", memory=0)
    standardised: ClassVar[bool] = False
    estimator: ClassVar[Any] = None
    content: ClassVar[str] = ""

    def __init__(self, *, of: str = "", seed: int = 0) -> None:
        self.of = of
        self.seed = seed

    def _build(self, n_sensors: int) -> Any:  # noqa: ARG002 - for all
        from sklearn.base import clone

        model = clone(self.estimator)
        chosen = dict.fromkeys(names_of(model, _SEED), self.seed)
        # A local outlier factor that is to score new rows.
        return model.set_params(**chosen, **dict.fromkeys(names_of(model, "novelty"), True))

    def _rate(self, model: Any, data: Any) -> object:
        rate = getattr(model, "score_samples", None) or model.decision_function
        return -rate(data)


def names_of(estimator: Any, parameter: str) -> Iterator[str]:
    """Yield the names of a parameter in an estimator and those inside it: ``random_state``, ``pca__random_state``."""
    return (name for name in estimator.get_params() if name.rpartition("__")[2] == parameter)


def detector_class(estimator: Any, content: str, libraries: tuple[str, ...]) -> type[EstimatorDetector]:
    """Return the class of a detector that is this estimator, with a hash of it and its code as ``content``.

    ``libraries`` are the distributions whose versions determine its scores.
    """

    class Wrapped(EstimatorDetector):
        __doc__ = EstimatorDetector.__doc__
        traits = replace(EstimatorDetector.traits, stochastic=any(names_of(estimator, _SEED)))

    Wrapped.estimator, Wrapped.content, Wrapped.libraries = estimator, content, libraries
    return Wrapped
