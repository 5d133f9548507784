"""How a file with rows of sensor values is written. A model keeps its data set's format, to read new files alike."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from tsadbench.errors import UsageError

LAST_HEADER_LINE = 1_000_000
_HEADER = f"a number from 1 to {LAST_HEADER_LINE}, or 'search'"
TIME_FORMATS = ("ISO8601", "seconds", "milliseconds")


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
    long
        The columns with a sensor's name and with its value, if each row of the file holds one value of one sensor.
    resample_every, resample_by
        Seconds from row to row of the regular grid that rows are laid on, None for none; what becomes of the values
        between two rows of it.
    states
        Names or patterns of sensors whose cells may hold texts, each with the numbers that stand for the texts.
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
    long: tuple[str, str] | None = None
    resample_every: float | None = None
    resample_by: Literal["median", "mean", "last"] = "median"
    states: tuple[tuple[str, tuple[tuple[str, float], ...]], ...] = ()

    def __post_init__(self) -> None:
        """Raise a UsageError if no file can be written so."""
        fault = encoding_fault(self.encoding) or next(filter(None, map(time_format_fault, self.time_formats)), "")
        if fault:
            raise UsageError(fault)
        for key, holds, expected in (
            ("separator", separates(self.separator), "one character between cells"),
            ("decimal", self.decimal in (".", ","), "a point or a comma"),
            ("header_line", self.header_line == "search" or 1 <= self.header_line <= LAST_HEADER_LINE, _HEADER),
            ("period", self.period is None or 0.0 < self.period < math.inf, "seconds above 0"),
            ("fill_at_most", self.fill_at_most is None or self.fill_at_most >= 1, "a number of rows from 1"),
            ("time_formats", bool(self.time_formats), "at least one"),
            ("resample_every", self.resample_every is None or 0.0 < self.resample_every < math.inf, "seconds above 0"),
            ("long", self.long is None or self.resample_every is not None, "resample_every beside it"),
            ("states", all(math.isfinite(code) for _, codes in self.states for _, code in codes), "finite numbers"),
        ):
            if not holds:
                raise UsageError(f"{key}: expected {expected}, found {getattr(self, key)!r}")


def separates(separator: str) -> bool:
    """Whether a text is one character that can stand between two cells."""
    return len(separator) == 1 and separator.splitlines() == [separator] and separator != '"'


def encoding_fault(encoding: str) -> str:
    """Return a message unless Python knows this encoding of texts."""
    try:
        "".encode(encoding)
    except (LookupError, ValueError):  # an ending of a text, a null byte
        return f"there is no encoding {encoding!r}; utf-8, cp1252 and latin-1 are usual"
    return ""


def time_format_fault(form: str) -> str:
    """Return a message unless times can be written in this format."""
    if form not in TIME_FORMATS:
        try:
            if not form.isprintable():
                raise ValueError("a control character")
            datetime.strptime(datetime(2000, 1, 2, tzinfo=UTC).strftime(form), form)
        except (ValueError, re.error) as error:
            reason = " ".join(str(error).split())[:80]
            named = ", ".join(TIME_FORMATS)
            return f"time_format: expected {named}, or a format of datetime.strptime, found {form!r} ({reason})"
    return ""
