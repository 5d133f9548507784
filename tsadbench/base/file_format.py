"""The format of a file with rows of sensor values. Models keep their data set's format for new files."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Literal, TypeAlias

from annotated_types import Ge, Interval, Len

from tsadbench.errors import UsageError

HeaderLine: TypeAlias = Annotated[int, Interval(ge=1, le=1_000_000)] | Literal["search"]
_Seconds: TypeAlias = Annotated[float, Interval(gt=0.0, lt=math.inf)]
_Finite: TypeAlias = Annotated[float, Interval(gt=-math.inf, lt=math.inf)]
TIME_FORMATS = ("ISO8601", "seconds", "milliseconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFormat:
    """The format of a file with rows of sensor values; pydantic validates it in cards and models."""

    separator: str = ","
    decimal: str = "."
    encoding: str = "utf-8"  # as Python names it
    header_line: HeaderLine = 1  # counted from 1; "search": the first of ten that names all columns
    units_line: bool = False  # skip the line of units below the header
    remove_prefix: str = ""  # prefix to remove from column names
    time: tuple[str, ...] = ()  # the columns that make up a time
    # TIME_FORMATS or formats of `datetime.strptime`: the first that fits all rows of a file, or the first of a stream.
    time_formats: Annotated[tuple[str, ...], Len(1)] = ("ISO8601",)
    period: _Seconds | None = None  # seconds per row if there is no time column
    unused: tuple[str, ...] = ()  # names or patterns of columns that are neither sensors nor times, such as labels
    fill: Literal["error", "forward-fill"] = "error"  # treatment of missing values
    fill_at_most: Annotated[int, Ge(1)] | None = None  # rows: the longest run that may be filled
    missing: tuple[str, ...] = ()  # texts of missing values, in addition to the empty cell, NaN, NA, NULL and the like
    long: tuple[str, str] | None = None  # columns with a sensor's name and value, if each row holds one value
    resample_every: _Seconds | None = None  # seconds between the rows of a regular grid
    resample_by: Literal["median", "mean", "last"] = "median"  # how values between two grid points are combined
    # Sensor name or pattern -> text in cells -> number.
    states: tuple[tuple[str, tuple[tuple[str, _Finite], ...]], ...] = ()

    def __post_init__(self) -> None:
        """Raise a UsageError if the format is impossible."""
        faults = [encoding_fault(self.encoding), *map(time_format_fault, self.time_formats)]
        if not separates(self.separator):
            faults.append(f"separator: expected one character between cells, found {self.separator!r}")
        if self.decimal not in (".", ","):
            faults.append(f"decimal: expected a point or a comma, found {self.decimal!r}")
        if self.long is not None and self.resample_every is None:
            faults.append("long: expected resample_every as well")
        if any(faults):
            raise UsageError(next(filter(None, faults)))


def separates(separator: str) -> bool:
    """Whether a text is one character that can separate cells."""
    return len(separator) == 1 and separator.splitlines() == [separator] and separator != '"'


def encoding_fault(encoding: str) -> str:
    """Return "" for a text encoding that Python knows, else a message."""
    try:
        "".encode(encoding)
    except (LookupError, ValueError):  # unknown, not a text encoding, or with a null byte
        return f"there is no encoding {encoding!r}; utf-8, cp1252 and latin-1 are usual"
    return ""


def time_format_fault(form: str) -> str:
    """Return "" for a valid time format, else a message."""
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
