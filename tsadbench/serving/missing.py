"""Missing values: the sensor's last value is carried forward, as far as the file format allows."""

from __future__ import annotations

import numpy as np

from tsadbench.base.file_format import FileFormat
from tsadbench.utils.arrays import FloatArray


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
        self._fills = file_format.fill == "forward-fill"
        self._at_most = file_format.fill_at_most
        self._last = np.full(n_sensors, np.nan)
        # How many rows up to the last one have had no value of their own.
        self._since = np.zeros(n_sensors, dtype=np.int64)

    def fill(self, values: FloatArray) -> None:
        """Fill missing values (NaN) of the recording's next rows [n_rows, n_sensors] in place where that is allowed."""
        if not self._fills or len(values) == 0:
            return
        rows, last, since_last = np.arange(len(values)), values[-1].copy(), np.zeros_like(self._since)
        for sensor in map(int, np.flatnonzero(np.isnan(values).any(axis=0))):
            column = values[:, sensor]
            # The row of the sensor's last value; -1 if it is among the rows of earlier calls.
            last_row = np.maximum.accumulate(np.where(np.isnan(column), -1, rows))
            since = rows - last_row + np.where(last_row < 0, self._since[sensor], 0)
            filled = np.where(last_row < 0, self._last[sensor], column[np.maximum(last_row, 0)])
            last[sensor], since_last[sensor] = filled[-1], since[-1]
            values[:, sensor] = filled if self._at_most is None else np.where(since > self._at_most, np.nan, filled)
        self._last, self._since = last, since_last
