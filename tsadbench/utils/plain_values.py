"""Values of simple types from text, for an interpreter that lacks pydantic: the same values as pydantic reads there."""

from __future__ import annotations

import contextlib
import json
import types
from pathlib import Path
from typing import Literal, Union, get_args, get_origin

_TRUE, _FALSE = frozenset({"1", "on", "t", "true", "y", "yes"}), frozenset({"0", "off", "f", "false", "n", "no"})


def plain_value(annotation: object, text: str) -> object:
    """Return a text as a value of an annotated type.

    Parameters
    ----------
    annotation
        bool, int, float, str, a path, a literal, None, lists and tuples of these, and unions.
    text
        The text.

    Raises
    ------
    ValueError
        If it is not of that type, or the type is none of these; the message says which.
    """
    # As JSON first, in which 1 and 1.0 differ: if both types are allowed, they mean two things.
    with contextlib.suppress(ValueError):
        return _from_json(annotation, json.loads(text))
    return _from_text(annotation, text)


def _from_json(annotation: object, value: object) -> object:
    options = _options(annotation)
    for exactly in (True, False):
        for option in options:
            with contextlib.suppress(ValueError):
                return _one_from_json(option, value, exactly=exactly)
    raise ValueError("expected another type")


def _one_from_json(option: object, value: object, *, exactly: bool) -> object:
    origin, arguments = get_origin(option), get_args(option)
    if origin is Literal and value in arguments:
        return arguments[arguments.index(value)]
    if option in (bool, int, str, float) and type(value) is option:
        return value
    if option is float and type(value) is int and not exactly:
        return float(value)
    if option in (None, type(None)) and value is None:
        return None
    if option is Path and isinstance(value, str):
        return Path(value)
    if option in (list, tuple) and isinstance(value, list):
        return value if option is list else tuple(value)
    if origin is list and isinstance(value, list):
        return [_from_json(arguments[0], one) for one in value]
    if origin is tuple and isinstance(value, list):
        if arguments[-1] is ...:
            return tuple(_from_json(arguments[0], one) for one in value)
        if len(arguments) == len(value):
            return tuple(_from_json(kind, one) for kind, one in zip(arguments, value, strict=True))
    raise ValueError("expected another type")


def _from_text(annotation: object, text: str) -> object:
    options = _options(annotation)
    # A text is itself, but only if it is nothing else.
    for option in sorted(options, key=lambda option: option is str):
        with contextlib.suppress(ValueError):
            return _one_from_text(option, text)
    raise ValueError(f"expected {' or '.join(map(_shown, options))}")


def _one_from_text(option: object, text: str) -> object:
    if option is bool and text.lower() in _TRUE | _FALSE:
        return text.lower() in _TRUE
    if option is int:
        return _integer(text)
    if option is float:
        return float(text)
    if option is str:
        return text
    if option is Path:
        return Path(text)
    if get_origin(option) is Literal and text in get_args(option):
        return text
    raise ValueError("expected another type")


def _integer(text: str) -> int:
    whole, point, fraction = text.partition(".")
    return int(whole if point and fraction.strip("0") == "" and fraction else text)


def _options(annotation: object) -> tuple[object, ...]:
    return get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)


def _shown(option: object) -> str:
    if get_origin(option) is Literal:
        return " or ".join(map(repr, get_args(option)))
    return getattr(option, "__name__", None) or str(option)
