"""The base of detectors that wrap a class of another library, and their construction from that class."""

from __future__ import annotations

import contextlib
import copy
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast
from unittest import mock

from tsadbench import UsageError
from tsadbench.base import FloatArray, Recording, Traits, WrappedDetector, seeded

# Decided elsewhere or of no use here: thresholds by the protocol, threads by the trial, randomness by the seed.
_WITHHELD = frozenset(
    {
        *("contamination", "novelty", "n_jobs", "parallel_execution", "device", "verbose", "random_state"),
        *("random_seed", "warm_start", "copy", "copy_X", "check_estimator", "use_compile", "compile_mode"),
    }
)
# Values that make a class cheap enough for the checks, if it has a parameter of that name.
_CHEAP = {"epochs": 3, "epoch_num": 3, "n_epochs": 3, "epochs_query": 1, "n_estimators": 50, "stop_epochs": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """How one class behaves under ``tsadbench check``. With all defaults, it passes and needs no remark.

    Parameters
    ----------
    module
        The library's module that defines it, if not its name in lower case.
    refusal
        Why it cannot be run.
    fails
        Reasons, by the ids of the checks that it fails with its default parameters.
    note
        What else readers of its scores need to know.
    alone
        If it compares scored rows with each other as well as with the training rows: a function that returns, from the
        training rows and the scored ones, the score that each row would get alone.
    turned
        Whether its scores fall in anomalous rows, so that their sign must be flipped.
    global_chance
        Whether it draws from the global random generators and has no parameter that seeds it.
    chance_with
        Parameters whose values other than the default make it stochastic; empty: it is stochastic if it has a seed.
    """

    module: str = ""
    refusal: str = ""
    fails: tuple[tuple[str, str], ...] = ()
    note: str = ""
    alone: Callable[[FloatArray, FloatArray], FloatArray] | None = None
    turned: bool = False
    global_chance: bool = False
    chance_with: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """The remark in tables and lists."""
        failures = [f"fails the check {check}: {reason}" for check, reason in self.fails]
        return "; ".join([self.note, *failures] if self.note else failures)


class ForeignDetector(WrappedDetector):
    """Another library's detector on standardised rows, or on trailing windows of them.

    A model file keeps the training rows, and reading it fits the detector again: an object of the library could be
    stored only in a format that executes code when it is read.

    Parameters
    ----------
    window
        Rows of the trailing window that a score answers for, at least 1; a window's score goes to its last row.
    seed
        Seed of all random numbers in it, at least 0 and below 2^32.
    """

    foreign: ClassVar[type]
    known: ClassVar[Known]

    def declared_traits(self) -> Traits:  # noqa: D102
        defaults = inspect.signature(type(self)).parameters
        chance = any(getattr(self, name) != defaults[name].default for name in self.known.chance_with)
        traits = super().declared_traits()
        return replace(traits, stochastic=traits.stochastic or chance)

    @classmethod
    def test_params(cls) -> dict[str, object]:  # noqa: D102
        offered = inspect.signature(cls).parameters
        return {name: value for name, value in _CHEAP.items() if name in offered}

    def _check(self, sensors: tuple[str, ...]) -> None:
        super()._check(sensors)
        try:
            with seeded(self._chance):
                self._build(len(sensors))
        except (TypeError, ValueError) as error:
            raise UsageError(f"{type(self).__name__}: {error}") from error

    def _fit(self, recordings: tuple[Recording, ...]) -> None:
        self.rows_ = tuple(recording.values for recording in recordings)
        super()._fit(recordings)

    def _learned(self) -> dict[str, object]:
        return {name: value for name, value in super()._learned().items() if name in ("sensors_", "rows_")}

    def _restore(self, learned: Mapping[str, object]) -> None:
        super()._restore(learned)
        self._fit(tuple(Recording(str(i), rows, self.sensors_) for i, rows in enumerate(self.rows_)))

    def _build(self, n_sensors: int) -> Any:
        takes = inspect.signature(self.foreign).parameters
        own = {name: copy.copy(value) for name, value in self.get_params(deep=False).items() if name in takes}
        ours = {"device": "cpu", "novelty": True, "n_features": self._length * n_sensors}
        ours |= dict.fromkeys(("random_state", "random_seed"), self._chance)
        with on_cpu():
            return self.foreign(**own, **{name: value for name, value in ours.items() if name in takes})

    def _train(self, model: Any, data: FloatArray) -> None:
        with on_cpu():
            model.fit(data)


def made_of(foreign: type, adapter: type[ForeignDetector], known: Known, family: str, extra: str | None) -> type[Any]:
    """Return the detector of a library's class, with the parameters of its constructor that a text can express."""
    theirs = inspect.signature(foreign).parameters
    seeds = known.global_chance or not {"random_state", "random_seed"}.isdisjoint(theirs)
    attributes = {
        "__module__": adapter.__module__,
        "__qualname__": foreign.__name__,
        "__doc__": inspect.getdoc(foreign),
        "__init__": _constructor(foreign, seeds),
        "foreign": foreign,
        "known": known,
        "note": known.summary,
        "traits": Traits(family=family, stochastic=seeds and not known.chance_with, extra=extra),
    }
    return type(foreign.__name__, (adapter,), attributes)


def _constructor(foreign: type, seeds: bool) -> Callable[..., None]:
    """Return an ``__init__`` that stores ``window``, the class's own parameters and ``seed``."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter("window", keyword, default=1, annotation=int)]
    for name, parameter in inspect.signature(foreign).parameters.items():
        annotation = _annotation(parameter.default)
        if name not in _WITHHELD and annotation is not None:
            parameters.append(parameter.replace(kind=keyword, annotation=annotation))
    if seeds:
        parameters.append(inspect.Parameter("seed", keyword, default=0, annotation=int))
    signature = inspect.Signature([inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY), *parameters])

    def __init__(self: object, **arguments: object) -> None:  # noqa: N807 - it becomes one
        bound = signature.bind(self, **arguments)
        bound.apply_defaults()
        vars(self).update({name: value for name, value in bound.arguments.items() if name != "self"})

    __init__.__signature__ = signature  # type: ignore[attr-defined]  # inspect looks for it
    __init__.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return __init__


def _annotation(default: object) -> Any:
    """Return the types that a parameter with this default may have; None if no text can express its value."""
    match default:
        case bool():
            return bool
        case int() | float():
            return int | float
        case str():
            return int | float | str
        case list():
            return list[int]  # sizes of layers: no other lists occur
        case None:
            return int | float | str | list[int] | None
    return None


@contextmanager
def on_cpu() -> Iterator[None]:
    """Hide the GPU from a library, and send what it prints to standard error.

    Not every class has a parameter for the device, and seeds would not fix what a GPU computes.
    """
    with ExitStack() as stack:
        stack.enter_context(contextlib.redirect_stdout(sys.stderr))
        torch = cast("Any", sys.modules.get("torch"))
        if torch is not None:
            stack.enter_context(mock.patch.object(torch.cuda, "is_available", return_value=False))
        yield
