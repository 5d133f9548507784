"""The detector's contract: learn from recordings, and score every row of a recording.

Planning constructs the detector in a box without data and calls `check`; another box constructs it again and calls
`fit` with the training recordings, then `training_scores`, then, one recording at a time, `score` (and
`contributions`). Thresholds are the protocol's business, so there is no ``predict``.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal, Self, TypeAlias, TypeVar, dataclass_transform, final

from annotated_types import MaxLen

from tsadbench.base.recording import Recording, Series, as_recording, as_recordings, check_sensors
from tsadbench.base.scores import checked_scores
from tsadbench.base.search_space import Cheap, Space, expectation, resolve_fields
from tsadbench.base.training_facts import Fact, checked_facts
from tsadbench.errors import ContractError, NotFittedError, UsageError
from tsadbench.utils.arrays import FloatArray
from tsadbench.utils.parameters import nearest, parameter_defaults, parameter_rules
from tsadbench.utils.text import Corpora

_Detector = TypeVar("_Detector")
# Shown in records and tables.
_Text: TypeAlias = Annotated[str, MaxLen(300)]
Departure: TypeAlias = Literal["narrower than published", "schedule differs"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """The promises of a detector, which `tsadbench check` verifies.

    Parameters
    ----------
    family
        The kind of method: "graph", "statistics", "reconstruction", "forecast", "trees", "floor", ...
    look_ahead, memory
        Numbers of rows after and before a row that its score may depend on: 0 = causal, None = all earlier rows.
    stochastic
        Whether the scores depend on the seed.
    adaptive
        Whether scoring changes what it has learned.
    window_normalised
        Whether it rescales each window by the window's own statistics.
    needs_prior
        Whether a run passes the data set's prior, if there is one, as its parameter ``prior``.
    leaky
        What leaks if parameters reproduce a published leak ("statistics of the scored rows"). Tables mark it.
    scoring_parameters
        Parameters that do not affect training: variants that differ only in these share one fit.
    extra
        The pip extra that it requires, for instance "deep".
    paper
        The publication of the method.
    floor
        Whether it is a floor, a baseline that detectors should beat. Runs add those that are registered in
        ``tsadbench.floors``, with their `Detector.floor_variants`.
    fixed_threshold
        Floors only: the threshold to use instead of the protocol's.
    differs
        How it departs from its publication, as shown in tables.
    pretrained_on
        Data sets or corpora, at most 20, that its weights were trained on before `Detector.fit`. Tables mark it.
    """

    family: _Text = "other"
    look_ahead: int = 0
    memory: int | None = None
    stochastic: bool = False
    adaptive: bool = False
    window_normalised: bool = False
    needs_prior: bool = False
    leaky: _Text = ""
    scoring_parameters: tuple[str, ...] = ()
    extra: _Text | None = None
    paper: _Text = ""
    floor: bool = False
    fixed_threshold: float | None = None
    differs: tuple[Departure, ...] = ()
    pretrained_on: Corpora = ()


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field,))
def detector(cls: type[_Detector]) -> type[_Detector]:
    """Make a detector's annotated attributes its parameters: ``dataclass(kw_only=True, eq=False, repr=False)``.

    Metadata in ``Annotated[...]`` describe a parameter: its range (``Ge``, ``Gt``, ``Le``, ``Lt``),
    what tuning may try (`Tune`, `Choice`), its value in checks (`Cheap`). `Detector` derives ``get_params``,
    ``set_params``, ``search_space``, ``test_params`` and range checks from these. A subclass that sets another default
    keeps the metadata of its base class.

    Examples
    --------
    >>> from typing import Annotated
    >>> from tsadbench.base import Ge, Tune
    >>> @detector
    ... class Power(Detector):
    ...     '''The largest power of a row's sensors.'''
    ...
    ...     exponent: Annotated[int, Ge(1), Tune(1, 4)] = 2
    ...
    ...     def _fit(self, recordings):
    ...         pass
    ...
    ...     def _score(self, recording):
    ...         return (recording.values**self.exponent).max(axis=1)
    >>> Power(exponent=3), Power.search_space()
    (Power(exponent=3), {'exponent': Tune(low=1, high=4, log=False, alters_loss=False)})
    >>> Power(exponent=0).check(())
    Traceback (most recent call last):
    tsadbench.errors.UsageError: Power: exponent must be greater than or equal to 1, found 0
    """
    caller = sys._getframe(1)
    resolve_fields(cls, {**caller.f_globals, **caller.f_locals})
    return dataclass(kw_only=True, eq=False, repr=False)(cls)


class Detector(ABC):
    """Learns from recordings, gives every row of a recording a score; higher = more anomalous.

    A subclass declares its parameters (`detector`), or has an ``__init__`` of keyword-only arguments, which it only
    stores. It implements ``_fit`` and ``_score``, and may implement ``_check``, ``_check_machine``,
    ``_training_scores``, ``_contributions``, ``_held_out_loss``, ``declared_traits``, ``search_space``,
    ``test_params``, ``floor_variants``, ``expected_check_failures``, ``_training_facts`` and, if a model file cannot
    hold its learned state, ``_learned`` and ``_restore``. Learned attributes end in ``_``. ``_score`` is pure: no
    state, no batch statistics, no randomness. NaN is only allowed as one leading and one trailing run of a recording.

    Every public method takes recordings, data frames or arrays [n_rows, n_sensors].

    Examples
    --------
    >>> import numpy as np
    >>> class Distance(Detector):
    ...     '''Distance of a row to the training mean.'''
    ...
    ...     def _fit(self, recordings):
    ...         self.mean_ = np.concatenate([recording.values for recording in recordings]).mean(axis=0)
    ...
    ...     def _score(self, recording):
    ...         return np.linalg.norm(recording.values - self.mean_, axis=1)
    >>> Distance().fit(np.zeros((5, 2))).score(np.array([[3.0, 4.0]]))
    array([5.])
    """

    traits: ClassVar[Traits] = Traits()
    # Distributions whose versions affect its scores, besides those that its files import.
    libraries: ClassVar[tuple[str, ...]] = ()
    # Printed below tables with a row of this detector.
    note: ClassVar[str] = ""

    sensors_: tuple[str, ...]

    @final
    def get_params(self, deep: bool = True) -> dict[str, object]:  # noqa: ARG002 - scikit-learn's clone passes it
        """Return the parameters by name; `sklearn.base.clone` needs this and `set_params`."""
        return {name: getattr(self, name) for name in parameter_defaults(type(self))}

    @final
    def set_params(self, **parameters: object) -> Self:
        """Set parameters; raises a UsageError for unknown ones."""
        known = parameter_defaults(type(self))
        for name, value in parameters.items():
            if name not in known:
                raise UsageError(f"{type(self).__name__} has no parameter {name!r}{nearest(name, known)}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = parameter_defaults(type(self))
        shown = [f"{name}={value!r}" for name, value in self.get_params().items() if value is not defaults[name]]
        return f"{type(self).__name__}({', '.join(shown)})"

    @final
    def check(self, sensors: tuple[str, ...], *, elsewhere: bool = False) -> None:
        """Raise a UsageError if a parameter is out of range, or does not fit these sensors or this machine.

        ``elsewhere`` means that the work runs on another machine, so a GPU missing here is no error.
        """
        declared = getattr(type(self), "__dataclass_fields__", {})
        for name in [name for name in parameter_defaults(type(self)) if name in declared]:
            expected = expectation(getattr(self, name), declared[name].type)
            self._require(not expected, name, expected)
        self._check(sensors)
        if not elsewhere:
            self._check_machine()

    @final
    def fit(self, recordings: Series | Sequence[Series]) -> Self:
        """Learn from one or several normal recordings of the same sensors; forget earlier fits.

        Raises a UsageError if a parameter is out of range, a DataError if the recordings are invalid.
        """
        training = as_recordings(recordings)
        sensors = training[0].sensors
        self.check(sensors)
        self._forget()
        self._fit(training)
        self.sensors_ = sensors
        return self

    @final
    def score(self, recording: Series) -> FloatArray:
        """Return the score of every row, [n_rows]; higher = more anomalous, NaN without a score.

        Raises a NotFittedError before `fit`, a DataError if the sensors differ from those of training, a ContractError
        if the scores have a wrong shape or dtype, infinities, or NaN between scored rows.
        """
        ready = self._ready(recording)
        return checked_scores(self._score(ready), (ready.n_rows,), f"{type(self).__name__}.score")

    @final
    def training_scores(self, recordings: Series | Sequence[Series]) -> list[FloatArray]:
        """Return the scores of the recordings given to `fit`, an array [n_rows] for each; errors as for `score`.

        Thresholds are set on them, so a detector that remembers its rows returns held-out scores here.
        """
        where = f"{type(self).__name__}.training_scores"
        training = tuple(self._ready(recording) for recording in as_recordings(recordings))
        scores = list(self._training_scores(training))
        if len(scores) != len(training):
            raise ContractError(f"{where}: expected {len(training)} arrays, one a recording, found {len(scores)}")
        return [checked_scores(score, (one.n_rows,), where) for score, one in zip(scores, training, strict=True)]

    @final
    def contributions(self, recording: Series) -> FloatArray:
        """Return how much each sensor contributes to each row's score, [n_rows, n_sensors]; errors as for `score`.

        Raises a UsageError if the detector does not offer contributions (`offers_contributions`).
        """
        if not self.offers_contributions():
            raise UsageError(f"{type(self).__name__} does not say which sensor contributes to its score")
        ready = self._ready(recording)
        where = f"{type(self).__name__}.contributions"
        return checked_scores(self._contributions(ready), ready.values.shape, where)

    @final
    @classmethod
    def offers_contributions(cls) -> bool:
        """Whether `contributions` is available."""
        return cls._contributions is not Detector._contributions

    @final
    def held_out_loss(self, recordings: Series | Sequence[Series], first: int = 0) -> float:
        """Return the forecast or reconstruction loss on held-out normal rows; smaller = better.

        Rows before ``first`` are context. Tuning compares losses between values of parameters that do not change what
        is measured (`search_space`); losses of different detectors are not comparable. Raises a UsageError if there is
        no loss (`offers_held_out_loss`), a ContractError if it is not finite; other errors as for `score`.
        """
        if not self.offers_held_out_loss():
            raise UsageError(f"{type(self).__name__} has no held-out loss: it neither forecasts nor reconstructs rows")
        held_out = tuple(self._ready(recording) for recording in as_recordings(recordings))
        loss = float(self._held_out_loss(held_out, first))
        if not math.isfinite(loss):
            raise ContractError(f"{type(self).__name__}.held_out_loss: expected a finite number, found {loss}")
        return loss

    @final
    @classmethod
    def offers_held_out_loss(cls) -> bool:
        """Whether `held_out_loss` is available."""
        return cls._held_out_loss is not Detector._held_out_loss

    @final
    def training_facts(self) -> dict[str, Fact]:
        """Return the detector's facts about its fit, by name: numbers, bools or None; empty by default.

        Records keep them. Tables mark fits whose ``share_seen``, the share of training windows (or rows) that were
        used, is below 1, or whose ``levelled`` is False: the loss was still falling when training ended. Raises a
        ContractError if there are more than 32 facts, or a name or a value is not allowed.
        """
        self._fitted_sensors()
        return checked_facts(self._training_facts(), f"{type(self).__name__}.training_facts")

    @final
    def learned(self) -> dict[str, object]:
        """Return the fitted state, by attribute, for `restore`."""
        self._fitted_sensors()
        return self._learned()

    @final
    def restore(self, learned: Mapping[str, object]) -> Self:
        """Restore the fitted state that `learned` returned, for the same class and parameters."""
        self._forget()
        self._restore(learned)
        return self

    def declared_traits(self) -> Traits:
        """Return this detector's traits; override it for traits that depend on parameters."""
        return self.traits

    def expected_check_failures(self) -> Mapping[str, str]:
        """Return the reasons for known failures of `tsadbench check`, by check. Only floors may leak."""
        return {}

    @classmethod
    def test_params(cls) -> dict[str, object]:
        """Return constructor arguments for a detector cheap enough for the checks."""
        rules = parameter_rules(cls)
        return {name: rule.value for name in rules for rule in rules[name] if isinstance(rule, Cheap)}

    @classmethod
    def search_space(cls) -> Mapping[str, Space]:
        """Return the search space of `tsadbench tune`: values of constructor parameters, valid in every combination."""
        rules = parameter_rules(cls)
        return {name: rule for name in rules for rule in rules[name] if isinstance(rule, Space)}

    @classmethod
    def floor_variants(cls) -> Sequence[Mapping[str, object]]:
        """Return, for a floor, the constructor arguments of the additional variants in every run."""
        return ()

    def _check(self, sensors: tuple[str, ...]) -> None:
        """Raise a UsageError (`_require`) if a parameter is wrong, or does not fit these sensors."""

    def _check_machine(self) -> None:
        """Raise a UsageError (`_require`) if this machine lacks something that a parameter requires."""

    @abstractmethod
    def _fit(self, recordings: tuple[Recording, ...]) -> None:
        """Learn; set attributes that end in ``_``."""

    @abstractmethod
    def _score(self, recording: Recording) -> FloatArray:
        """Return [n_rows] float64; higher = more anomalous."""

    def _training_scores(self, recordings: tuple[Recording, ...]) -> Sequence[FloatArray]:
        """Return the training rows' scores; override it in a detector that remembers its rows."""
        return [self._score(recording) for recording in recordings]

    def _contributions(self, recording: Recording) -> FloatArray:
        """Return [n_rows, n_sensors] float64; optional."""
        raise NotImplementedError  # never reached: `contributions` checks whether it is overridden

    def _held_out_loss(self, recordings: tuple[Recording, ...], first: int) -> float:
        """Return the mean loss over the rows from ``first`` on; for forecasters and reconstructors."""
        raise NotImplementedError  # never reached: `held_out_loss` checks whether it is overridden

    def _training_facts(self) -> Mapping[str, Fact]:
        """Return facts about the fit (`training_facts`); optional."""
        return {}

    def _learned(self) -> dict[str, object]:
        """Return all attributes except parameters; override it, and `_restore`, if a model file cannot hold them."""
        parameters = parameter_defaults(type(self))
        return {name: value for name, value in vars(self).items() if name not in parameters}

    def _restore(self, learned: Mapping[str, object]) -> None:
        """Set what `_learned` returned."""
        for name, value in learned.items():
            setattr(self, name, value)

    @final
    def _require(self, holds: bool, parameter: str, expected: str) -> None:
        """Raise a UsageError unless the parameter is as expected ("at least 1")."""
        if not holds:
            raise UsageError(
                f"{type(self).__name__}: {parameter} must be {expected}, found {getattr(self, parameter)!r}"
            )

    def _ready(self, recording: Series) -> Recording:
        sensors = self._fitted_sensors()
        ready = as_recording(recording)
        check_sensors(ready, sensors)
        return ready

    def _fitted_sensors(self) -> tuple[str, ...]:
        sensors: tuple[str, ...] | None = getattr(self, "sensors_", None)
        if sensors is None:
            raise NotFittedError(f"{type(self).__name__} is not fitted yet: call fit with normal recordings first")
        return sensors

    def _forget(self) -> None:
        parameters = parameter_defaults(type(self))
        for name in [name for name in vars(self) if name not in parameters]:
            delattr(self, name)
