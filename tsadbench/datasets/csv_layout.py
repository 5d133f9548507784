"""What a CSV file must look like: its separator, its columns, how its times are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tsadbench.utils.arrays import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What a CSV file must look like. Columns that it does not name may be there and are not read.

    Parameters
    ----------
    separator
        The one character between two cells. Quotes have no meaning.
    sensors
        The columns that hold the sensors' values, in the order in which they are wanted.
    time
        The column that holds the times, if there is one; they must increase from line to line.
    time_format
        How times are written: a format of `datetime.datetime.strptime`, or "ISO8601".
    label
        The column that is 1 where a row is anomalous and 0 elsewhere, if there is one.
    unread
        Further columns that must be there and are not read.
    """

    separator: str
    sensors: tuple[str, ...]
    time: str | None = None
    time_format: str = "ISO8601"
    label: str | None = None
    unread: tuple[str, ...] = ()

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns that hold numbers: the sensors, then the label."""
        return self.sensors if self.label is None else (*self.sensors, self.label)

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that must be there."""
        time = () if self.time is None else (self.time,)
        return (*time, *self.numbers, *self.unread)

    def seconds(self, cells: Sequence[str]) -> FloatArray:
        """Return the times [n_rows] in seconds since 1970 (UTC, where none is named); NaN for what is no time.

        Examples
        --------
        >>> Layout(separator=";", sensors=("x",)).seconds(["1970-01-01 00:01:00", "noon"])
        array([60., nan])
        """
        times = pd.to_datetime(pd.Series(cells, dtype="str"), format=self.time_format, errors="coerce", utc=True)
        since_1970 = (times - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(seconds=1)
        return np.asarray(since_1970, dtype=np.float64)
