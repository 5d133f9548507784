"""Labels of frames: a column, a value a row, or intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from tsadbench.api.read_frames import ReadFrame
from tsadbench.base.dataset import as_labels
from tsadbench.datasets.times import iso_time
from tsadbench.errors import DataError, UsageError
from tsadbench.utils.arrays import BoolArray


def check_labelled(train: Sequence[ReadFrame], test: Sequence[ReadFrame], column: str) -> None:
    """Raise an error unless test frames have the column of labels, and no training frame has an anomalous row."""
    if not test:
        raise UsageError(f"labels: found the column {column!r}, but there is no test frame that has it")
    for one in train:
        if one.labels is not None and (n_anomalous := int(_values(one.labels, one).sum())):
            raise DataError(
                f"{one.place}: column {column!r} labels {n_anomalous} rows as anomalous; train on normal rows alone"
            )


def labels_of(labels: object, test: object, read: Sequence[ReadFrame]) -> dict[str, BoolArray]:
    """Return the labels of each test frame."""
    if not read:
        raise UsageError("labels: there is no test frame to label; give test, or leave labels out")
    if isinstance(labels, str):
        return {one.recording.id: _values(one.labels, one) for one in read}
    ids = [one.recording.id for one in read]
    several = isinstance(test, Mapping | list | tuple)
    if isinstance(labels, Mapping):
        if set(labels) != set(ids):
            raise UsageError(f"labels: expected the ids of the test frames, {ids}, found {list(labels)}")
        each = [labels[id_] for id_ in ids]
    elif several:
        if not isinstance(labels, list | tuple) or len(labels) != len(ids):
            found = (
                f"{type(labels).__name__} of {len(labels)}" if isinstance(labels, Sequence) else type(labels).__name__
            )
            raise UsageError(
                f"labels: expected a list with the labels of each of {len(ids)} test frames, found {found}"
            )
        each = list(labels)
    else:
        each = [labels]
    return {id_: _one(value, one) for id_, value, one in zip(ids, each, read, strict=True)}


def _one(labels: object, read: ReadFrame) -> BoolArray:
    if isinstance(labels, list | tuple) and all(isinstance(one, list | tuple) and len(one) == 2 for one in labels):
        return _in_intervals(labels, read)
    return _values(labels, read)


def _values(labels: object, read: ReadFrame) -> BoolArray:
    """Return a value a row as booleans."""
    n_rows = read.recording.n_rows
    if isinstance(labels, pd.Series):
        own = labels.index
        if read.index is not None and len(own) == n_rows and not (own.equals(read.index) or _counts(own)):
            raise DataError(
                f"labels: the index of the labels of {read.place} is another than the frame's; reindex them, or give "
                "labels.to_numpy() if they are in the order of its rows"
            )
        if pd.api.types.is_float_dtype(labels.dtype):
            labels = labels.to_numpy(np.float64, na_value=np.nan)
    found = np.asarray(labels)
    if found.dtype.kind == "f" and np.isin(found, (0.0, 1.0)).all():
        found = found.astype(np.int64)
    if found.ndim != 1 or len(found) != n_rows:
        raise DataError(
            f"labels: {read.place} has {n_rows} rows: expected as many labels, or a list of intervals (start, end), "
            f"found {f'shape {list(found.shape)}' if found.ndim else type(labels).__name__}"
        )
    try:
        return as_labels(found, read.place)
    except DataError as error:
        raise DataError(f"labels: {str(error).removeprefix('labels of ')}") from None


def _counts(index: pd.Index[Any]) -> bool:
    """Whether an index numbers the rows, as that of a Series does which was made of a list."""
    return isinstance(index, pd.RangeIndex) and (index.start, index.step) == (0, 1)


def _in_intervals(intervals: Sequence[Sequence[object]], read: ReadFrame) -> BoolArray:
    recording = read.recording
    rows = np.zeros(recording.n_rows, dtype=np.bool_)
    for i, ends in enumerate(intervals):
        place = f"labels: interval {i} of {read.place}"
        start, end = (_moment(end, read, place) for end in ends)
        if end < start:
            raise DataError(f"{place} ends before it starts: {ends[0]} to {ends[1]}")
        if recording.time is None:
            first, stop = int(start), int(end) + 1
        else:
            first = int(np.searchsorted(recording.time, start, side="left"))
            stop = int(np.searchsorted(recording.time, end, side="right"))
        if not 0 <= first < stop <= recording.n_rows:
            raise DataError(f"{place}, {ends[0]} to {ends[1]}, lies outside of its {_extent(read)}")
        rows[first:stop] = True
    return rows


def _moment(end: Any, read: ReadFrame, place: str) -> float:
    """Return an end of an interval: a number of a row, or seconds."""
    number = isinstance(end, int | float | np.integer | np.floating) and not isinstance(end, bool)
    if read.recording.time is None:
        if not number or end != int(end):
            raise DataError(f"{place}: expected numbers of rows, as the frame has no times, found {end!r}")
        return float(end)
    if number and not read.dated:
        return float(end)
    try:
        if number:
            raise ValueError
        if not read.dated:
            return float(pd.Timedelta(end) / pd.Timedelta(seconds=1))
        moment = pd.Timestamp(end)
        # As pandas reads a text that selects rows: in the zone of the frame.
        moment = moment.tz_localize(read.zone or "UTC") if moment.tz is None else moment
        return float((moment - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(seconds=1))
    except (ValueError, TypeError):
        kind = "times, as the frame has" if read.dated else "seconds, or time differences"
        raise DataError(f"{place}: expected {kind}, found {end!r}") from None


def _extent(read: ReadFrame) -> str:
    time = read.recording.time
    if time is None:
        return f"rows 0 to {read.recording.n_rows - 1}"
    first, last = (iso_time(float(one)) if read.dated else f"{one:g} s" for one in (time[0], time[-1]))
    return f"times, {first} to {last}, or between two of its rows"
