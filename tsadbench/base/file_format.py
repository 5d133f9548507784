"""How a file with rows of sensor values is written: what a model keeps of its data set, to read new files alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class RowLayout:
    """How a file with rows is written.

    Parameters
    ----------
    separator, decimal, encoding
        The character between two cells, the decimal mark, the encoding as Python names it.
    header_line
        Number of the line that names the columns, counted from 1, or "search": the first of ten that has them all.
    remove_prefix
        Text that is taken off the front of columns' names.
    time
        The column with the times, or several whose texts make up a time; none: rows have no time.
    time_formats
        As a card has them: "ISO8601", "seconds", "milliseconds" or formats of `datetime.strptime`, of which the first
        that fits a file's first row must fit the others.
    period
        Seconds from row to row, where no column holds times; None: not known.
    unused
        Names or patterns of columns that are neither sensors nor times, the label among them.
    fill
        Whether a missing value is an error, or filled with the sensor's last one.
    fill_at_most
        The longest run of missing values of a sensor that may be filled, in rows; None: any.
    missing
        Texts that mean a missing value, beside the empty cell, NaN, NA, NULL and the like.
    """

    separator: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    header_line: int | Literal["search"] = 1
    remove_prefix: str = ""
    time: tuple[str, ...] = ()
    time_formats: tuple[str, ...] = ("ISO8601",)
    period: float | None = None
    unused: tuple[str, ...] = ()
    fill: Literal["error", "forward-fill"] = "error"
    fill_at_most: int | None = None
    missing: tuple[str, ...] = ()
