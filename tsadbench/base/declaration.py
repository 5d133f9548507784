"""Detectors as dataclasses: a parameter's type, range, tuning range and default are declared once, as a field."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import numpy as np

from tsadbench.base.search_space import Tune


@dataclass(frozen=True, slots=True)
class Cheap:
    """The value of a parameter in `tsadbench check`, which fits a detector many times."""

    value: object


def resolve_fields(cls: type, names: dict[str, Any]) -> None:
    """Resolve a class's annotations by ``names``, and add what the base classes declare of the same parameters."""
    declared = {name: field.type for name, field in getattr(cls, "__dataclass_fields__", {}).items()}
    annotations = {name: declared[name] for name in declared if name in vars(cls)}  # a default without annotation
    for name, annotation in inspect.get_annotations(cls, globals=names, eval_str=True).items():
        kind, own = _parts(annotation)
        rules = (*_parts(declared.get(name))[1], *(_real(rule) if kind is float else rule for rule in own))
        annotations[name] = Annotated[kind, *rules] if rules else kind
    cls.__annotations__ = annotations


def _real(rule: object) -> object:
    """Return the range of a float: one from 0 to 1 holds more than two numbers."""
    return replace(rule, low=float(rule.low), high=float(rule.high)) if isinstance(rule, Tune) else rule


def expectation(value: object, annotation: object) -> str:
    """Return what a parameter of this type must be, if the value is not that; else an empty text."""
    kind, rules = _parts(annotation)
    kinds = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    wanted = [_expectation(value, one, rules) for one in kinds]
    return " or ".join(wanted) if all(wanted) else ""


def _expectation(value: object, kind: Any, rules: tuple[object, ...]) -> str:
    if not (kind in (bool, int, float, NoneType) or get_origin(kind) is Literal):
        return ""  # mypy's business
    from pydantic import TypeAdapter, ValidationError  # late: `tsadbench list` imports this module

    plain = value.item() if isinstance(value, np.generic) else value
    ranged: Any = Annotated[kind, *rules] if rules and kind in (int, float) else kind
    try:
        TypeAdapter(ranged).validate_python(plain, strict=True)
    except ValidationError as error:
        return error.errors()[0]["msg"].removeprefix("Input should be ")
    return ""


def _parts(annotation: Any) -> tuple[Any, tuple[object, ...]]:
    """Return a type, and what follows it in ``Annotated``."""
    rules = getattr(annotation, "__metadata__", ())
    return (annotation.__origin__ if rules else annotation), rules
