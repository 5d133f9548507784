"""Missing values in rows that come bit by bit: an error, or the sensor's last value, as the data set's card says."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tsadbench.base.file_format import FileFormat
from tsadbench.serving.row_error import Flaw
from tsadbench.utils.arrays import FloatArray


class Filling:
    """Fills missing values by those of earlier rows, never of later ones.

    Parameters
    ----------
    layout
        Says whether that may be done, and over how many rows.
    sensors
        Names of the values' columns.
    """

    def __init__(self, layout: FileFormat, sensors: Sequence[str]) -> None:
        self._layout = layout
        self._sensors = tuple(sensors)
        self._last = np.full(len(sensors), np.nan)
        # How many rows up to the last one have had no value of their own.
        self._missing = np.zeros(len(sensors), dtype=np.int64)

    def fill(self, values: FloatArray) -> Flaw | None:
        """Fill missing values (NaN) of the next rows [n_rows, n_sensors] in place, up to the first that may not be."""
        gaps = np.isnan(values)
        next_row = 0
        for row in map(int, np.flatnonzero(gaps.any(axis=1))):
            if row > next_row:
                self._missing[:] = 0
            if row > 0:
                self._last = values[row - 1]
            self._missing = np.where(gaps[row], self._missing + 1, 0)
            for sensor in map(int, np.flatnonzero(gaps[row])):
                reason = self._reason(sensor)
                if reason is not None:
                    return Flaw(row, f"column {self._sensors[sensor]!r}: {reason}")
            values[row] = np.where(gaps[row], self._last, values[row])
            next_row = row + 1
        if len(values):
            if len(values) > next_row:
                self._missing[:] = 0
            self._last = values[-1].copy()
        return None

    def _reason(self, sensor: int) -> str | None:
        """Return why a sensor's missing value may not be filled."""
        if self._layout.fill == "error":
            return "a value is missing; fill it in, or fit on a card whose missing.policy is forward-fill"
        if np.isnan(self._last[sensor]):
            return "the first value is missing, and nothing lies before it to be carried forward; cut such rows off"
        at_most = self._layout.fill_at_most
        if at_most is not None and self._missing[sensor] > at_most:
            return f"more than {at_most} values in a row are missing (the card's missing.at_most)"
        return None
