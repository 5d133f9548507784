"""Frames as recordings and labels, with one-line errors that name the argument and the frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

import numpy as np
import pandas as pd

from tsadbench.base.dataset import as_labels
from tsadbench.base.recording import Recording, as_recording
from tsadbench.datasets.times import iso_time, time_in_seconds
from tsadbench.errors import DataError, UsageError
from tsadbench.utils.arrays import BoolArray, FloatArray
from tsadbench.utils.parameters import nearest


@dataclass(frozen=True, slots=True, eq=False)
class ReadFrame:
    """A frame that was read: what messages call it, its recording, its index, its labels if they are a column."""

    place: str
    recording: Recording
    index: pd.Index[Any] | None = None
    dated: bool = False
    zone: tzinfo | None = None  # of the frame's dates
    labels: pd.Series[Any] | None = None


def read_frames(frames: object, argument: str, time: str | None, labels: str | None) -> list[ReadFrame]:
    """Return the frames of an argument, "train" or "test"; ``time`` and ``labels`` are columns. Errors as there."""
    if isinstance(frames, Mapping):
        named = [(str(id_), f"{argument}[{id_!r}]", frame) for id_, frame in frames.items()]
    elif isinstance(frames, list | tuple):
        named = [(f"{argument}-{i}", f"{argument}[{i}]", frame) for i, frame in enumerate(frames)]
    else:
        named = [(frames.id if isinstance(frames, Recording) else argument, argument, frames)]
    if not named:
        raise UsageError(f"{argument}: expected at least one frame, found none")
    for _, place, frame in named:
        if not isinstance(frame, pd.DataFrame | np.ndarray | Recording):
            kind = type(frame).__name__
            raise UsageError(f"{place}: expected a pandas frame, or a list or dict of frames, found {kind}")
    return [_read_one(frame, id_, place, time, labels) for id_, place, frame in named]


def _read_one(frame: Any, id_: str, place: str, time: str | None, labels: str | None) -> ReadFrame:
    if not isinstance(frame, pd.DataFrame):
        if time is not None or labels is not None:
            raise UsageError(f"{place}: expected a frame, of which a column is named, found {type(frame).__name__}")
        return ReadFrame(place, _recording(frame, id_, place))
    if len(repeated := frame.columns[frame.columns.duplicated()]):
        raise DataError(f"{place}: the names of its columns must be unique, found twice: {str(repeated[0])!r}")
    taken = {}
    for what, column in (("time", time), ("labels", labels)):
        if column in frame.columns:
            taken[what] = frame[column]
        elif column is not None and not (what == "labels" and place.startswith("train")):
            raise UsageError(f"{what}: {place} has no column {column!r}{nearest(column, tuple(map(str, frame)))}")
    values = frame.drop(columns=[one.name for one in taken.values()])
    if lossy := [str(name) for name in values if pd.api.types.is_complex_dtype(values[name])]:
        raise DataError(f"{place}: expected real numbers, found complex ones in {lossy}; convert them")
    recording = _recording(values if time is None else values.reset_index(drop=True), id_, place)
    dated = isinstance(frame.index, pd.DatetimeIndex)
    zone = frame.index.tz if isinstance(frame.index, pd.DatetimeIndex) else None
    if "time" in taken:
        seconds, dated = _seconds(taken["time"], place)
        zone = pd.Timestamp(taken["time"].iloc[0]).tz if dated else None
        recording = Recording(id_, recording.values, recording.sensors, seconds)
    if recording.time is not None:
        if len(missing := np.flatnonzero(~np.isfinite(recording.time))):
            raise DataError(f"{place}: expected a time for each row, found none in row {missing[0]}")
        if len(back := np.flatnonzero(np.diff(recording.time) < 0)):
            raise DataError(f"{place}: row {back[0] + 1} lies before the row above it in time: sort the frame by time")
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
    if len(bad := np.flatnonzero(~np.isfinite(seconds))):
        found = f"{str(cells.iloc[int(bad[0])])!r} in row {bad[0]}"
        raise DataError(f"{place}: column {cells.name!r}: expected dates, ISO 8601 or seconds, found {found}")
    return seconds, not numeric


def with_sensors(read: ReadFrame, sensors: tuple[str, ...]) -> Recording:
    """Return a recording with its sensors in this order."""
    recording = read.recording
    own, expected = set(recording.sensors), set(sensors)
    parts = [
        f"{what} {', '.join(map(repr, sorted(names)))}"
        for what, names in (("lacks", expected - own), ("adds", own - expected))
        if names
    ]
    if parts:
        raise DataError(f"{read.place}: expected the columns of the first training frame, but it {' and '.join(parts)}")
    order = [recording.sensors.index(sensor) for sensor in sensors]
    return Recording(recording.id, recording.values[:, order], sensors, recording.time)


def labels_of(labels: Any, test: object, read: Sequence[ReadFrame]) -> dict[str, BoolArray]:
    """Return the labels of each test frame: a column of its own, a value a row, or intervals."""
    if not read:
        raise UsageError("labels: there is no test frame to label; give test, or leave labels out")
    ids = [one.recording.id for one in read]
    if isinstance(labels, str):
        each = [one.labels for one in read]
    elif isinstance(labels, Mapping):
        if set(labels) != set(ids):
            raise UsageError(f"labels: expected the ids of the test frames, {ids}, found {list(labels)}")
        each = [labels[id_] for id_ in ids]
    elif not isinstance(test, Mapping | list | tuple):
        each = [labels]
    elif not isinstance(labels, list | tuple) or len(labels) != len(ids):
        raise UsageError(f"labels: expected a list with the labels of each of {len(ids)} test frames")
    else:
        each = list(labels)
    return {one.recording.id: row_labels(value, one) for value, one in zip(each, read, strict=True)}


def row_labels(labels: Any, read: ReadFrame) -> BoolArray:
    """Return whether each row of a frame is anomalous."""
    if isinstance(labels, list | tuple) and all(isinstance(one, list | tuple) and len(one) == 2 for one in labels):
        return _in_intervals(labels, read)
    n_rows = read.recording.n_rows
    if isinstance(labels, pd.Series):
        own = labels.index
        # The index of a Series that was made of a list numbers the rows.
        if (
            read.index is not None
            and len(own) == n_rows
            and not own.equals(read.index)
            and not own.equals(pd.RangeIndex(n_rows))
        ):
            raise DataError(
                f"labels: the index of the labels of {read.place} is another than the frame's; reindex them, or give "
                "labels.to_numpy() if they are in the order of its rows"
            )
        if pd.api.types.is_float_dtype(labels.dtype):
            labels = labels.to_numpy(np.float64, na_value=np.nan)
    found = np.asarray(labels)
    if found.dtype.kind == "f" and np.isin(found, (0.0, 1.0)).all():
        found = found.astype(np.int64)
    if found.shape != (n_rows,):
        raise DataError(
            f"labels: {read.place} has {n_rows} rows: expected as many labels, or a list of intervals (start, end), "
            f"found {f'shape {list(found.shape)}' if found.ndim else type(labels).__name__}"
        )
    try:
        return as_labels(found, read.place)
    except DataError as error:
        raise DataError(f"labels: {str(error).removeprefix('labels of ')}") from None


def _in_intervals(intervals: Sequence[Sequence[object]], read: ReadFrame) -> BoolArray:
    n_rows, time = read.recording.n_rows, read.recording.time
    at = np.arange(n_rows, dtype=np.float64) if time is None else time
    rows = np.zeros(n_rows, dtype=np.bool_)
    for i, ends in enumerate(intervals):
        place = f"labels: interval {i} of {read.place}"
        start, end = (_moment(end, read, place) for end in ends)
        if end < start:
            raise DataError(f"{place} ends before it starts: {ends[0]} to {ends[1]}")
        inside = (at >= start) & (at <= end)
        if not inside.any() or (time is None and (start < 0 or end > n_rows - 1)):
            first, last = (iso_time(float(one)) if read.dated else f"{one:g}" for one in (at[0], at[-1]))
            raise DataError(f"{place}, {ends[0]} to {ends[1]}, has no row, or is longer: rows are at {first} to {last}")
        rows |= inside
    return rows


def _moment(end: Any, read: ReadFrame, place: str) -> float:
    """Return an end of an interval: a number of a row, or seconds."""
    number = isinstance(end, int | float | np.integer | np.floating) and not isinstance(end, bool)
    kind = "numbers of rows, as the frame has no times" if read.recording.time is None else "times, as the frame has"
    try:
        if number and not read.dated and (read.recording.time is not None or end == int(end)):
            return float(end)
        if number or read.recording.time is None:
            raise ValueError
        if not read.dated:
            return float(pd.Timedelta(end) / pd.Timedelta(seconds=1))
        moment = pd.Timestamp(end)
        # As pandas reads a text that selects rows: in the zone of the frame.
        moment = moment.tz_localize(read.zone or "UTC") if moment.tz is None else moment
        return float((moment - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(seconds=1))
    except (ValueError, TypeError):
        raise DataError(f"{place}: expected {kind}, found {end!r}") from None
