"""Frames as recordings, with one-line errors that name the argument and the frame."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

import numpy as np
import pandas as pd

from tsadbench.base.recording import Recording, as_recording
from tsadbench.datasets.times import time_in_seconds
from tsadbench.errors import DataError, UsageError
from tsadbench.utils.arrays import FloatArray
from tsadbench.utils.parameters import nearest


@dataclass(frozen=True, slots=True, eq=False)
class ReadFrame:
    """A frame that was read: what messages call it, its recording, its index, its labels if they are a column."""

    place: str
    recording: Recording
    index: pd.Index[Any] | None = None
    dated: bool = False
    # Of the frame's dates; None: they have none.
    zone: tzinfo | None = None
    labels: pd.Series[Any] | None = None


def read_frames(frames: object, argument: str, time: str | None, labels: str | None) -> list[ReadFrame]:
    """Return the frames of an argument.

    Parameters
    ----------
    frames
        One, a list or a dict.
    argument
        Its name: "train" or "test".
    time, labels
        The columns with times and labels, if there are any; training frames need no labels.

    Raises
    ------
    UsageError, DataError
        As `dataset_from_frames`.
    """
    return [_read_one(frame, id_, place, time, labels) for id_, place, frame in _named(frames, argument)]


def _named(frames: object, argument: str) -> list[tuple[str, str, object]]:
    """Return each frame's id, and what messages call it."""
    if isinstance(frames, Mapping):
        named = [(id_, f"{argument}[{id_!r}]", frame) for id_, frame in frames.items()]
    elif isinstance(frames, list | tuple):
        named = [(f"{argument}-{i}", f"{argument}[{i}]", frame) for i, frame in enumerate(frames)]
    else:
        named = [(frames.id if isinstance(frames, Recording) else argument, argument, frames)]
    if not named:
        raise UsageError(f"{argument}: expected at least one frame, found none")
    for id_, place, frame in named:
        if not isinstance(id_, str) or not id_:
            raise UsageError(f"{place}: expected a text as the frame's id, found {id_!r}")
        if not isinstance(frame, pd.DataFrame | np.ndarray | Recording):
            raise UsageError(
                f"{place}: expected a pandas frame, or a list or dict of frames, found {type(frame).__name__}"
            )
    return named


def _read_one(frame: object, id_: str, place: str, time: str | None, labels: str | None) -> ReadFrame:
    if not isinstance(frame, pd.DataFrame):
        if time is not None or labels is not None:
            raise UsageError(f"{place}: expected a frame, of which a column is named, found {type(frame).__name__}")
        recording = _recording(frame, id_, place)
        return ReadFrame(place, recording)
    repeated = frame.columns[frame.columns.duplicated()]
    if len(repeated):
        raise DataError(f"{place}: the names of its columns must be unique, found twice: {str(repeated[0])!r}")
    if time is not None and not isinstance(time, str):
        raise UsageError(f"time: expected the name of a column, found {time!r}")
    taken = {}
    for what, column in (("time", time), ("labels", labels)):
        if column is not None and column in frame.columns:
            taken[what] = frame[column]
        elif column is not None and not (what == "labels" and place.startswith("train")):
            raise UsageError(f"{what}: {place} has no column {column!r}{nearest(column, tuple(map(str, frame)))}")
    lossy = [str(name) for name in frame.columns if pd.api.types.is_complex_dtype(frame[name])]
    if lossy:
        raise DataError(f"{place}: expected real numbers, found complex ones in {lossy}; convert them")
    values = frame.drop(columns=[one.name for one in taken.values()])
    recording = _recording(values if time is None else values.reset_index(drop=True), id_, place)
    dated = isinstance(frame.index, pd.DatetimeIndex)
    zone = frame.index.tz if isinstance(frame.index, pd.DatetimeIndex) else None
    if "time" in taken:
        seconds, dated = _seconds(taken["time"], place)
        zone = pd.Timestamp(taken["time"].iloc[0]).tz if dated else None
        recording = Recording(id_, recording.values, recording.sensors, seconds)
    _check_times(recording, place)
    return ReadFrame(place, recording, frame.index, dated, zone, taken.get("labels"))


def _recording(series: Any, id_: str, place: str) -> Recording:
    try:
        return as_recording(series, id_)
    except DataError as error:
        raise DataError(f"{place}: {str(error).removeprefix(f'recording {id_!r}: ')}") from None


def _seconds(cells: pd.Series[Any], place: str) -> tuple[FloatArray, bool]:
    """Return the times of a column in seconds, and whether they are dates."""
    if pd.api.types.is_timedelta64_dtype(cells.dtype):
        return np.asarray(pd.TimedeltaIndex(cells) / pd.Timedelta(seconds=1), dtype=np.float64), False
    numeric = pd.api.types.is_numeric_dtype(cells.dtype)
    seconds = time_in_seconds(cells, "seconds" if numeric else "ISO8601")
    bad = np.flatnonzero(~np.isfinite(seconds))
    if len(bad):
        raise DataError(
            f"{place}: column {cells.name!r}: expected dates, texts in ISO 8601 or seconds, found "
            f"{str(cells.iloc[int(bad[0])])!r} in row {bad[0]}"
        )
    return seconds, not numeric


def _check_times(recording: Recording, place: str) -> None:
    if recording.time is None:
        return
    missing = np.flatnonzero(~np.isfinite(recording.time))
    if len(missing):
        raise DataError(f"{place}: expected a time for each row, found none in row {missing[0]}")
    back = np.flatnonzero(np.diff(recording.time) < 0)
    if len(back):
        raise DataError(f"{place}: row {back[0] + 1} lies before the row above it in time: sort the frame by time")


def with_sensors(read: ReadFrame, sensors: tuple[str, ...]) -> Recording:
    """Return a recording with its sensors in this order."""
    recording = read.recording
    if recording.sensors == sensors:
        return recording
    if set(recording.sensors) != set(sensors):
        missing, more = (
            sorted(set(a) - set(b)) for a, b in ((sensors, recording.sensors), (recording.sensors, sensors))
        )
        parts = [
            f"{what} {', '.join(map(repr, names))}" for what, names in (("lacks", missing), ("adds", more)) if names
        ]
        raise DataError(f"{read.place}: expected the columns of the first training frame, but it {' and '.join(parts)}")
    order = [recording.sensors.index(sensor) for sensor in sensors]
    return Recording(recording.id, recording.values[:, order], sensors, recording.time)
