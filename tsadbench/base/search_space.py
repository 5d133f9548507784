"""Metadata of parameters in ``Annotated``: the range, the values for tuning, the value in checks."""

from __future__ import annotations

import inspect
import math
from dataclasses import dataclass, replace
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin

import numpy as np

from tsadbench.errors import UsageError

Value: TypeAlias = bool | int | float | str | None


@dataclass(frozen=True, slots=True)
class Cheap:
    """The value of a parameter in `tsadbench check`, which fits detectors many times."""

    value: object


@dataclass(frozen=True, slots=True)
class Choice:
    """One of at least two different values.

    ``alters_loss`` says that held-out losses of two values cannot be compared, because the parameter changes what is
    forecast, reconstructed or measured. Then only the objective ``injection`` searches it.
    """

    values: tuple[Value, ...]
    alters_loss: bool = False

    def __post_init__(self) -> None:
        if len({repr(value) for value in self.values}) != len(self.values) or len(self.values) < 2:
            raise UsageError(f"Choice: expected at least two values, each once, found {list(self.values)}")

    def holds(self, value: object) -> bool:
        """Whether this is one of the values."""
        return any(value == choice and isinstance(value, bool) == isinstance(choice, bool) for choice in self.values)


@dataclass(frozen=True, slots=True)
class Tune:
    """A number from ``low`` to ``high``, inclusive: an integer if both are, else with three significant digits.

    With ``log`` it is drawn on a logarithmic scale; ``alters_loss`` is as for `Choice`.

    Examples
    --------
    >>> Tune(1e-4, 1e-2, log=True).rounded(0.00123456)
    0.00123
    """

    low: int | float
    high: int | float
    log: bool = False
    alters_loss: bool = False

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise UsageError(f"Tune: expected finite bounds, low below high, found {self.low} and {self.high}")
        if self.log and self.low <= 0:
            raise UsageError(f"Tune: a logarithmic scale starts above 0, found {self.low}")

    @property
    def integer(self) -> bool:
        """Whether the number is an integer."""
        return isinstance(self.low, int) and isinstance(self.high, int)

    def holds(self, value: object) -> bool:
        """Whether the value is such a number, within the bounds."""
        number = isinstance(value, int if self.integer else int | float) and not isinstance(value, bool)
        return number and self.low <= value <= self.high  # type: ignore[operator]

    def rounded(self, value: float) -> int | float:
        """Return an integer as it is, another number with three significant digits, as labels show it."""
        return value if self.integer else min(max(float(f"{value:.3g}"), self.low), self.high)


Space: TypeAlias = Choice | Tune


def resolve_fields(cls: type, names: dict[str, Any]) -> None:
    """Resolve a class's annotations by ``names``, and add the base classes' metadata of the same parameters."""
    declared = {name: field.type for name, field in getattr(cls, "__dataclass_fields__", {}).items()}
    annotations = {name: declared[name] for name in declared if name in vars(cls)}  # a default without annotation
    for name in filter(lambda name: name.endswith("_"), vars(cls).get("__annotations__", {})):
        cls.__annotations__[name] = "object"  # learned, not a parameter; its type may be defined later in the file
    for name, annotation in inspect.get_annotations(cls, globals=names, eval_str=True).items():
        kind, own = _parts(annotation)
        rules = (*_parts(declared.get(name))[1], *(_real(rule) if kind is float else rule for rule in own))
        annotations[name] = Annotated[kind, *rules] if rules else kind
    cls.__annotations__ = annotations


def _real(rule: object) -> object:
    """Return a float's range with float bounds, because 0 to 1 would mean two integers."""
    return replace(rule, low=float(rule.low), high=float(rule.high)) if isinstance(rule, Tune) else rule


def expectation(value: object, annotation: object) -> str:
    """Return what a parameter of this type must be if the value is invalid, else ""."""
    kind, rules = _parts(annotation)
    kinds = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    wanted = [_expectation(value, one, rules) for one in kinds]
    return " or ".join(wanted) if all(wanted) else ""


def _expectation(value: object, kind: Any, rules: tuple[object, ...]) -> str:
    if not (kind in (bool, int, float, NoneType) or get_origin(kind) is Literal):
        return ""  # left to mypy
    from pydantic import TypeAdapter, ValidationError  # late: `tsadbench list` imports this module

    plain = value.item() if isinstance(value, np.generic) else value
    ranged: Any = Annotated[kind, *rules] if rules and kind in (int, float) else kind
    try:
        TypeAdapter(ranged).validate_python(plain, strict=True)
    except ValidationError as error:
        return error.errors()[0]["msg"].removeprefix("Input should be ")
    return ""


def _parts(annotation: Any) -> tuple[Any, tuple[object, ...]]:
    """Return a type and its ``Annotated`` metadata."""
    rules = getattr(annotation, "__metadata__", ())
    return (annotation.__origin__ if rules else annotation), rules
