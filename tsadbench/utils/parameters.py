"""Constructor parameters of detectors and protocols: read from a class, parsed from text, written as a label."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import get_type_hints

from typing_extensions import TypeAliasType

from tsadbench.errors import UsageError
from tsadbench.utils.docstrings import definitions, sections

# A TypeAliasType, because pydantic cannot resolve a recursive TypeAlias.
JsonValue = TypeAliasType("JsonValue", "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One constructor parameter: its name, type, default, and meaning from the class's docstring."""

    name: str
    annotation: object
    default: object
    meaning: str


@dataclass(frozen=True, slots=True)
class Label:
    """A detector or protocol as users write it, ``target[key=value,...]``; the values are still text."""

    target: str
    arguments: Mapping[str, str]

    def __str__(self) -> str:
        arguments = ",".join(f"{key}={value}" for key, value in self.arguments.items())
        return f"{self.target}[{arguments}]" if arguments else self.target


def parse_label(text: str) -> Label:
    """Return the parts of ``NAME[key=value,...]``; a value may contain brackets and, inside brackets, commas.

    Raises a UsageError if the brackets or a ``key=value`` are malformed.
    """
    target, bracket, rest = text.partition("[")
    if not target.strip() or (bracket and not rest.endswith("]")):
        raise UsageError(f"expected NAME or NAME[key=value,...], found {text!r}")
    parts, arguments = [""], {}
    for piece in rest[:-1].split(","):
        if parts[-1].count("[") > parts[-1].count("]"):
            parts[-1] += f",{piece}"
        else:
            parts.append(piece)
    for part in filter(str.strip, parts):
        key, equals, value = part.partition("=")
        if not equals or not key.strip() or key.strip() in arguments:
            raise UsageError(f"expected each key once, as key=value, inside the brackets of {text!r}, found {part!r}")
        arguments[key.strip()] = value.strip()
    return Label(target.strip(), arguments)


def normal_label(text: str, known: Collection[str] = ()) -> str:
    """Normalise a label: sorted keys, no spaces. Labels of stored rows are known and need not be parsable."""
    if text in known:
        return text
    label = parse_label(text)
    return str(Label(label.target, dict(sorted(label.arguments.items()))))


def parameters_of(cls: type) -> tuple[Parameter, ...]:
    """Return the constructor's parameters in order, described by the docstrings of the class and its bases.

    Raises a UsageError if a parameter has no default: a name alone must be enough to construct it.
    """
    hints = get_type_hints(inspect.getattr_static(cls, "__init__"))
    meanings: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        for names, meaning in definitions(sections(base.__doc__ or "").get("Parameters", "")).items():
            for name in names.split(":")[0].split(","):
                meanings[name.strip()] = " ".join(meaning.split())
    parameters = []
    for name, default in parameter_defaults(cls).items():
        if default is inspect.Parameter.empty:
            raise UsageError(f"{cls.__name__}: parameter {name!r} has no default; every parameter needs one")
        parameters.append(Parameter(name, hints.get(name, str), default, meanings.get(name, "")))
    return tuple(parameters)


def parameter_rules(cls: type) -> dict[str, tuple[object, ...]]:
    """Return each parameter's ``Annotated`` metadata, from the constructor or else from a base class."""
    declared = {name: field.type for name, field in getattr(cls, "__dataclass_fields__", {}).items()}
    own = get_type_hints(inspect.getattr_static(cls, "__init__"), include_extras=True)
    declared |= {name: hint for name, hint in own.items() if hasattr(hint, "__metadata__")}
    return {name: getattr(declared.get(name), "__metadata__", ()) for name in parameter_defaults(cls)}


def parameter_defaults(cls: type) -> dict[str, object]:
    """Return the constructor's parameters with their defaults, `inspect.Parameter.empty` for one without."""
    given = list(inspect.signature(inspect.getattr_static(cls, "__init__")).parameters.values())[1:]
    return {one.name: one.default for one in given if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)}


def parse_arguments(cls: type, texts: Mapping[str, str], owner: str) -> dict[str, object]:
    """Return the texts as values of the constructor's annotated types; messages call the class ``owner``.

    Raises a UsageError if there is no such parameter (it names the nearest ones) or the text is not of its type.
    """
    known = {parameter.name: parameter for parameter in parameters_of(cls)}
    require_known(texts, known, f"{owner} has no parameter")
    return {name: parse_value(name, known[name].annotation, text, owner) for name, text in texts.items()}


def parse_value(name: str, annotation: object, text: str, owner: str) -> object:
    """Return a text as a value of a parameter's annotated type; ``owner`` and errors as in `parse_arguments`."""
    from pydantic import TypeAdapter, ValidationError

    adapter: TypeAdapter[object] = TypeAdapter(annotation)  # type: ignore[arg-type]  # any annotation
    # Numbers and lists are read as JSON, which keeps 1 and 1.0 apart if a parameter allows both types.
    with contextlib.suppress(ValidationError):
        return adapter.validate_json("null" if text.lower() == "none" else text, strict=True)
    try:
        return adapter.validate_strings(text)
    except ValidationError as error:
        reason = error.errors()[0]["msg"]
        raise UsageError(f"{owner}: parameter {name!r} cannot be {text!r}: {reason}") from error


def changed_texts(cls: type, arguments: Mapping[str, object]) -> dict[str, str]:
    """Return the arguments that differ from their defaults, sorted, as texts; 1 and 1.0 differ unless typed float."""
    hints, usual = get_type_hints(inspect.getattr_static(cls, "__init__")), parameter_defaults(cls)

    def text(key: str, value: object) -> str:
        return format_value(float(value) if hints.get(key) in (float, float | None) and type(value) is int else value)

    return {key: one for key in sorted(arguments) if (one := text(key, arguments[key])) != text(key, usual[key])}


def format_value(value: object) -> str:
    """Return a parameter's value in command-line form."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list | tuple):
        return f"[{','.join(map(format_value, value))}]"
    return str(value)


def as_json(value: object) -> JsonValue:
    """Return a parameter's value as JSON; other objects become text."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return [as_json(item) for item in value] if isinstance(value, list | tuple) else str(value)


def require_known(names: Iterable[str], known: Collection[str], message: str, field: str | None = None) -> None:
    """Raise a UsageError, ``message`` with the name and the nearest known ones, for the first unknown name."""
    for name in names:
        if name not in known:
            raise UsageError(f"{message} {name!r}{nearest(name, known)}", field=field)


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the end of a message on an unknown name: the nearest known names, or all of them."""
    known = sorted(known)
    if close := get_close_matches(name, known, n=3, cutoff=0.5):
        return f"; did you mean {' or '.join(map(repr, close))}?"
    return f"; known: {', '.join(known) or 'none'}"
