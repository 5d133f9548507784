"""Times of rows as they arrive."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tsadbench.base.file_format import FileFormat
from tsadbench.datasets.times import BACKWARDS, time_fault, time_in_seconds
from tsadbench.utils.arrays import FloatArray


class Clock:
    """Reads times as they arrive, in the first format that fits the first row.

    They may repeat, but not run backwards.
    """

    def __init__(self, file_format: FileFormat) -> None:
        self._forms = file_format.time_formats
        self._form: str | None = None
        self._last = -np.inf

    def seconds(self, cells: pd.Series) -> tuple[FloatArray, tuple[int, str] | None]:
        """Return the next rows' times, and the first row that is wrong, with what is wrong with it."""
        if len(cells) == 0:
            return np.empty(0), None
        if self._form is None:
            fitting = (form for form in self._forms if np.isfinite(time_in_seconds(cells.iloc[:1], form)[0]))
            self._form = next(fitting, self._forms[0])
        seconds = time_in_seconds(cells, self._form)
        no_time = ~np.isfinite(seconds)
        wrong = np.flatnonzero(no_time | (np.diff(seconds, prepend=self._last) < 0))
        if len(wrong) == 0:
            self._last = seconds[-1]
            return seconds, None
        row = int(wrong[0])
        return seconds, (row, time_fault(cells.iloc[row], [self._form]) if no_time[row] else BACKWARDS)
