"""The line that names the columns: which of them are the model's sensors, and why it does not do where it does not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from tsadbench.base.file_format import FileFormat
from tsadbench.datasets.cards.columns import cleaned, matches
from tsadbench.datasets.cards.csv import SEPARATORS, split

# A unit at a name's end: "Pressure [bar]", "Pressure (bar)".
_UNIT = re.compile(r"\s*(?:\[[^\[\]]*\]|\([^()]*\))$")


@dataclass(frozen=True, slots=True)
class Header:
    """Where a recording has what a model needs: numbers of columns, counted from 0.

    Parameters
    ----------
    line
        Its number, counted from 1.
    n_columns
        How many cells each line must have.
    sensors
        In the model's order.
    time
        The columns whose texts make up a time; none where there is none.
    faults
        Why it does not do; then nothing else holds.
    notes
        What a user should know: another order, columns that are not used.
    """

    line: int
    n_columns: int
    sensors: tuple[int, ...] = ()
    time: tuple[int, ...] = ()
    faults: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def read_header(
    lines: Sequence[str], layout: FileFormat, sensors: Sequence[str], *, last: bool = False
) -> Header | None:
    """Return the header that the first lines hold; None where more lines are needed to tell.

    Parameters
    ----------
    lines
        The first lines.
    layout, sensors
        How the recording is written; the model's sensors.
    last
        Whether there will be no more lines.
    """
    if layout.header_line == "search":
        named = [(number, _names(line, layout)) for number, line in enumerate(lines, start=1)]
        complete = [(number, names) for number, names in named if set(sensors) <= set(names)]
        if complete:
            number, names = complete[0]
            return match(names, layout, sensors, number)
        unnamed = f"none of its first {len(lines)} lines names all sensors of the model, {list(sensors)}"
        return Header(0, 0, faults=(unnamed,)) if last and lines else None
    if len(lines) >= layout.header_line:
        line = lines[layout.header_line - 1]
        fault = _separator_fault(line, layout, len(sensors))
        if fault is not None:
            return Header(0, 0, faults=(fault,))
        return match(_names(line, layout), layout, sensors, layout.header_line)
    return (
        Header(0, 0, faults=(f"expected the columns' names on line {layout.header_line}",)) if last and lines else None
    )


def match(names: Sequence[str], layout: FileFormat, sensors: Sequence[str], line: int) -> Header:
    """Return where columns of these names have what a model needs.

    Parameters
    ----------
    names
        The columns' names.
    layout, sensors
        How the recording is written; the model's sensors.
    line
        Number of the header's line.
    """
    faults = tuple(_faults(names, sensors, layout))
    if faults:
        return Header(line, len(names), faults=faults)
    place = {name: number for number, name in enumerate(names)}
    time = tuple(place[name] for name in layout.time) if set(layout.time) <= set(names) else ()
    found = tuple(place[name] for name in sensors)
    return Header(line, len(names), found, time, notes=tuple(_notes(names, found, time, layout)))


def _faults(names: Sequence[str], sensors: Sequence[str], layout: FileFormat) -> Iterable[str]:
    missing = [name for name in sensors if name not in names]
    if missing and _all_numbers(names):
        yield "expected a line that names the columns, found numbers; put the sensors' names above the rows"
        return
    others = tuple(name for name in names if name and name not in sensors)
    for name in missing:
        unit = next((other for other in others if _base(other) == _base(name)), None)
        if unit is not None:
            yield (
                f"the model was fitted on {name!r}, found {unit!r}: the units differ; convert the column and name it "
                f"as the model does"
            )
        else:
            close = get_close_matches(name, others, n=1)
            yield f"the sensor {name!r} is missing" + (f"; did you mean {close[0]!r}?" if close else "")
    if missing:
        yield f"the file's columns are {', '.join(map(repr, names))}"
    for name in dict.fromkeys([*sensors, *layout.time]):
        if names.count(name) > 1:
            yield f"the column {name!r} occurs twice; remove or rename one"


def _notes(names: Sequence[str], sensors: tuple[int, ...], time: tuple[int, ...], layout: FileFormat) -> Iterable[str]:
    if list(sensors) != sorted(sensors):
        yield "its sensors stand in another order than when the model was fitted; they are taken by their names"
    lacking = [name for name in layout.time if name not in names]
    if lacking:
        yield f"it has no column {lacking[0]!r} with times; rows are numbered in their place"
    used = {*sensors, *time}
    unused = [
        name
        for number, name in enumerate(names)
        if name and number not in used and name not in layout.time and not matches(name, layout.unused)
    ]
    if unused:
        shown = ", ".join(map(repr, unused[:5])) + (f" and {len(unused) - 5} more" if len(unused) > 5 else "")
        yield f"columns that the model does not know are not used: {shown}"


def _separator_fault(line: str, layout: FileFormat, n_sensors: int) -> str | None:
    if layout.separator in line or n_sensors == 1:
        return None
    other = max((one for one in SEPARATORS if one != layout.separator), key=line.count)
    if other not in line:
        return None
    return f"expected columns separated by {layout.separator!r}, but {other!r} seems to be used; give --separator"


def _names(line: str, layout: FileFormat) -> list[str]:
    """Return the columns' names as a card knows them: without spaces around them, without the card's prefix."""
    return cleaned(split(line, layout.separator), layout.remove_prefix)


def _base(name: str) -> str:
    return _UNIT.sub("", name).strip().lower()


def _all_numbers(names: Sequence[str]) -> bool:
    return all(_is_number(name) for name in names if name)


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True
