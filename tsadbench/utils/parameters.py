"""Constructor parameters of detectors and protocols: what there are, parsed from text, written as a label."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import get_args, get_type_hints

from typing_extensions import TypeAliasType

from tsadbench.errors import UsageError
from tsadbench.utils.docstrings import definitions, sections

# A TypeAliasType, not a TypeAlias: pydantic follows no other recursion when it reads records.
JsonValue = TypeAliasType("JsonValue", "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One constructor parameter: its name, type annotation, default, and meaning from the class's docstring."""

    name: str
    annotation: object
    default: object
    meaning: str

    @property
    def accepts_none(self) -> bool:
        """Whether None is among the annotated types."""
        return self.annotation is None or type(None) in get_args(self.annotation)


@dataclass(frozen=True, slots=True)
class Label:
    """A detector or protocol as users write it, ``target[key=value,...]``; the values are still text."""

    target: str
    arguments: Mapping[str, str]

    def __str__(self) -> str:
        arguments = ",".join(f"{key}={value}" for key, value in self.arguments.items())
        return f"{self.target}[{arguments}]" if arguments else self.target


def parse_label(text: str) -> Label:
    """Return ``NAME[key=value,...]`` taken apart; a value may hold brackets and, inside brackets, commas.

    Raises
    ------
    UsageError
        If the brackets or a ``key=value`` are malformed.
    """
    target, bracket, rest = text.partition("[")
    if not target.strip() or (bracket and not rest.endswith("]")):
        raise UsageError(f"expected NAME or NAME[key=value,...], found {text!r}")
    arguments = {}
    for part in _split_at_commas(rest[:-1]) if bracket else ():
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"expected key=value inside the brackets of {text!r}, found {part!r}")
        arguments[key.strip()] = value.strip()
    return Label(target.strip(), arguments)


def normal_label(text: str) -> str:
    """Return a label as tables show it: keys sorted, no spaces.

    Raises
    ------
    UsageError
        If it is no label.
    """
    label = parse_label(text)
    return str(Label(label.target, dict(sorted(label.arguments.items()))))


def stored_label(text: str, known: Collection[str]) -> str:
    """Return the label that a text asks for: one of the known ones as it stands, else as `normal_label` does.

    A stored row's label need not be a name that can be taken apart.

    Raises
    ------
    UsageError
        If it is neither known nor a label.
    """
    return text if text in known else normal_label(text)


def parameters_of(cls: type) -> tuple[Parameter, ...]:
    """Return the constructor's parameters in order.

    A parameter that the class's docstring does not mention has the meaning that a base class's docstring gives it.

    Raises
    ------
    UsageError
        If a parameter has no default: a name alone must be enough to construct it.
    """
    constructor = inspect.getattr_static(cls, "__init__")
    hints = get_type_hints(constructor)
    meanings: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        meanings |= _meanings(inspect.cleandoc(base.__doc__ or ""))
    parameters = []
    for name, default in parameter_defaults(cls).items():
        if default is inspect.Parameter.empty:
            raise UsageError(f"{cls.__name__}: parameter {name!r} has no default; every parameter needs one")
        parameters.append(Parameter(name, hints.get(name, str), default, meanings.get(name, "")))
    return tuple(parameters)


def parameter_defaults(cls: type) -> dict[str, object]:
    """Return the constructor's parameters with their defaults, `inspect.Parameter.empty` for one without."""
    given = list(inspect.signature(inspect.getattr_static(cls, "__init__")).parameters.values())[1:]
    return {one.name: one.default for one in given if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)}


def parse_arguments(cls: type, texts: Mapping[str, str], owner: str) -> dict[str, object]:
    """Return the texts as values of the constructor's annotated types.

    Parameters
    ----------
    cls
        The class to be constructed.
    texts
        Value as text for each parameter named.
    owner
        What messages call the class.

    Raises
    ------
    UsageError
        If there is no such parameter (the nearest names are offered) or the text is not of its type.
    """
    known = {parameter.name: parameter for parameter in parameters_of(cls)}
    for name in texts:
        if name not in known:
            raise UsageError(f"{owner} has no parameter {name!r}{nearest(name, known)}")
    return {name: parse_value(known[name], text, owner) for name, text in texts.items()}


def parse_value(parameter: Parameter, text: str, owner: str) -> object:
    """Return a text as a value of a parameter's annotated type; parameters and errors as for `parse_arguments`."""
    if text.lower() == "none" and parameter.accepts_none:
        return None
    from pydantic import TypeAdapter, ValidationError

    adapter: TypeAdapter[object] = TypeAdapter(parameter.annotation)  # type: ignore[arg-type]  # any annotation
    # Numbers and lists are read as JSON, in which 1 and 1.0 differ: if both types are allowed, they mean two things.
    with contextlib.suppress(ValidationError):
        return adapter.validate_json(text, strict=True)
    try:
        return adapter.validate_strings(text)
    except ValidationError as error:
        reason = error.errors()[0]["msg"].replace("Input should be", "expected").partition(", unable to ")[0]
        raise UsageError(f"{owner}: parameter {parameter.name!r} cannot be {text!r}: {reason}") from error


def format_label(name: str, cls: type, arguments: Mapping[str, object]) -> str:
    """Return ``NAME`` or ``NAME[key=value,...]``: keys sorted, defaults left out."""
    return str(Label(name, changed_texts(cls, arguments)))


def changed_texts(cls: type, arguments: Mapping[str, object]) -> dict[str, str]:
    """Return the arguments that differ from their defaults, sorted by name, as one writes them."""
    defaults = {parameter.name: parameter.default for parameter in parameters_of(cls)}
    return {key: format_value(arguments[key]) for key in sorted(arguments) if arguments[key] != defaults[key]}


def format_value(value: object) -> str:
    """Return a parameter's value as one writes it on the command line."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list):
        return f"[{','.join(format_value(one) for one in value)}]"
    return str(value)


def as_json(value: object) -> JsonValue:
    """Return a parameter's value as JSON knows it; what JSON does not know becomes text."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    return str(value)


def nearest(name: str, known: Mapping[str, object] | tuple[str, ...]) -> str:
    """Return the end of a message on an unknown name: the nearest known names, or all of them."""
    close = get_close_matches(name, list(known), n=3, cutoff=0.5)
    if close:
        return f"; did you mean {' or '.join(repr(one) for one in close)}?"
    return f"; there are: {', '.join(sorted(known)) or 'none'}"


def _split_at_commas(text: str) -> list[str]:
    """Return the parts between the commas that stand in no brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += {"[": 1, "]": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part for part in parts if part.strip()]


def _meanings(docstring: str) -> dict[str, str]:
    """Return each parameter's text from a numpydoc "Parameters" section."""
    return {
        name.strip(): " ".join(line.strip() for line in meaning.splitlines() if line.strip())
        for names, meaning in definitions(sections(docstring).get("Parameters", "")).items()
        for name in names.split(":")[0].split(",")
    }
