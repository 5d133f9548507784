"""The constructor of a detector that wraps another library's class: the parameters that it offers, with their types.

The libraries' signatures have no annotations. A parameter's types are that of its default and those that the class's
numpydoc text names; a set of strings in braces is a choice. What no text can express (an estimator, a callable, an
array, a dictionary) is not offered and keeps its default.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Iterator
from functools import reduce
from operator import or_
from typing import Literal

# Decided elsewhere or of no use here: thresholds by the protocol, threads by the trial, randomness by the seed.
WITHHELD = frozenset(
    {
        *("contamination", "novelty", "n_jobs", "parallel_execution", "device", "verbose", "random_state"),
        *("random_seed", "warm_start", "copy", "copy_X", "check_estimator", "use_compile", "compile_mode"),
    }
)
_SEEDS = ("random_state", "random_seed")
_TYPES: dict[str, type] = {
    "bool": bool,
    "boolean": bool,
    "int": int,
    "integer": int,
    "float": float,
    "str": str,
    "string": str,
    "list": list,
}
_OWN = """window
    Rows of the trailing window that a score answers for, at least 1; a window's score goes to its last row.
{seed}"""
_SEED = """seed
    Of all chance in it, at least 0 and below 2^32.
"""


def seed_name(foreign: type) -> str | None:
    """Return the name of the parameter that seeds a class; None if it has none."""
    parameters = inspect.signature(foreign).parameters
    return next((name for name in _SEEDS if name in parameters), None)


def constructor(foreign: type, *, seeded: bool, withheld: Collection[str] = ()) -> Callable[..., None]:
    """Return an ``__init__`` that stores ``window``, ``seed`` and the class's own parameters, and does nothing else.

    Parameters
    ----------
    foreign
        The library's class.
    seeded
        Whether there is chance in it, so that it takes a seed.
    withheld
        Parameters that are not offered, beside `WITHHELD`.
    """
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter("window", keyword, default=1, annotation=int), *_offered(foreign, withheld)]
    if seeded:
        parameters.append(inspect.Parameter("seed", keyword, default=0, annotation=int))
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    signature = inspect.Signature([itself, *parameters])

    def __init__(self: object, **arguments: object) -> None:  # noqa: N807 - it becomes one
        bound = signature.bind(self, **arguments)
        bound.apply_defaults()
        for parameter in parameters:
            setattr(self, parameter.name, bound.arguments[parameter.name])

    __init__.__signature__ = signature  # type: ignore[attr-defined]  # inspect looks for it
    __init__.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return __init__


def documentation(foreign: type, *, seeded: bool) -> str:
    """Return the class's own numpydoc text, with our parameters before its own."""
    text = inspect.getdoc(foreign) or ""
    own = _OWN.format(seed=_SEED if seeded else "")
    before, *rest = re.split(r"^Parameters\n-+\n", text, maxsplit=1, flags=re.MULTILINE)
    return f"{before.strip()}\n\nParameters\n----------\n{own}{''.join(rest)}"


def _offered(foreign: type, withheld: Collection[str]) -> Iterator[inspect.Parameter]:
    text = inspect.getdoc(foreign) or ""
    for name, parameter in inspect.signature(foreign).parameters.items():
        if name in WITHHELD or name in withheld or parameter.default is parameter.empty:
            continue
        annotation = _annotation(parameter.default, _declared(name, text))
        if annotation is not None:
            yield parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=annotation)


def _declared(name: str, text: str) -> str:
    """Return the type that the class's text declares for a parameter, without defaults and remarks."""
    line = re.search(rf"^\s*{name}\s*:\s*(.*)$", text, re.MULTILINE)
    return re.split(r",?\s*(?:\(?default|optional)", line.group(1), maxsplit=1)[0] if line else ""


def _annotation(default: object, declared: str) -> object:
    """Return the type, or the union of types, that a value may have; None if no text can express a value."""
    words = set(re.findall(r"[a-z]+", declared.lower()))
    types = {_TYPES[word] for word in words if word in _TYPES} | ({type(default)} & set(_TYPES.values()))
    members: list[object] = [number for number in (bool, int, float) if number in types]
    choices = _choices(declared)
    if default in choices:
        members.append(Literal[choices])
    elif str in types:
        members.append(str)
    if list in types:
        members = [list[int]]  # sizes of layers: there are no others
    if not members:
        return None
    if default is None or "none" in words:
        members.append(None)
    return reduce(or_, members)


def _choices(declared: str) -> tuple[str, ...]:
    """Return the strings in braces, in their order."""
    braces = re.search(r"\{([^}]*)\}", declared)
    return tuple(re.findall(r"['\"]([^'\"]+)['\"]", braces.group(1))) if braces else ()
