"""Read hand-written TOML files and validate them, reporting every error with its line; write values as TOML."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from tsadbench.utils.issues import Issues
from tsadbench.utils.parameters import nearest

# For the model of a table: no key but its fields, no value but of their types.
TABLE = ConfigDict(extra="forbid", strict=True, frozen=True)

_Model = TypeVar("_Model", bound=BaseModel)


def read_toml(path: Path, issues: Issues, advice: str) -> tuple[str, dict[str, Any]] | None:
    """Return a file's text and its content; None, and why among the issues, where it cannot be read.

    Parameters
    ----------
    path
        The file.
    issues
        Where to note what is wrong.
    advice
        What to do where there is no such file.
    """
    try:
        text = path.read_text(encoding="utf-8")
        return text, tomllib.loads(text)
    except FileNotFoundError:
        issues.add(str(path), f"there is no such file; {advice}")
    except OSError as error:
        issues.add(str(path), f"cannot be read ({error.strerror}); check the path and its permissions")
    except UnicodeDecodeError:
        issues.add(path.name, "expected UTF-8; save the file in that encoding")
    except tomllib.TOMLDecodeError as error:
        at = re.search(r"at line (\d+)", str(error))
        issues.add(path.name, f"not TOML: {error}", int(at[1]) if at else None)
    return None


def checked(
    model: type[_Model], text: str, content: dict[str, Any], file: str, whole: str, issues: Issues
) -> _Model | None:
    """Return the content as a model; None, and every reason among the issues, where a value does not do.

    Unknown keys are issues, but the rest is gone on with.

    Parameters
    ----------
    model
        The keys and their types.
    text, content
        As `read_toml` returns them.
    file, whole
        What messages call the file ("card.toml"), and all of it ("the card").
    issues
        Where to note what is wrong.
    """
    try:
        return model.model_validate(content)
    except ValidationError as error:
        unknown, others = [], 0
        for fault in error.errors():
            keys = _keys(fault["loc"], content) or (whole,)
            if fault["type"] == "extra_forbidden":
                unknown.append(keys)
                known = _known(model, keys)
                issues.add(file, f"unknown key {dotted(keys)}{nearest(keys[-1], known)}", line_of(text, keys))
            else:
                others += 1
                issues.add(file, f"{dotted(keys)}: {fault_text(fault)}", line_of(text, keys))
    if others:
        return None
    for keys in unknown:
        _remove(content, keys)
    return model.model_validate(content)


def dotted(keys: tuple[str, ...]) -> str:
    """Return a key with the tables that it stands in, as TOML writes it."""
    return ".".join(keys)


def line_of(text: str, keys: tuple[str, ...]) -> int | None:
    """Return the line, counted from 1, on which a key, or else its table, stands."""
    table, found = "", None
    for number, line in enumerate(text.splitlines(), start=1):
        head = re.match(r"\s*\[\s*([^\[\]]+?)\s*\]", line)
        if head:
            table = _unquoted(head[1])
            if (table,) == keys[:1]:
                found = found or number
            if table == dotted(keys):
                return number
        name = re.match(r"\s*([^#=\[\]]+?)\s*=", line)
        if name and dotted(((table,) if table else ()) + (_unquoted(name[1]),)) == dotted(keys):
            return number
    return found


def _unquoted(name: str) -> str:
    return name.replace('"', "").replace("'", "")


def _keys(place: tuple[int | str, ...], content: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a place without what pydantic adds to it: the names of the types that a value might have had."""
    keys: list[str] = []
    found: object = content
    for part in place:
        if not (isinstance(part, str) and isinstance(found, dict)):
            break
        keys.append(part)
        found = found.get(part)
    return tuple(keys)


def _known(model: type[BaseModel], keys: tuple[str, ...]) -> tuple[str, ...]:
    """Return the keys that the table may have in which the last of these keys stands."""
    for key in keys[:-1]:
        annotation = model.model_fields[key].annotation
        model = next(one for one in (annotation, *get_args(annotation)) if isinstance(one, type) and one is not dict)
    return tuple(field.alias or name for name, field in model.model_fields.items())


def _remove(content: dict[str, Any], keys: tuple[str, ...]) -> None:
    for key in keys[:-1]:
        content = content[key]
    content.pop(keys[-1], None)


def fault_text(fault: ErrorDetails) -> str:
    """Return what was expected and what was found."""
    if fault["type"] == "missing":
        return "is missing; add it"
    text = fault["msg"].removeprefix("Value error, ").removesuffix(" after validation, not 0")
    if fault["type"] == "value_error":
        return f"{text[0].lower()}{text[1:]}"
    found = f", found {fault['input']!r}"
    if not text.startswith("Input should be "):
        return f"{text[0].lower()}{text[1:]}{found}"
    kind = re.sub(r"^(an? )?(valid )?", "", text.removeprefix("Input should be "))
    kind = re.sub(r"^(?=greater|less)", "number ", kind)
    article = "" if not kind[0].isalpha() else "an " if kind[0] in "aeiou" else "a "
    return f"expected {article}{kind}{found}"


def toml_lines(table: Mapping[str, object]) -> Iterator[str]:
    """Yield ``key = value`` for each key of a table. TOML has no null: a value of None is left out.

    Examples
    --------
    >>> list(toml_lines({"name": "t2", "t2.smoothing": 5, "prior": None, "seeds": [0, 1]}))
    ['name = "t2"', '"t2.smoothing" = 5', 'seeds = [0, 1]']
    """
    for key, value in table.items():
        if value is not None:
            yield f"{key if re.fullmatch('[A-Za-z0-9_-]+', key) else toml_value(key)} = {toml_value(value)}"


def toml_value(value: object) -> str:
    """Return a text, number, truth value or list of them as TOML; a list of more than 100 characters by the line.

    Examples
    --------
    >>> print(toml_value(["a", 1.5, True]), toml_value(float("-inf")))
    ["a", 1.5, true] -inf
    """
    if isinstance(value, Sequence) and not isinstance(value, str):
        items = [toml_value(item) for item in value]
        line = f"[{', '.join(items)}]"
        return line if len(line) <= 100 else "[\n" + "".join(f"    {item},\n" for item in items) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    # JSON writes texts, finite numbers and truth values as TOML does, but for one control character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
