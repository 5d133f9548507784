"""Parse times of rows as seconds since 1970 (UTC unless a zone is given), and map rows to regular grids."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from tsadbench.utils.arrays import FloatArray, IntArray

# The range of 64-bit nanoseconds. Outside are cells such as "-2", which ISO 8601 reads as a year.
_COUNTED = pd.Timestamp.min.tz_localize("UTC"), pd.Timestamp.max.tz_localize("UTC")
_UNITS = {"seconds": 1.0, "milliseconds": 1e-3}
# A grid with more rows than this, and this many times more than the file, means a wrong time.
_MOST_ROWS, _MOST_TIMES_MORE = 1_000_000, 1_000


def time_in_seconds(cells: pd.Series, form: str) -> FloatArray:
    """Return times in seconds since 1970 [n_rows]; NaN where a cell does not fit the format or is centuries away."""
    if pd.api.types.is_datetime64_any_dtype(cells.dtype):
        times = pd.to_datetime(cells, utc=True)
    elif form in _UNITS:
        seconds = pd.to_numeric(cells, errors="coerce").to_numpy(np.float64, na_value=np.nan) * _UNITS[form]
        return np.where(np.abs(seconds) < _COUNTED[1].timestamp(), seconds, np.nan)
    else:
        times = pd.to_datetime(cells.astype("str").str.strip(), format=form, errors="coerce", utc=True)
    times = times.where(times.between(*_COUNTED))
    since_1970 = (times - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(seconds=1)
    return np.asarray(since_1970.to_numpy(np.float64, na_value=np.nan), dtype=np.float64)


def are_dates(forms: Sequence[str]) -> bool:
    """Whether times are written as dates and must be read as text: 01052024 is no number."""
    return not _UNITS.keys() >= {*forms}


def joined(frame: pd.DataFrame, names: Sequence[str]) -> pd.Series:
    """Return the cells of the columns that make up a time, separated by a space."""
    texts = frame[names[0]]
    for name in names[1:]:
        texts = texts.astype("str").str.strip() + " " + frame[name].astype("str").str.strip()
    return texts


def fitting_times(cells: pd.Series, forms: Sequence[str]) -> tuple[FloatArray, str]:
    """Return times [n_rows] in the format that fits most cells, and this format; NaN as in `time_in_seconds`."""
    best, most = (np.empty(0), ""), -1
    for form in forms:
        seconds = time_in_seconds(cells, form)
        if (n_read := int(np.isfinite(seconds).sum())) > most:
            best, most = (seconds, form), n_read
        if most == len(cells):
            break
    return best


def time_fault(cell: object, forms: Sequence[str]) -> str:
    """Return the message for a cell without a valid time."""
    return f"expected a time written as {' or '.join(forms)}, found {str(cell)[:40]!r}; correct it, or set time_format"


def grid_rows(time: FloatArray, every: float, *, held: bool) -> IntArray:
    """Return the number of the grid row of each row, given ascending times in seconds.

    ``held``: rows are changes of a value, without a time step. Raises a ValueError if the rows do not fit the grid.
    """
    step = float(np.median(np.diff(time))) if len(time) > 1 else 0.0
    if not held and every < 0.99 * step:
        raise ValueError(f"resample.every is {every:g} s, but rows are {step:g} s apart; set it to at least that")
    n_rows = (float(time[-1]) - float(time[0])) / every + 1.0
    if n_rows > max(_MOST_ROWS, _MOST_TIMES_MORE * len(time)):
        raise ValueError(f"resample.every = {every:g} s makes {n_rows:,.0f} rows of {len(time):,}; check this time")
    # Floating-point seconds are inexact by up to one ulp: a row on a border must count to the grid row after it.
    tolerance = 1e-9 + 2.0 * np.spacing(np.abs(time).max()) / every
    return np.asarray(np.floor((time - time[0]) / every + tolerance), dtype=np.int64)
