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

from tsadbench.utils.bounded_files import read_text
from tsadbench.utils.issues import Issue
from tsadbench.utils.parameters import nearest

# For the model of a table: no key but its fields, no value but of their types.
TABLE = ConfigDict(extra="forbid", strict=True, frozen=True)
# The key in pydantic's context for the folder that paths in a file are relative to.
FOLDER = "folder"

_MOST_BYTES = 2**22
# Parts of a key, faults that are listed, and characters of a value that a message shows.
_MOST_PARTS, _MOST_FAULTS, _LONGEST = 32, 100, 200

_Model = TypeVar("_Model", bound=BaseModel)


def read_toml(path: Path, model: type[_Model], whole: str, advice: str) -> tuple[_Model | None, str, list[Issue]]:
    """Read a TOML file and validate it.

    Parameters
    ----------
    path
        The file.
    model
        The keys that it may have, and their types.
    whole
        What messages call all of it ("the card").
    advice
        What to do if there is no such file.

    Returns
    -------
    tuple
        The content, None if it cannot be read or a value is invalid; the file's text; what is wrong with it. Unknown
        keys are issues, but do not prevent reading the others.
    """
    text, issues = "", list[Issue]()
    try:
        text = read_text(path, _MOST_BYTES)
        if any(map(_is_deep, text.splitlines())):
            raise RecursionError
        content = tomllib.loads(text)
    except FileNotFoundError:
        issues.append(Issue(str(path), f"there is no such file; {advice}"))
    except OSError as error:
        issues.append(
            Issue(str(path), f"cannot be read ({error.strerror or error}); check the path and its permissions")
        )
    except UnicodeDecodeError:
        issues.append(Issue(path.name, "expected UTF-8; save the file in that encoding"))
    except tomllib.TOMLDecodeError as error:
        at = re.search(r"at line (\d+)", str(error))
        issues.append(Issue(path.name, f"not TOML: {error}", int(at[1]) if at else None))
    except ValueError:  # Python reads no integer of more than 4,300 digits
        issues.append(Issue(path.name, "not TOML: a number has too many digits; shorten it"))
    except RecursionError:
        issues.append(Issue(path.name, "not TOML: its tables or lists are nested too deeply; make it flat"))
    else:
        return _validated(content, model, text, path, whole)
    return None, text, issues


def _is_deep(line: str) -> bool:
    """Whether a line may hold a key of very many parts, a.a.a.a, for which the standard library takes very long."""
    if line.count(".") <= _MOST_PARTS:
        return False
    words = re.split(r"[,=\[\]{}]", re.sub(r"[ \t\"']|\.{2,}", "", line))
    return max(word.count(".") for word in words) > _MOST_PARTS


def _validated(
    content: dict[str, Any], model: type[_Model], text: str, path: Path, whole: str
) -> tuple[_Model | None, str, list[Issue]]:
    issues: list[Issue] = []
    file, context = path.name, {FOLDER: path.parent}
    try:
        return model.model_validate(content, context=context), text, issues
    except ValidationError as error:
        faults = [(fault, _keys(fault["loc"], content) or (whole,)) for fault in error.errors()]
    unknown = [keys for fault, keys in faults if fault["type"] == "extra_forbidden"]
    for fault, keys in faults[:_MOST_FAULTS]:
        if fault["type"] == "extra_forbidden":
            reason = f"unknown key {dotted(keys)}{nearest(keys[-1], _known(model, keys))}"
        else:
            reason = f"{dotted(keys)}: {fault_text(fault)}"
        issues.append(Issue(file, reason, line_of(text, keys)))
    if len(faults) > _MOST_FAULTS:
        issues.append(Issue(file, f"{len(faults) - _MOST_FAULTS} more values or keys are wrong"))
    if len(unknown) < len(faults):
        return None, text, issues
    for keys in unknown:
        _remove(content, keys)
    return model.model_validate(content, context=context), text, issues


def dotted(keys: tuple[str, ...]) -> str:
    """Return a key with the tables that it stands in, as TOML writes it."""
    return ".".join(keys)


def line_of(text: str, keys: tuple[str, ...]) -> int | None:
    """Return the line, counted from 1, of a key, or else of its table."""
    table, table_line = "", None
    for number, line in enumerate(text.splitlines(), start=1):
        head = re.match(r"\s*\[\s*([^\[\]]+?)\s*\]", line)
        if head:
            table = _unquoted(head[1])
            if (table,) == keys[:1]:
                table_line = table_line or number
            if table == dotted(keys):
                return number
        name = re.match(r"\s*([^#=\[\]]+?)\s*=", line)
        if name and dotted(((table,) if table else ()) + (_unquoted(name[1]),)) == dotted(keys):
            return number
    return table_line


def _unquoted(name: str) -> str:
    return name.replace('"', "").replace("'", "")


def _keys(location: tuple[int | str, ...], content: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a location without what pydantic adds to it: the names of the types that a value might have had."""
    keys: list[str] = []
    value: object = content
    for part in location:
        if not (isinstance(part, str) and isinstance(value, dict)):
            break
        keys.append(part)
        value = value.get(part)
    return tuple(keys)


def _known(model: type[BaseModel], keys: tuple[str, ...]) -> tuple[str, ...]:
    """Return the keys that are allowed in the table of the last of these keys."""
    for key in keys[:-1]:
        annotation = model.model_fields[key].annotation
        model = next(
            table for table in (annotation, *get_args(annotation)) if isinstance(table, type) and table is not dict
        )
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
    found = f", found {found_text(fault['input'])}"
    if fault["type"] == "too_short":
        return f"expected at least 1 item{found}"
    if not text.startswith("Input should be "):
        return f"{text[0].lower()}{text[1:]}{found}"
    kind = re.sub(r"^(an? )?(valid )?", "", text.removeprefix("Input should be "))
    kind = re.sub(r"^(?=greater|less)", "number ", kind)
    article = "" if not kind[0].isalpha() else "an " if kind[0] in "aeiou" else "a "
    return f"expected {article}{kind}{found}"


def found_text(value: object) -> str:
    """Return what a message says was found: the beginning of a value, or the type of a frame and the like.

    Examples
    --------
    >>> import numpy as np
    >>> found_text("skabb"), found_text(np.zeros((2, 2)))
    ("'skabb'", 'ndarray')
    """
    whole = repr(str(value) if isinstance(value, Path) else value)
    if "\n" in whole:
        return type(value).__name__
    return whole if len(whole) <= _LONGEST else f"{whole[:_LONGEST]}..."


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
