"""Ranges that the user names: ``NAME.parameter=LOW:HIGH``, ``LOW:HIGH:log`` or ``A|B|...``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from tsadbench.base.search_space import Choice, Space, Tune, Value
from tsadbench.errors import UsageError
from tsadbench.execution.plan import Contender
from tsadbench.sandbox import asking, describe
from tsadbench.utils.parameters import JsonValue, nearest

# The user decides these for a run; they are not part of a detector's design.
NEVER_SEARCHED = frozenset({"seed", "device", "prior"})
FORMS = "LOW:HIGH, LOW:HIGH:log or A|B|..."


def read_ranges(ranges: Sequence[str], contender: Contender, sensors: tuple[str, ...]) -> dict[str, Space]:
    """Return the search space of each parameter that a range names.

    Bounds and choices are read as ``NAME[key=value]`` would be, by the parameter's type; the detector has to accept
    each of them. A range holds integers if both bounds are integers, else real numbers. A UsageError that begins with
    the range if one is malformed, names a parameter that cannot be searched, or has a value that the detector rejects.
    """
    space: dict[str, Space] = {}
    with asking():
        for text in ranges:
            try:
                parameter, values = _parts(text, contender, space)
                space[parameter] = _space(parameter, values, contender, sensors)
            except UsageError as error:
                raise UsageError(f"--range {text}: {error}") from error
    return space


def _parts(text: str, contender: Contender, earlier: dict[str, Space]) -> tuple[str, str]:
    """Return the parameter and its values."""
    path, _, values = text.partition("=")
    name, _, parameter = (part.strip() for part in path.rpartition("."))
    if not (name and parameter and values.strip()):
        raise UsageError(f"expected NAME.parameter={FORMS}")
    if name != contender.name:
        raise UsageError(f"the detector is {contender.name}: write {contender.name}.{parameter}=...")
    if parameter in {*NEVER_SEARCHED, *contender.construction.given, *earlier}:
        raise UsageError(f"{parameter!r} is not searched, or set by the brackets or another range; leave one out")
    known = contender.description.defaults.keys() - NEVER_SEARCHED
    if parameter not in known:
        raise UsageError(f"{name} has no parameter {parameter!r}{nearest(parameter, known)}")
    return parameter, values.strip()


def _space(parameter: str, values: str, contender: Contender, sensors: tuple[str, ...]) -> Space:
    declared = contender.description.search_space.get(parameter)
    alters_loss = declared is None or declared.alters_loss

    def read(text: str) -> JsonValue:
        at = replace(contender.construction, texts={**contender.construction.texts, parameter: text.strip()})
        return describe(at, sensors=sensors).values[parameter]

    if "|" in values:
        choices = [read(text) for text in values.split("|")]
        if any(isinstance(choice, list | dict) for choice in choices):
            raise UsageError("a choice is a number, a text, true, false or none; lists cannot be searched")
        return Choice(tuple(cast("list[Value]", choices)), alters_loss)
    low, _, rest = values.partition(":")
    high, _, scale = rest.partition(":")
    if not high.strip() or scale.strip() not in ("", "log"):
        raise UsageError(f"expected {FORMS}, found {values!r}")
    bounds = [read(low), read(high)]
    if not all(isinstance(bound, int | float) and not isinstance(bound, bool) for bound in bounds):
        raise UsageError(f"expected numbers as bounds, found {low!r} and {high!r}; choices are written A|B|...")
    first, last = cast("list[float]", bounds)
    return Tune(first, last, scale.strip() == "log", alters_loss)
