"""Missing values: an error, or the sensor's last value is carried forward, as the file format says."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tsadbench.base.file_format import FileFormat
from tsadbench.utils.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Gap:
    """Missing values of a sensor that may not be filled.

    Parameters
    ----------
    sensor, row
        Number of the sensor, and the row, counted from the first of those handed in, that breaks the rule.
    text
        The rule.
    count
        How many of its values are missing.
    """

    sensor: int
    row: int
    text: str
    count: int


class CarryForward:
    """Fills the missing values of one recording with earlier ones, never with later ones.

    Parameters
    ----------
    file_format
        Says whether that is allowed, and over how many rows.
    n_sensors
        Number of columns.
    """

    def __init__(self, file_format: FileFormat, n_sensors: int) -> None:
        self.n_filled = 0
        self._format = file_format
        self._last = np.full(n_sensors, np.nan)
        # How many rows up to the last one have had no value of their own.
        self._since = np.zeros(n_sensors, dtype=np.int64)

    def fill(self, values: FloatArray) -> list[Gap]:
        """Fill missing values (NaN) of the recording's next rows [n_rows, n_sensors] in place; return the others."""
        if len(values) == 0:
            return []
        refused: list[Gap] = []
        rows, since_last = np.arange(len(values)), np.zeros_like(self._since)
        for sensor in map(int, np.flatnonzero(np.isnan(values).any(axis=0))):
            gaps = np.isnan(values[:, sensor])
            # The row of the sensor's last value; -1 if it is among the rows of earlier calls.
            last_row = np.maximum.accumulate(np.where(gaps, -1, rows))
            since = rows - last_row + np.where(last_row < 0, self._since[sensor], 0)
            since_last[sensor] = since[-1]
            count, at_most = int(np.count_nonzero(gaps)), self._format.fill_at_most
            if self._format.fill == "error":
                advice = 'fill it in, ignore the column, or set gaps.policy = "forward-fill" or "cut"'
                refused.append(Gap(sensor, int(np.argmax(gaps)), f"a value is missing; {advice}", count))
            elif gaps[0] and np.isnan(self._last[sensor]):
                advice = "nothing lies before it to be carried forward; cut such rows off"
                refused.append(Gap(sensor, 0, f"the first value is missing, and {advice}", count))
            elif at_most is not None and since.max() > at_most:
                text = f"more than {at_most} values in a row are missing (gaps.at_most)"
                # Up to there they are filled: rows that arrive one by one are answered until then.
                row = int(np.argmax(since > at_most))
                _fill(values[:row, sensor], gaps[:row], last_row[:row], self._last[sensor])
                refused.append(Gap(sensor, row, text, count))
            else:
                _fill(values[:, sensor], gaps, last_row, self._last[sensor])
                self.n_filled += count
        self._last, self._since = values[-1].copy(), since_last
        return refused


def _fill(column: FloatArray, gaps: BoolArray, last_row: IntArray, last: float) -> None:
    column[gaps] = np.where(last_row < 0, last, column[np.maximum(last_row, 0)])[gaps]
