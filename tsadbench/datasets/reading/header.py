"""Headers: find the line that names the columns, and match its names to those that are expected."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from tsadbench.base.file_format import FileFormat
from tsadbench.datasets.reading.cells import as_number
from tsadbench.datasets.reading.text import SEARCHED_LINES, SEPARATORS, MalformedError, names_in
from tsadbench.utils.parameters import nearest

# A unit at a name's end: "Pressure [bar]", "Pressure (bar)".
_PATTERN = re.compile(r"[*?\[]")
# Faults of one kind that are named, and among how many columns a similar name is searched for: that takes long.
_SHOWN = 20
_SEARCHED_NAMES = 1000
_UNIT = re.compile(r"\s*(?:\[[^\[\]]*\]|\([^()]*\))$")


def lines_needed(file_format: FileFormat) -> int:
    """Return how many of the first lines decide where the header is."""
    return SEARCHED_LINES if file_format.header_line == "search" else file_format.header_line


def find_header(
    lines: Sequence[str], file_format: FileFormat, has_all: Callable[[list[str]], bool], *, one_column: bool = False
) -> tuple[int, list[str]] | None:
    """Return the number of the header line, counted from 1, and the names in it; None if these lines do not hold it.

    A MalformedError if the line is empty, or another separator seems to be used.
    """
    if file_format.header_line == "search":
        named = ((number, names_in(line, file_format)) for number, line in enumerate(lines[:SEARCHED_LINES], start=1))
        return next(((number, names) for number, names in named if has_all(names)), None)
    number, separator = file_format.header_line, file_format.separator
    if len(lines) < number:
        return None
    line = lines[number - 1]
    if not line.strip():
        raise MalformedError("expected the columns' names, found an empty line", number)
    other = max(SEPARATORS.replace(separator, ""), key=line.count)
    if separator not in line and other in line and not one_column:
        text = f"expected columns separated by {separator!r}, but {other!r} seems to be used; set separator"
        raise MalformedError(text, number)
    return number, names_in(line, file_format)


def no_header(file_format: FileFormat, lines: Sequence[str]) -> str:
    """Return the message for a file whose lines hold no header."""
    if not lines:
        return "it is empty; expected a line with the columns' names, and rows"
    if file_format.header_line == "search":
        count = min(len(lines), SEARCHED_LINES)
        return f"none of its first {count} lines names all columns; set header_line, or correct the names"
    return f"expected columns' names on line {file_format.header_line}, found none"


def header_faults(names: Sequence[str], needed: Mapping[str, str], others: Iterable[str] = ()) -> Iterator[str]:
    """Yield what is wrong with a header: missing and duplicate columns."""
    counts = Counter(names)
    if any("\0" in name for name in names):
        yield "found NUL characters where the columns' names should be; if it is a table in UTF-16, save it as UTF-8"
        return
    missing = [name for name in needed if name not in counts]
    numbers = [as_number(name.replace(",", ".")) is not None for name in names if name]
    # A row of values may hold texts as well: its time, a state.
    if missing and (all(numbers) or (len(missing) == len(needed) and 2 * sum(numbers) > len(numbers))):
        yield "expected a line that names the columns, found numbers; put the columns' names above the rows"
        return
    # The first column of each name without its unit.
    units = {_without_unit(name): name for name in reversed(names) if name and name not in needed}
    for name in missing[:_SHOWN]:
        unit = units.get(_without_unit(name))
        if unit is not None and unit.casefold() == name.casefold():
            yield f"expected the {needed[name]} {name!r}, found {unit!r}: capital and small letters differ; rename it"
        elif unit is not None:
            yield f"expected the {needed[name]} {name!r}, found {unit!r}: the units differ; convert and rename it"
        else:
            known = nearest(name, tuple(names)) if len(names) <= _SEARCHED_NAMES else f" among {len(names)} columns"
            yield f"the {needed[name]} {name!r} is missing{known}"
    twice = [name for name in dict.fromkeys([*needed, *others]) if counts[name] > 1]
    for name in twice[:_SHOWN]:
        yield f"the column {name!r} occurs twice; remove or rename one"
    for more, fault in ((len(missing) - _SHOWN, "missing"), (len(twice) - _SHOWN, "there twice")):
        if more > 0:
            yield f"{more} more columns are {fault}"


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Whether a name is one of these, or fits one of them as a pattern."""
    return any(name == pattern or fnmatchcase(name, pattern) for pattern in patterns)


def matching(names: Iterable[str], patterns: Iterable[str]) -> list[str]:
    """Return the names that are one of these, or fit one of them as a pattern; by pattern, each once.

    Examples
    --------
    >>> matching(["flow", "p1", "p2"], ["p*", "flow"])
    ['p1', 'p2', 'flow']
    """
    # A caller that asks for many patterns one by one passes a dictionary: copying the names each time is quadratic.
    known = names if isinstance(names, dict) else dict.fromkeys(names)
    found = (
        [name for name in known if matches(name, [pattern])]
        if _PATTERN.search(pattern)
        else [pattern] * (pattern in known)  # most are plain names, and there may be very many
        for pattern in patterns
    )
    return list(dict.fromkeys(itertools.chain.from_iterable(found)))


def _without_unit(name: str) -> str:
    return _UNIT.sub("", name).strip().lower()
