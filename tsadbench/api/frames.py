"""`tsadbench.dataset_from_frames`: makes a data set from pandas frames; errors name the argument and the frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd

from tsadbench.base.dataset import Dataset, LabelledDataset, Labels, as_labels
from tsadbench.base.recording import Recording, Series, as_recording, check_sensors
from tsadbench.errors import DataError, UsageError, about
from tsadbench.registry import entries
from tsadbench.utils.arrays import BoolArray
from tsadbench.utils.parameters import nearest

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Frames: TypeAlias = "Series | Sequence[Series] | Mapping[str, Series]"
# For one frame: a value per row, or intervals (start, end).
FrameLabels: TypeAlias = "ArrayLike | pd.Series[Any] | Sequence[tuple[Any, Any]]"


def dataset_from_frames(
    train: Frames,
    test: Frames | None = None,
    labels: str | FrameLabels | Sequence[FrameLabels] | Mapping[str, FrameLabels] | None = None,
    *,
    name: str = "frames",
    time: str | None = None,
    splits: Mapping[str, Sequence[str]] | None = None,
    **more: Any,
) -> LabelledDataset:
    """Make a data set from pandas frames: the recordings and, separately, the labels.

    Parameters
    ----------
    train, test
        One frame, a list of frames, or a dict with an id for each; columns are sensors, rows are in time order.
        A single frame is called "train" or "test"; frames of a list, "train-0", "train-1". Test frames may have the
        columns in another order. Arrays [n_rows, n_sensors] and `Recording` objects are accepted, too. Without
        ``test``, detectors can only be fitted.
    labels
        Ground truth of the test frames: the name of one of their columns; or, for one frame, a value per row (booleans
        or 0 and 1) or a list of intervals ``(start, end)``, both ends included: times if the frame has times (in its
        time zone unless they name one), otherwise row numbers from 0; or, for several frames, a list or dict of these.
        `tsadbench.run` needs labels; fitting and scoring do not.
    name
        The name in tables.
    time
        The column with the time of each row: dates, ISO 8601 strings, or seconds. By default a ``DatetimeIndex`` or
        ``TimedeltaIndex`` is the time; with any other index, rows have no time.
    splits
        Named groups of test frames, by id; ``overall``, with all of them, is added.
    **more
        As for `Dataset`: ``sessions`` and ``entities``, the stretch of operation and the machine of each frame by id,
        including training frames; ``description``, ``prior``, ``citation``, ``licence``.

    Raises
    ------
    UsageError, DataError
        If a column does not exist, a value is missing or not a number, times decrease, frames differ in their sensors,
        or labels do not fit; the message names the argument and the frame.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> time = pd.date_range("2026-01-01", periods=400, freq="s")
    >>> rows = pd.DataFrame(np.random.default_rng(0).normal(size=(400, 2)), time, columns=["flow", "pressure"])
    >>> rows.loc["2026-01-01 00:05:00":"2026-01-01 00:05:40"] += 9
    >>> mine = dataset_from_frames(
    ...     rows[:200], rows[200:], labels=[("2026-01-01 00:05:00", "2026-01-01 00:05:40")], name="mine"
    ... )
    >>> mine.dataset.sensors, int(mine.labels.rows["test"].sum())
    (('flow', 'pressure'), 41)
    """
    if name in {entry.name for entry in entries("datasets")}:
        raise UsageError(f"{name!r} belongs to a registered data set; choose another name", field="name")
    if "overall" in (splits or {}):
        raise UsageError("overall always has all test frames; choose another name", field="splits")
    column = labels if isinstance(labels, str) else None
    read_train = _read_all(train, "train", time, column)
    read_test = [] if test is None else _read_all(test, "test", time, column, read_train[0].recording.sensors)
    for one in read_train:
        if one.labels is not None and (n_anomalous := int(_rows(one.labels, one).sum())):
            raise DataError(f"{one.place}: {column!r} labels {n_anomalous} rows as anomalous; train on normal rows")
    groups = {"overall": tuple(one.recording.id for one in read_test)} if read_test else {}
    groups |= {split: (ids,) if isinstance(ids, str) else tuple(ids) for split, ids in (splits or {}).items()}
    dataset = Dataset(
        name=name,
        train=tuple(one.recording for one in read_train),
        test=tuple(one.recording for one in read_test),
        splits=groups,
        **more,
    )
    with about("labels"):
        rows = {} if labels is None else _labels(labels, test, read_test)
    return LabelledDataset(dataset, Labels(rows, groups))


@dataclass(frozen=True, slots=True, eq=False)
class _Read:
    """A frame as read: its name in messages, its recording, index, times and label column."""

    place: str
    recording: Recording
    index: pd.Index[Any]
    times: pd.DatetimeIndex | pd.TimedeltaIndex | None = None
    labels: pd.Series[Any] | None = None


def _read_all(
    frames: object, argument: str, time: str | None, labels: str | None, sensors: tuple[str, ...] | None = None
) -> list[_Read]:
    """Read the frames of ``train`` or ``test``; ``sensors`` are by default those of the first frame."""
    if isinstance(frames, Mapping):
        named = [(str(id_), f"{argument}[{id_!r}]", frame) for id_, frame in frames.items()]
    elif isinstance(frames, list | tuple):
        named = [(f"{argument}-{i}", f"{argument}[{i}]", frame) for i, frame in enumerate(frames)]
    else:
        named = [(frames.id if isinstance(frames, Recording) else argument, argument, frames)]
    if not named:
        raise UsageError("expected at least one frame, found none", field=argument)
    read: list[_Read] = []
    for id_, place, frame in named:
        read.append(_read(frame, id_, place, time, labels, sensors))
        sensors = sensors or read[0].recording.sensors
    return read


def _read(
    frame: Any, id_: str, place: str, time: str | None, labels: str | None, sensors: tuple[str, ...] | None
) -> _Read:
    index, column = getattr(frame, "index", pd.RangeIndex(0)), None
    if isinstance(frame, pd.DataFrame):
        for what, name in (("time", time), ("labels", labels)):
            if name is not None and name not in frame and not (what == "labels" and place.startswith("train")):
                raise UsageError(f"{place} has no column {name!r}{nearest(name, [*map(str, frame)])}", field=what)
        if labels in frame:
            column, frame = frame[labels], frame.drop(columns=labels)
        if time is not None:
            frame = frame.drop(columns=time).set_index(_times(frame[time], place))
        if sensors is not None and {*map(str, frame)} == {*sensors}:
            frame = frame.set_axis([*map(str, frame)], axis=1)[[*sensors]]
    times = own if isinstance(own := getattr(frame, "index", None), pd.DatetimeIndex | pd.TimedeltaIndex) else None
    try:
        recording = as_recording(frame, id_)
        check_sensors(recording, sensors or recording.sensors)
    except DataError as error:
        raise DataError(f"{place}: {str(error).removeprefix(f'recording {id_!r}: ')}") from None
    if recording.time is not None and times is not None:
        if len(missing := np.flatnonzero(~np.isfinite(recording.time))):
            raise DataError(f"{place}: expected a time for each row, found none in row {missing[0]}")
        if len(back := np.flatnonzero(np.diff(recording.time) < 0)):
            raise DataError(f"{place}: row {back[0] + 1} has an earlier time than the row above: sort rows by time")
    return _Read(place, recording, index, times, column)


def _times(cells: pd.Series[Any], place: str) -> pd.DatetimeIndex | pd.TimedeltaIndex:
    """Return a column of dates, ISO 8601 strings, durations or seconds as an index."""
    try:
        if pd.api.types.is_timedelta64_dtype(cells.dtype) or pd.api.types.is_numeric_dtype(cells.dtype):
            return pd.TimedeltaIndex(pd.to_timedelta(cells, unit="s"))
        return pd.DatetimeIndex(pd.to_datetime(cells, format="ISO8601"))
    except (ValueError, TypeError) as error:
        expected = "expected dates, ISO 8601 or seconds"
        raise DataError(f"{place}: column {cells.name!r}: {expected}: {str(error).splitlines()[0]}") from error


def _labels(labels: Any, test: object, read: Sequence[_Read]) -> dict[str, BoolArray]:
    """Return the labels of each test frame: a column, a value per row, or intervals."""
    ids = [one.recording.id for one in read]
    if isinstance(labels, str):
        each = [one.labels for one in read]
    elif isinstance(labels, Mapping):
        each = [labels.get(id_) for id_ in ids]
        if {*labels} != {*ids}:
            raise UsageError(f"expected the ids of the test frames, {ids}, found {[*labels]}")
    else:
        several = isinstance(test, Mapping | list | tuple) and isinstance(labels, list | tuple)
        each = list(labels) if several else [labels]
    if not read or len(each) != len(ids):
        raise UsageError(f"expected the labels of each of {len(ids)} test frames, found {len(each)}")
    return {one.recording.id: _rows(value, one) for value, one in zip(each, read, strict=True)}


def _rows(labels: Any, read: _Read) -> BoolArray:
    """Return whether each row of a frame is anomalous."""
    if isinstance(labels, list | tuple) and all(isinstance(one, list | tuple) and len(one) == 2 for one in labels):
        return _in_intervals(labels, read)
    n_rows = read.recording.n_rows
    if isinstance(labels, pd.Series):
        # A Series made from a list has row numbers as its index.
        if len(labels) == n_rows and not any(map(labels.index.equals, (read.index, pd.RangeIndex(n_rows)))):
            raise DataError(f"labels: their index differs from that of {read.place}: reindex them, or pass an array")
        if pd.api.types.is_float_dtype(labels.dtype):
            labels = labels.to_numpy(np.float64, na_value=np.nan)
    found = np.asarray(labels)
    if found.dtype.kind == "f" and np.isin(found, (0.0, 1.0)).all():
        found = found.astype(np.int64)
    if found.shape != (n_rows,):
        what = f"shape {list(found.shape)}" if found.ndim else type(labels).__name__
        raise DataError(f"labels: {read.place} has {n_rows} rows: expected a label per row, or intervals, found {what}")
    return as_labels(found, read.place)


def _in_intervals(intervals: Sequence[Sequence[Any]], read: _Read) -> BoolArray:
    """Return a mask of the rows within intervals of times (or, without times, of row numbers), ends included."""
    at: Any = pd.RangeIndex(read.recording.n_rows) if read.times is None else read.times
    at = at.tz_localize("UTC") if isinstance(at, pd.DatetimeIndex) and at.tz is None else at
    rows = np.zeros(len(at), dtype=np.bool_)
    for i, (start, end) in enumerate(intervals):
        try:
            inside = np.asarray((at >= _moment(start, at)) & (at <= _moment(end, at)))
            whole = inside.any() and (read.times is not None or (start >= 0 and end < len(at)))
        except (ValueError, TypeError, OverflowError):
            whole = False
        if not whole:
            what = f"expected {'numbers of rows' if read.times is None else 'times'} between {at[0]} and {at[-1]}"
            raise DataError(f"labels: interval {i} of {read.place}: {what}, in order, found {start!r} to {end!r}")
        rows |= inside
    return rows


def _moment(end: Any, at: pd.Index[Any]) -> Any:
    """Return an end of an interval as a time like the rows' times, or as a row number."""
    number = isinstance(end, int | float | np.integer | np.floating)
    if isinstance(at, pd.DatetimeIndex) and not number:
        moment = pd.Timestamp(end)
        return moment.tz_localize(at.tz) if moment.tz is None else moment
    if isinstance(at, pd.TimedeltaIndex):
        return pd.Timedelta(end, unit="s") if number else pd.Timedelta(end)
    if isinstance(at, pd.RangeIndex) and number and end == int(end):
        return end
    raise ValueError
