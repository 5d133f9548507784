"""States: texts in a sensor's cells, such as Open and Closed, that stand for numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tsadbench.base.file_format import FileFormat
from tsadbench.datasets.reading.cells import MISSING
from tsadbench.datasets.reading.header import matches

_SHOWN = 10


def states_of(file_format: FileFormat, sensor: str) -> dict[str, float]:
    """Return the numbers that stand for texts in a sensor's cells; of two patterns that fit it, the first decides.

    Examples
    --------
    >>> plant = FileFormat(states=(("valve*", (("Open", 1.0), ("Closed", 0.0))), ("*", (("Open", 9.0), ("Off", 2.0)))))
    >>> states_of(plant, "valve 1")
    {'Open': 1.0, 'Closed': 0.0, 'Off': 2.0}
    """
    found: dict[str, float] = {}
    for pattern, codes in file_format.states:
        if matches(sensor, [pattern]):
            for text, code in codes:
                found.setdefault(text, code)
    return found


def texts_in(file_format: FileFormat, header: Sequence[str]) -> dict[int, frozenset[str]]:
    """Return the columns, counted from 0, whose cells are texts whatever they look like.

    Each comes with those of its texts that do not mean a missing value, although they do elsewhere.
    """
    if file_format.long is None:
        found = {column: frozenset(states_of(file_format, name)) for column, name in enumerate(header)}
        return {column: texts for column, texts in found.items() if texts}
    name, value = file_format.long
    states = frozenset(text for _, codes in file_format.states for text, _ in codes)
    found = {column: states for column, found in enumerate(header) if found == value and states}
    # A sensor may be called NA.
    return found | {column: MISSING - {""} for column, found in enumerate(header) if found == name}


def state_fault(cell: object, states: Mapping[str, float], advice: str = "correct the cell") -> str:
    """Return the message for a cell that holds neither a number nor a declared state."""
    declared = ", ".join(map(repr, list(states)[:_SHOWN])) + (", ..." if len(states) > _SHOWN else "")
    found = str(cell).strip()[:40]
    return f"expected a number or one of the declared states {declared}, found {found!r}; {advice}"
