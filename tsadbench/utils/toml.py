"""Read hand-written TOML files and validate them, reporting every error with its line; write values as TOML."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from tsadbench.utils.files import read_text
from tsadbench.utils.issues import Issue
from tsadbench.utils.parameters import nearest
from tsadbench.utils.text import one_line

# For models of tables: unknown keys and values of other types are errors.
TABLE = ConfigDict(extra="forbid", strict=True, frozen=True)
# The key in pydantic's context for the folder that paths in a file are relative to.
FOLDER = "folder"

_MOST_BYTES = 2**22
# How many faults a message lists, and how many characters of a value it shows.
_MOST_FAULTS, _LONGEST = 100, 200

_Model = TypeVar("_Model", bound=BaseModel)


def read_toml(
    path: Path, model: type[_Model], whole: str, advice: str, more: Mapping[str, object] = MappingProxyType({})
) -> tuple[_Model | None, str, list[Issue]]:
    """Return a TOML file's content (None if it cannot be read, or a key or value is wrong), its text and the issues.

    Messages call the file ``whole`` ("the card"); ``advice`` says what to do if there is no such file; ``more`` is
    added to pydantic's context.
    """
    text = ""
    try:
        text = read_text(path, _MOST_BYTES)
        content = tomllib.loads(text)
    except FileNotFoundError:
        return None, text, [Issue(str(path), f"there is no such file; {advice}")]
    except OSError as error:
        return None, text, [Issue(str(path), f"cannot be read ({error.strerror or error})")]
    except UnicodeDecodeError:
        return None, text, [Issue(path.name, "expected UTF-8; save the file in that encoding")]
    except (ValueError, RecursionError) as error:  # also for too many digits or levels
        at = re.search(r"at line (\d+)", str(error))
        return None, text, [Issue(path.name, f"not TOML: {error}", int(at[1]) if at else None)]
    context, issues = {FOLDER: path.parent, **more}, list[Issue]()
    try:
        return model.model_validate(content, context=context), text, issues
    except ValidationError as error:
        faults = error.errors()
    for one in faults[:_MOST_FAULTS]:
        keys = _keys(one["loc"], content) or (whole,)
        name = ".".join(keys)
        if one["type"] == "extra_forbidden":
            reason = f"unknown key {name}{nearest(keys[-1], _known(model, keys))}"
        else:
            reason = f"{name}: {fault_text(one)}"
        issues.append(Issue(path.name, reason, line_of(text, keys)))
    if len(faults) > _MOST_FAULTS:
        issues.append(Issue(path.name, f"{len(faults) - _MOST_FAULTS} more values or keys are wrong"))
    return None, text, issues


def line_of(text: str, keys: tuple[str, ...]) -> int | None:
    """Return the line, counted from 1, of a key, or else of its table."""
    table, lines = "", dict[str, int]()
    for number, line in enumerate(re.sub("[\"']", "", text).splitlines(), start=1):
        if head := re.match(r"\s*\[\s*([^\[\]]+?)\s*\]", line):
            table = f"{head[1]}."
            lines.setdefault(head[1], number)
        elif name := re.match(r"\s*([^#=\[\]]+?)\s*=", line):
            lines.setdefault(table + name[1], number)
    return lines.get(".".join(keys), lines.get(keys[0]))


def _keys(location: tuple[int | str, ...], content: Any) -> tuple[str, ...]:
    """Return a location without the names of types that pydantic adds for unions."""
    keys, value = list[str](), content
    for number, part in enumerate(location, start=1):
        if not (isinstance(part, str) and isinstance(value, dict)):
            break
        if number == len(location) or (part in value and part != value.get("kind")):  # else it is a table's kind
            keys.append(part)
            value = value.get(part)
    return tuple(keys)


def _known(model: type[BaseModel], keys: tuple[str, ...]) -> tuple[str, ...]:
    """Return the keys that are allowed in the table of the last of these keys."""
    models: list[type[BaseModel]] = [model]
    for key in keys[:-1]:
        annotations = [one.model_fields[key].annotation for one in models]
        types = [one for annotation in annotations for one in (annotation, *get_args(annotation))]
        models = [one for one in types if isinstance(one, type) and issubclass(one, BaseModel)]
    return tuple(field.alias or name for one in models for name, field in one.model_fields.items())


def fault_text(fault: ErrorDetails) -> str:
    """Return pydantic's message, and what was found."""
    if fault["type"] in ("missing", "value_error"):
        return fault["msg"].removeprefix("Value error, ")
    return f"{fault['msg']}, found {found_text(fault['input'])}"


def found_text(value: object) -> str:
    """Return the beginning of a value, or the type of a frame or another object."""
    whole = repr(str(value) if isinstance(value, Path) else value)
    return type(value).__name__ if "\n" in whole else one_line(whole, _LONGEST)


def toml_value(value: object) -> str:
    """Return a text, number, truth value or list of them as TOML; a list of over 100 characters, one item per line."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        items = [toml_value(item) for item in value]
        line = f"[{', '.join(items)}]"
        return line if len(line) <= 100 else "[\n" + "".join(f"    {item},\n" for item in items) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    # JSON writes texts, finite numbers and truth values as TOML does, except for one control character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
