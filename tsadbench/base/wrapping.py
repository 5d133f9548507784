"""Detectors of other libraries: a wrapper class, and families of classes by name."""

from __future__ import annotations

import copy
import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np

from tsadbench.base.detector import Detector, Traits
from tsadbench.base.recording import Recording
from tsadbench.base.training_facts import SHARE_SEEN, Fact
from tsadbench.base.windows import Windows
from tsadbench.errors import ContractError, DataError
from tsadbench.utils.arrays import FloatArray
from tsadbench.utils.numerics import seeded


class WrappedDetector(Detector):
    """A detector that delegates to a library; subclasses write ``__init__``, `_build` and overrides of defaults.

    A window ends at the row that gets its score. For scoring, the windows of a recording's first rows are padded with
    copies of its first row; padded windows are not used for fitting. Library calls run with seeded global random
    generators (`seeded`), and scoring uses a copy of the fitted model, so the library may change it.

    If needed, a subclass has parameters ``window`` (rows per window; default 1) and ``seed``.

    Attributes
    ----------
    takes
        The form of the data for the library.

        * "rows": an array [n_samples, n_features] of all training recordings, one sample per row or window.
        * "series": an array [n_rows, n_sensors], from which the library cuts windows. It is fitted on the longest
          training recording, because windows must not cross borders. ``share_seen`` is that recording's share of rows.
    standardised
        Whether rows are standardised by mean and standard deviation of all training rows before the library sees them.
    """

    takes: ClassVar[Literal["rows", "series"]] = "rows"
    standardised: ClassVar[bool] = True

    @abstractmethod
    def _build(self, n_sensors: int) -> Any:
        """Return the library's object, not fitted yet."""

    def _train(self, model: Any, data: FloatArray) -> None:
        """Fit the library's object on data of the form `takes`; by default ``model.fit(data)``."""
        model.fit(data)

    def _rate(self, model: Any, data: FloatArray) -> object:
        """Return scores of data of the form `takes`, higher = more anomalous.

        One score per sample; for a series, one per row or one per window. The default is scikit-learn's
        ``score_samples`` with the sign reversed, else ``decision_function`` as defined by PyOD and TSB-AD.
        """
        return -model.score_samples(data) if hasattr(model, "score_samples") else model.decision_function(data)

    def _fitted_scores(self, model: Any) -> object:  # noqa: ARG002 - for subclasses
        """Return the library's own training scores, for models that remember their rows; by default None.

        For instance PyOD's ``decision_scores_``.
        """
        return None

    def declared_traits(self) -> Traits:
        """Return the traits, for "rows" with ``memory`` set to ``window - 1``."""
        return replace(self.traits, memory=self._length - 1) if self.takes == "rows" else self.traits

    def _check(self, sensors: tuple[str, ...]) -> None:  # noqa: ARG002
        for name, least in (("window", 1), ("seed", 0)):
            value = getattr(self, name, least)
            valid = isinstance(value, Integral) and least <= int(value) < 2**32
            self._require(valid, name, f"an integer from {least}, below {2**32}")

    def _fit(self, recordings: tuple[Recording, ...]) -> None:
        rows = np.concatenate([recording.values for recording in recordings])
        self.mean_, self.scale_ = np.zeros(rows.shape[1]), np.ones(rows.shape[1])
        if self.standardised:
            self.mean_, spread = rows.mean(axis=0), rows.std(axis=0)
            self.scale_ = np.where(spread > 1e-9 * np.abs(self.mean_), spread, 1.0)  # a constant sensor has no spread
        self.longest_ = int(np.argmax([recording.n_rows for recording in recordings]))
        longest = recordings[self.longest_]
        self.share_seen_ = longest.n_rows / len(rows)
        if longest.n_rows <= self._length:
            raise DataError(
                f"{type(self).__name__}: expected training recordings with at least 2 windows of {self._length} rows, "
                f"found {longest.n_rows} rows; train on more rows or make window smaller"
            )
        data = self._data([self._scaled(one) for one in ([longest] if self.takes == "series" else recordings)])
        with seeded(self._chance):
            self.model_ = self._build(rows.shape[1])
            self._train(self.model_, data)

    def _score(self, recording: Recording) -> FloatArray:
        rows = self._scaled(recording)
        padded = np.concatenate([np.repeat(rows[:1], self._length - 1, axis=0), rows])
        with seeded(self._chance):
            scores = np.asarray(self._rate(copy.deepcopy(self.model_), self._data([padded])))
        # One per row of a series, or one per window; `Detector.score` checks the rest.
        return scores[self._length - 1 :] if self.takes == "series" and len(scores) == len(padded) else scores

    def _training_scores(self, recordings: tuple[Recording, ...]) -> list[FloatArray]:
        scores = [self._score(recording) for recording in recordings]
        if (fitted := self._fitted_scores(self.model_)) is not None:
            own = np.asarray(fitted)
            fitted_on = scores[self.longest_ : self.longest_ + 1] if self.takes == "series" else scores
            ends = np.cumsum([max(0, len(one) - self._length + 1) for one in fitted_on])
            if self.takes == "rows" and own.shape != (ends[-1],):
                found = list(own.shape)
                raise ContractError(f"{type(self).__name__}._fitted_scores: expected [{ends[-1]}], found {found}")
            for one, part in zip(fitted_on, np.split(own, ends[:-1]), strict=True):
                one[len(one) - len(part) :] = part  # the first rows have no full window
        return scores

    def _training_facts(self) -> Mapping[str, Fact]:
        return {SHARE_SEEN: self.share_seen_} if self.takes == "series" else {}

    @property
    def _length(self) -> int:
        return int(getattr(self, "window", 1))

    @property
    def _chance(self) -> int:
        return int(getattr(self, "seed", 0))

    def _scaled(self, recording: Recording) -> FloatArray:
        scaled: FloatArray = (recording.values - self.mean_) / self.scale_
        return scaled

    def _data(self, series: Sequence[FloatArray]) -> FloatArray:
        """Convert series [n_rows, n_sensors] to the library's form; a library that cuts windows gets one series."""
        if self.takes == "series":
            return series[0]
        windows = Windows(series, self._length)
        return np.asarray(windows).reshape(len(windows), -1)


class EstimatorDetector(WrappedDetector):
    """Wraps a scikit-learn outlier estimator (or a pipeline that ends in one); rows are not standardised.

    Scores are ``score_samples``, or else ``decision_function``, with the sign reversed: higher is more anomalous.
    ``estimator`` is cloned for each fit; ``of`` is its text in labels; ``seed`` replaces every ``random_state``.
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
        chosen = dict.fromkeys(names_of(model, "random_state"), self.seed)
        # Needed by the local outlier factor to score new rows.
        return model.set_params(**chosen, **dict.fromkeys(names_of(model, "novelty"), True))

    def _rate(self, model: Any, data: Any) -> object:
        rate = getattr(model, "score_samples", None) or model.decision_function
        return -rate(data)


def names_of(estimator: Any, parameter: str) -> Iterator[str]:
    """Yield the full names of a parameter in nested estimators: ``random_state``, ``pca__random_state``."""
    return (name for name in estimator.get_params() if name.rpartition("__")[2] == parameter)


@functools.cache
def wrapped_class(cls: type) -> type[EstimatorDetector]:
    """Wrap a scikit-learn-style class as a detector with the same parameters; ``random_state`` becomes ``seed``."""
    own = inspect.signature(cls, eval_str=True).parameters
    chance = next((name for name in ("random_state", "seed") if name in own), None)
    keyword = inspect.Parameter.KEYWORD_ONLY
    taken = [
        one.replace(kind=keyword, annotation=type(one.default) if one.annotation is one.empty else one.annotation)
        for name, one in own.items()
        if name != chance and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
    ]
    taken += [inspect.Parameter("seed", keyword, default=0, annotation=int)] if chance else []

    class Wrapped(EstimatorDetector):
        __doc__, __module__, __qualname__ = cls.__doc__, cls.__module__, cls.__qualname__
        traits = replace(EstimatorDetector.traits, stochastic=chance is not None)
        note = "scores are the class's with the sign turned: in scikit-learn's manner, lower is more anomalous"
        _length, _check = 1, Detector._check  # a parameter `window` is the class's own

        def __init__(self, **given: object) -> None:
            vars(self).update({one.name: one.default for one in taken} | given)

        def __reduce__(self) -> Any:  # pickle would look for this class where the wrapped one is
            return _empty, (cls,), vars(self)

        def _build(self, n_sensors: int) -> Any:  # noqa: ARG002
            return cls(**{str(chance) if name == "seed" else name: value for name, value in self.get_params().items()})

    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    Wrapped.__init__.__dict__["__signature__"] = inspect.Signature([itself, *taken])
    Wrapped.__init__.__annotations__ = {one.name: one.annotation for one in taken}
    Wrapped.__name__ = cls.__name__
    return Wrapped


def _empty(cls: type) -> EstimatorDetector:
    return object.__new__(wrapped_class(cls))


@dataclass(frozen=True, slots=True)
class LibraryDetector:
    """One class of a library, listed by ``tsadbench info LIBRARY`` and named ``LIBRARY:NAME``.

    ``note`` is a remark for readers of its scores; ``refusal`` says why it cannot be run, or is empty.
    """

    name: str
    note: str = ""
    refusal: str = ""


class DetectorLibrary(ABC):
    """Turns a library's classes into detectors.

    The class returned by `load` must be an attribute of the entry point's module, under the member's name, so that
    other processes find it; a module-level ``__getattr__`` may create it on demand. ``description`` is the text of
    ``tsadbench info LIBRARY``. Both methods raise a MissingExtraError if a package is not installed.
    """

    description: str = ""

    @abstractmethod
    def members(self) -> tuple[LibraryDetector, ...]:
        """Return every class, including those that cannot be run, without importing them."""

    @abstractmethod
    def load(self, name: str) -> type[Detector]:
        """Return the detector class of a member that can be run; this imports the library's class."""
