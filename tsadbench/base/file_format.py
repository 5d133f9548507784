"""How a file with rows of sensor values is written. A model keeps its data set's format, to read new files alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFormat:
    """How a file with rows of sensor values is written.

    Parameters
    ----------
    separator, decimal, encoding
        The character between two cells, the decimal mark, the encoding as Python names it.
    header_line
        Number of the line that names the columns, counted from 1, or "search": the first of ten that has them all.
    remove_prefix
        Text to remove from the front of column names.
    time
        The column with the times, or several whose texts make up a time; empty if rows have no time.
    time_formats
        "ISO8601", "seconds", "milliseconds" or formats of `datetime.strptime`. A data set's file is read with the first
        that fits all of its rows; rows that arrive one by one, with the first that fits the first row.
    period
        Seconds from row to row if no column holds times; None if unknown.
    unused
        Names or patterns of columns that are neither sensors nor times, the label among them.
    fill
        Whether a missing value is an error or is replaced by the sensor's last value.
    fill_at_most
        The longest run of missing values of a sensor that may be filled, in rows; None for any.
    missing
        Texts that mean a missing value, in addition to the empty cell, NaN, NA, NULL and the like.
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
