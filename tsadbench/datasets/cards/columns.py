"""Which column is what: a card's names and patterns against the names that a file has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from tsadbench.datasets.cards.schema import Columns
from tsadbench.utils.parameters import nearest


@dataclass(frozen=True, slots=True)
class Places:
    """Where a file has what the card names: numbers of columns, counted from 0.

    Parameters
    ----------
    sensors
        In the data set's order of sensors.
    time
        The columns whose texts make up a time; none where rows have no time.
    label
        None where the file has no labels.
    """

    sensors: tuple[int, ...]
    time: tuple[int, ...]
    label: int | None

    @property
    def all(self) -> tuple[int, ...]:
        """Every column that is read."""
        return (*self.sensors, *self.time, *(() if self.label is None else (self.label,)))


def cleaned(names: Iterable[str], prefix: str) -> list[str]:
    """Return columns' names as a card knows them: without spaces around them, without the card's prefix."""
    return [name.strip().strip('"').strip().removeprefix(prefix).strip() for name in names]


def sensors_of(header: Sequence[str], columns: Columns) -> tuple[str, ...]:
    """Return the sensors of a data set from the header of its first file; named ones come in the card's order."""
    used = {*columns.times, columns.label}
    free = [name for name in header if name and name not in used and not matches(name, columns.ignore)]
    found: dict[str, None] = {}
    for pattern in columns.sensors:
        found.update(dict.fromkeys(name for name in free if matches(name, [pattern])))
    return tuple(found)


def column_faults(header: Sequence[str], sensors: Sequence[str], columns: Columns, *, needs_label: bool) -> list[str]:
    """Return why a header does not do: what is missing, what is there twice."""
    needed = [*columns.times, *([columns.label] if needs_label else []), *sensors]
    faults = [
        f"the {_role(name, columns)} {name!r} is missing{nearest(name, tuple(header))}"
        for name in needed
        if name not in header
    ]
    wanted = dict.fromkeys([*needed, columns.label])
    twice = [name for name in wanted if header.count(name) > 1]
    return [*faults, *(f"the column {name!r} occurs twice; remove or rename one" for name in twice)]


def places_of(header: Sequence[str], sensors: Sequence[str], columns: Columns) -> Places:
    """Return the places of the columns in a header without faults."""
    place = {name: number for number, name in enumerate(header)}
    return Places(
        sensors=tuple(place[name] for name in sensors),
        time=tuple(place[name] for name in columns.times),
        label=place.get(columns.label),
    )


def has_all(header: Sequence[str], columns: Columns, *, needs_label: bool) -> bool:
    """Whether this line can be the header: it has every column that the card names, and for each pattern one."""
    needed = {*columns.times, *([columns.label] if needs_label else [])}
    return needed <= set(header) and all(
        any(matches(name, [pattern]) for name in header) for pattern in columns.sensors
    )


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Whether a name is one of these, or fits one of them as a pattern."""
    return any(name == pattern or fnmatchcase(name, pattern) for pattern in patterns)


def _role(name: str, columns: Columns) -> str:
    if name in columns.times:
        return "time column"
    return "label column" if name == columns.label else "sensor"
