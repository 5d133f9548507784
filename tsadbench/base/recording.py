"""A recording: one uninterrupted multivariate series, without labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tsadbench.errors import DataError
from tsadbench.utils.arrays import FloatArray, read_only

if TYPE_CHECKING:
    import pandas as pd

Series: TypeAlias = "Recording | pd.DataFrame | NDArray[np.floating | np.integer]"


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """One uninterrupted series of sensor values. It has no labels.

    Raises a DataError if shapes do not match, a value is not finite, or a sensor's name occurs twice.

    Parameters
    ----------
    id
        Name of the recording, unique in its data set.
    values
        [n_rows, n_sensors], finite. Kept as read-only float64; a writable array is copied.
    sensors
        Name of each column, unique.
    time
        [n_rows] seconds, or None. Only loaders check the order.
    """

    id: str
    values: FloatArray
    sensors: tuple[str, ...]
    time: FloatArray | None = None

    def __post_init__(self) -> None:
        where = f"recording {self.id!r}:"
        values = np.asarray(self.values, dtype=np.float64)
        sensors = tuple(self.sensors)
        if values.ndim != 2 or 0 in values.shape:
            raise DataError(f"{where} expected values [n_rows, n_sensors], at least 1 by 1, found {list(values.shape)}")
        if len(sensors) != values.shape[1]:
            raise DataError(f"{where} {values.shape[1]} columns of values, but {len(sensors)} sensor names")
        if len(set(sensors)) != len(sensors):
            twice = sorted({name for name in sensors if sensors.count(name) > 1})
            raise DataError(f"{where} sensor names must be unique, found twice: {twice}")
        bad = ~np.isfinite(values)
        if bad.any():
            row, column = (int(i) for i in np.argwhere(bad)[0])
            raise DataError(
                f"{where} values must be finite, found {values[row, column]} at row {row}, "
                f"sensor {sensors[column]!r} ({int(bad.sum())} in all); fill or drop missing values first"
            )
        object.__setattr__(self, "values", read_only(values))
        object.__setattr__(self, "sensors", sensors)
        if self.time is not None:
            time = np.asarray(self.time, dtype=np.float64)
            if time.shape != (values.shape[0],):
                raise DataError(f"{where} expected one time a row, [{len(values)}], found shape {list(time.shape)}")
            object.__setattr__(self, "time", read_only(time))

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.values.shape[0])

    @property
    def n_sensors(self) -> int:
        """Number of sensors."""
        return int(self.values.shape[1])

    def rows(self, start: int, stop: int, id: str | None = None) -> Recording:  # noqa: A002 - the field's name
        """Return rows ``start`` to ``stop - 1`` as a recording; the values are not copied."""
        time = None if self.time is None else self.time[start:stop]
        return Recording(self.id if id is None else id, self.values[start:stop], self.sensors, time)

    @classmethod
    def from_frame(cls, frame: pd.DataFrame, id: str = "recording") -> Recording:  # noqa: A002
        """Make a recording from a data frame: columns are sensors, a date or time index becomes seconds.

        A ``DatetimeIndex`` gives seconds since 1970, a ``TimedeltaIndex`` seconds; any other index gives no time.
        Raises a DataError if a column is not numeric or a value is missing.

        Examples
        --------
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"Pressure": [0.1, 0.2], "Current": [1.0, 1.1]})
        >>> recording = Recording.from_frame(frame)
        >>> recording.sensors, recording.n_rows
        (('Pressure', 'Current'), 2)
        """
        import pandas as pd

        text = [str(name) for name, kind in frame.dtypes.items() if not pd.api.types.is_numeric_dtype(kind)]
        if text:
            raise DataError(f"recording {id!r}: columns must be numeric, these are not: {text}; drop or convert them")
        time: FloatArray | None = None
        if isinstance(frame.index, pd.DatetimeIndex):
            index = frame.index if frame.index.tz is None else frame.index.tz_convert("UTC").tz_localize(None)
            time = ((index - pd.Timestamp(0)) / pd.Timedelta(seconds=1)).to_numpy(np.float64)
        elif isinstance(frame.index, pd.TimedeltaIndex):
            time = (frame.index / pd.Timedelta(seconds=1)).to_numpy(np.float64)
        return cls(id, frame.to_numpy(np.float64, na_value=np.nan), tuple(map(str, frame.columns)), time)


def as_recording(series: Series, id: str = "recording") -> Recording:  # noqa: A002 - the field's name
    """Convert a recording, data frame or array [n_rows, n_sensors] to a recording; else raise a DataError."""
    if isinstance(series, Recording):
        return series
    if isinstance(series, np.ndarray):
        values = np.asarray(series, dtype=np.float64)
        return Recording(id, values, tuple(f"x{i}" for i in range(values.shape[-1] if values.ndim else 0)))
    if hasattr(series, "columns"):
        return Recording.from_frame(series, id=id)
    raise DataError(
        f"expected a Recording, a pandas DataFrame or an array [n_rows, n_sensors], found {type(series).__name__}"
    )


def as_recordings(series: Series | Sequence[Series]) -> tuple[Recording, ...]:
    """Convert one or several series to recordings; a DataError if there are none, or sensors differ."""
    several = list(series) if isinstance(series, Sequence) else [series]
    recordings = tuple(as_recording(one, id=f"recording-{i}") for i, one in enumerate(several))
    if not recordings:
        raise DataError("expected at least one recording, found none")
    for recording in recordings[1:]:
        check_sensors(recording, recordings[0].sensors)
    return recordings


def check_sensors(recording: Recording, sensors: tuple[str, ...]) -> None:
    """Raise a DataError unless the recording's sensors are these, in this order."""
    if recording.sensors != sensors:
        raise DataError(
            f"recording {recording.id!r}: expected the sensors {list(sensors)} in this order, "
            f"found {list(recording.sensors)}"
        )
