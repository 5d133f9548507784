"""`tsadbench.dataset_from_frames`: pandas frames as a data set, every value checked as a card's files are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from tsadbench.api.read_frames import labels_of, read_frames, row_labels, with_sensors
from tsadbench.base.dataset import Dataset, LabelledDataset, Labels
from tsadbench.base.prior import Prior
from tsadbench.base.recording import Series
from tsadbench.errors import DataError, UsageError
from tsadbench.registry import entries
from tsadbench.utils.parameters import nearest

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike

Frames: TypeAlias = "Series | Sequence[Series] | Mapping[str, Series]"
# Of one frame: a value a row, or intervals (start, end).
FrameLabels: TypeAlias = "ArrayLike | pd.Series[Any] | Sequence[tuple[Any, Any]]"


def dataset_from_frames(
    train: Frames,
    test: Frames | None = None,
    labels: str | FrameLabels | Sequence[FrameLabels] | Mapping[str, FrameLabels] | None = None,
    *,
    name: str = "frames",
    time: str | None = None,
    splits: Mapping[str, Sequence[str]] | None = None,
    sessions: Mapping[str, str] | None = None,
    entities: Mapping[str, str] | None = None,
    description: str = "",
    prior: Prior | None = None,
    citation: str = "",
    licence: str = "",
) -> LabelledDataset:
    """Make a data set of pandas frames, for `tsadbench.run`, `tsadbench.fit_model` and everything that takes one.

    Parameters
    ----------
    train, test
        One frame, a list of frames, or a dict with an id for each; columns are sensors, rows are in the order of time.
        A single frame is called "train" or "test", those of a list "train-0", "train-1". Test frames may have the
        columns in another order. Arrays [n_rows, n_sensors] and `Recording` objects are taken as well. Without ``test``
        a detector can be fitted, nothing more.
    labels
        The truth about the test frames: the name of a column that they have; or for one frame a value a row (an array,
        a list, a Series: booleans or 0 and 1), or a list of intervals ``(start, end)``; or for several frames a list or
        a dict of these. Both ends belong to an interval: times where the frame has times, in its time zone unless they
        name one, otherwise numbers of rows from 0 on. Without labels nothing can be judged: `tsadbench.run` needs them,
        fitting and scoring do not.
    name
        The name under which tables show it.
    time
        The column with the time of each row: dates, texts in ISO 8601, or seconds. By default a ``DatetimeIndex`` or
        ``TimedeltaIndex`` is the time; with any other index rows have none.
    splits
        Named groups of test frames, by id; ``overall``, which is added, has them all.
    sessions, entities
        The stretch of operation and the machine of each frame, by id, those of the training frames included.
    description, prior, citation, licence
        As of a `Dataset`.

    Returns
    -------
    LabelledDataset
        The data set and, apart from it, the labels.

    Raises
    ------
    UsageError
        If an argument is of a wrong type, or there is no such column; the message names the argument and the frame.
    DataError
        If a value is missing or no number, times run backwards, frames differ in their sensors, or labels do not fit.

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
        raise UsageError(
            f"name: {name!r} belongs to a registered data set, and tables would mix them up: choose another"
        )
    if prior is not None and not isinstance(prior, Prior):
        raise UsageError(f"prior: expected a Prior, found {prior!r}; Prior.load(path) reads a file")
    column = labels if isinstance(labels, str) else None
    read_train = read_frames(train, "train", time, column)
    read_test = [] if test is None else read_frames(test, "test", time, column)
    sensors = read_train[0].recording.sensors
    for one in read_train:
        if one.labels is not None and (n_anomalous := int(row_labels(one.labels, one).sum())):
            raise DataError(
                f"{one.place}: column {column!r} labels {n_anomalous} rows as anomalous; train on normal rows"
            )
    ids = tuple(one.recording.id for one in read_test)
    groups = {"overall": ids} if ids else {}
    for split, members in (splits or {}).items():
        groups[split] = (members,) if isinstance(members, str) else tuple(members)
        for id_ in groups[split]:
            if id_ not in ids:
                raise UsageError(f"splits: {split!r} names {id_!r}, which is no test frame{nearest(str(id_), ids)}")
    rows = {} if labels is None else labels_of(labels, test, read_test)
    dataset = Dataset(
        name=name,
        train=tuple(with_sensors(one, sensors) for one in read_train),
        test=tuple(with_sensors(one, sensors) for one in read_test),
        splits=groups,
        description=description,
        prior=prior,
        citation=citation,
        licence=licence,
        sessions=dict(sessions or {}),
        entities=dict(entities or {}),
    )
    return LabelledDataset(dataset, Labels(rows, groups))
