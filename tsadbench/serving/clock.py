"""Times of rows that come bit by bit: read as a data set's card reads them, and written for people."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np

from tsadbench.base.file_format import FileFormat
from tsadbench.serving.row_error import Flaw
from tsadbench.utils.arrays import FloatArray

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = timedelta(seconds=1)
_UNITS = {"seconds": 1.0, "milliseconds": 1e-3}


class Clock:
    """Reads times; they may repeat, but not run backwards.

    Parameters
    ----------
    layout
        Says how they are written.
    """

    def __init__(self, layout: FileFormat) -> None:
        self._layout = layout
        self._form: str | None = None
        self._last = -np.inf

    def seconds(self, texts: Sequence[str]) -> tuple[FloatArray, Flaw | None]:
        """Return the next rows' times in seconds since 1970, UTC where no zone is named, and the first that is none."""
        if texts and self._form is None:
            fitting = (form for form in self._layout.time_formats if np.isfinite(parse(texts[0], form)))
            self._form = next(fitting, self._layout.time_formats[0])
        form, times = self._form or "", np.empty(len(texts))
        for row, text in enumerate(texts):
            times[row] = time = parse(text, form)
            if not np.isfinite(time):
                expected = f"expected a time written as {form}, found {text[:40]!r}; give --time-format"
                return times, Flaw(row, expected)
            if time < self._last:
                return times, Flaw(row, "the time lies before that of the row above; sort the rows by time")
            self._last = time
        return times, None


def parse(text: str, form: str) -> float:
    """Return a time in seconds since 1970; NaN for what is no time in this format.

    Parameters
    ----------
    text, form
        As a card has them. What the standard library does not read, a data set's own reader decides.

    Examples
    --------
    >>> parse("1970-01-01 00:01:00", "ISO8601"), parse("02.01.1970", "%d.%m.%Y"), parse("1500", "milliseconds")
    (60.0, 86400.0, 1.5)
    """
    try:
        if form in _UNITS:
            return float(text) * _UNITS[form]
        time = datetime.fromisoformat(text) if form == "ISO8601" else datetime.strptime(text, form)
    except ValueError:
        return _parse_slowly(text, form)
    return ((time if time.tzinfo else time.replace(tzinfo=UTC)) - _EPOCH) / _SECOND


def written(seconds: float) -> str:
    """Return a time for people: ISO 8601 in UTC, or the number where it is no date of the calendar.

    Examples
    --------
    >>> written(60.0), written(0.25), written(1e300)
    ('1970-01-01T00:01:00', '1970-01-01T00:00:00.250000', '1e+300')
    """
    try:
        return (_EPOCH + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat()
    except OverflowError:
        return repr(seconds)


def _parse_slowly(text: str, form: str) -> float:
    import pandas as pd

    from tsadbench.datasets.cards.contents import time_in_seconds

    return float(time_in_seconds(pd.Series([text], dtype="str"), form)[0])
