"""What a drafted card may have misunderstood in the files: which columns are lost, which dates read both ways."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from tsadbench.base.file_format import FileFormat
from tsadbench.datasets.cards.look import Look
from tsadbench.datasets.reading.csv import CsvFile
from tsadbench.datasets.reading.text import first_lines, split

_GROUPED = re.compile(r"[+-]?\d{1,3}([.,' \u00a0\u202f])\d{3}(\1\d{3})*([.,]\d+)?")
_WITH_UNIT = re.compile(r"[+-]?\d+([.,]\d+)?(\s+\S|[^\W\d_]|[%°]).*")
_PART_OF_TIME = re.compile(r"\d{1,2}:\d\d(:\d\d)?.*|\d{1,4}[./-]\d{1,2}[./-]\d{1,4}.*")
_MOST_STATES = 10
_SAMPLED_LINES = 1000


def agree_on_dates(looks: Sequence[Look]) -> None:
    """Read dates that have two readings as other files of the folder are read, if these have one."""
    certain = {look.time_format for look in looks if look.time_name is not None and look.swapped is None}
    for look in looks:
        if look.swapped in certain and look.time_format not in certain:
            look.time_format = look.swapped
        if look.time_format in certain:
            look.swapped = None


def doubts(tables: Sequence[Look], *, long: bool) -> Iterable[str]:
    """Yield a sentence for each thing to decide about the columns of files; names in long tables are texts."""
    texts = {name: told for look in tables for name, told in look.texts.items()}
    sensors = {name for look in tables for name in look.sensors}
    if not long:
        for name, (example, n_distinct) in texts.items():
            yield text_doubt(name, (example, n_distinct))
    empty = dict.fromkeys(name for look in tables for name in look.of_role("empty") if name)
    if empty:
        yield f"Columns without a value at the beginning of a file are left out: {', '.join(empty)}"
    if some := dict.fromkeys(name for look in tables for name in look.sensors if not _in_all(name, tables)):
        yield f"Columns that not every file has are left out: {', '.join(some)}"
    if any(look.swapped is not None for look in tables):
        look = next(look for look in tables if look.swapped is not None)
        yield (
            f"The dates in {look.file.name} can be read with the day or with the month first: the card says "
            f"{look.time_format}; if that is wrong, set time_format = {look.swapped!r}"
        )
    for look in tables:
        for name, cell in _perhaps_grouped(look):
            if name in sensors:
                sensors.discard(name)
                yield (
                    f"Column {name!r} holds {cell} beside whole numbers: it is read as a decimal number; if it means "
                    "thousands, write the numbers without thousands separators"
                )


def _in_all(name: str, tables: Sequence[Look]) -> bool:
    return not name or all(name in look.table.header for look in tables)


def text_doubt(name: str, told: tuple[str, int]) -> str:
    """Return what may make a sensor of a column of texts."""
    example, n_distinct = told
    holds = f"Column {name!r} holds texts such as {example[:40]!r} and is left out"
    if _GROUPED.fullmatch(example):
        return holds + ": write its numbers without thousands separators to make it a sensor"
    if _PART_OF_TIME.fullmatch(example):
        return holds + ': if it is (part of) a time, name it, as in time = ["Date", "Time"], and its time_format'
    if _WITH_UNIT.fullmatch(example):
        return holds + ": write its numbers without units to make it a sensor"
    if n_distinct <= _MOST_STATES:
        return holds + ": if it is a state, take it out of ignore and give its texts numbers in [states]"
    return holds


def _perhaps_grouped(look: Look) -> Iterable[tuple[str, str]]:
    """Yield columns of numbers whose decimal mark may separate thousands: 1.234 beside 987."""
    if not isinstance(look.table, CsvFile):
        return
    header = look.table.header
    rows = _rows(look.file.path, look.file_format)
    for place, name in enumerate(header):
        cells = [row[place].strip() for row in rows if len(row) == len(header)]
        marked = [cell for cell in cells if look.file_format.decimal in cell]
        whole = [cell for cell in cells if re.fullmatch(r"[+-]?\d{3}", cell)]
        if marked and whole and all(_GROUPED.fullmatch(cell) and cell.lstrip("+-")[0] != "0" for cell in marked):
            yield name, marked[0]


def _rows(path: Path, file_format: FileFormat) -> list[list[str]]:
    lines = first_lines(path, file_format.encoding, _SAMPLED_LINES)[int(file_format.header_line) :]
    return [split(line, file_format.separator) for line in lines]
