"""Ranges that the user names: ``NAME.parameter=LOW:HIGH``, ``LOW:HIGH:log`` or ``A|B|...``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from tsadbench.base.search_space import Choice, Space, Tune, Value
from tsadbench.errors import UsageError
from tsadbench.execution.plan import Contender
from tsadbench.sandbox import asking, describe
from tsadbench.utils.parameters import JsonValue, nearest

# The user decides these, for a run; they are not part of a detector's design.
NEVER_SEARCHED = frozenset({"seed", "device", "prior"})
FORMS = "LOW:HIGH, LOW:HIGH:log or A|B|..."


def read_ranges(ranges: Sequence[str], contender: Contender, sensors: tuple[str, ...]) -> dict[str, Space]:
    """Return the search space of each parameter that a range names.

    Bounds and choices are read as ``NAME[key=value]`` would be, by the parameter's type; the detector has to accept
    each of them. A range is one of integers if both bounds are integers, else of real numbers. A UsageError if a range
    is malformed, is of another detector, names a parameter that cannot be searched or another range has named, or the
    detector rejects one of its values. The message begins with the range.
    """
    space: dict[str, Space] = {}
    if not ranges:
        return space
    with asking():
        for text in ranges:
            try:
                parameter, values = _taken_apart(text, contender)
                if parameter in space:
                    raise UsageError(f"another range names {parameter!r} as well: leave one out")
                space[parameter] = _space(parameter, values, contender, sensors)
            except UsageError as error:
                raise UsageError(f"--range {text}: {error}") from error
    return space


def _taken_apart(text: str, contender: Contender) -> tuple[str, str]:
    """Return the parameter and its values."""
    path, equals, values = text.partition("=")
    name, dot, parameter = (part.strip() for part in path.rpartition("."))
    if not (equals and dot and name and parameter and values.strip()):
        raise UsageError(f"expected NAME.parameter={FORMS}")
    if name != contender.name:
        raise UsageError(f"it is {contender.name} that is tuned: write {contender.name}.{parameter}=...")
    known = {key: None for key in contender.description.defaults if key not in NEVER_SEARCHED}
    if parameter in NEVER_SEARCHED:
        raise UsageError(f"{parameter!r} is not searched; set it in the detector's brackets or by an option")
    if parameter not in known:
        raise UsageError(f"{name} has no parameter {parameter!r}{nearest(parameter, known)}")
    if parameter in contender.construction.given:
        raise UsageError(f"{contender.label} sets {parameter!r}: leave out one of the two")
    return parameter, values.strip()


def _space(parameter: str, values: str, contender: Contender, sensors: tuple[str, ...]) -> Space:
    """Return the space that a text stands for; what held-out losses compare is the class's own word."""
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
    bounds = values.split(":")
    log = len(bounds) == 3 and bounds[2].strip() == "log"
    if not (len(bounds) == 2 or log):
        raise UsageError(f"expected {FORMS}, found {values!r}")
    low, high = (_number(read(text), text) for text in bounds[:2])
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise UsageError(f"expected finite bounds, LOW below HIGH, found {low} and {high}")
    if log and low <= 0:
        raise UsageError(f"a logarithmic scale starts above 0, found {low}")
    return Tune(low, high, log, alters_loss)


def _number(value: JsonValue, text: str) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UsageError(f"expected numbers as bounds, found {text.strip()!r}; choices are written A|B|...")
    return value
