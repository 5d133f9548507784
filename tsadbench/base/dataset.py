"""A data set: training and test recordings. Labels are kept separately, so that only a judge receives them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np

from tsadbench.base.file_format import FileFormat
from tsadbench.base.prior import Prior
from tsadbench.base.recording import Recording, check_sensors
from tsadbench.errors import DataError
from tsadbench.utils.arrays import BoolArray, read_only
from tsadbench.utils.grouping import grouped

# Name of the only entity of a data set, and of the only fit on it.
ALL = "all"


@dataclass(frozen=True)
class Dataset:
    """Training and, optionally, test recordings, with their origin. It has no labels.

    Raises a DataError if there is no training recording, recordings differ in their sensors or share an id, a split is
    empty or names unknown recordings, or sessions or entities do not name each recording.

    Parameters
    ----------
    name
        The name in tables.
    train
        Normal recordings.
    test
        Recordings to score, in the data set's order. May be empty if detectors are only fitted.
    splits
        Named groups of test recordings, by id; ``overall`` has all of them. Empty without test recordings.
    description
        A description of the system, for language models and engineers.
    prior
        The physical couplings of the sensors, if known.
    citation, licence
        The publication to cite, and the terms of use.
    notes
        Remarks for every table over this data set ("2 files differ from the published ones").
    folder
        Folder of its files: a detector that opens one of them in the box is invalid.
    layout
        The format of its files, which models use to read new files.
    sessions, entities
        The session and the machine of each recording, by id; by default, one session each and one machine.
    version
        Incremented when recordings, training rows, labels or splits change; kept in records.
    """

    name: str
    train: tuple[Recording, ...]
    test: tuple[Recording, ...]
    splits: Mapping[str, tuple[str, ...]]
    description: str = ""
    prior: Prior | None = None
    citation: str = ""
    licence: str = ""
    notes: tuple[str, ...] = ()
    folder: Path | None = None
    layout: FileFormat = field(default_factory=FileFormat)
    sessions: Mapping[str, str] = field(default_factory=dict)
    entities: Mapping[str, str] = field(default_factory=dict)
    version: int = 1

    def __post_init__(self) -> None:
        where = f"data set {self.name!r}:"
        if not self.train:
            raise DataError(f"{where} expected training recordings, found none")
        for recording in (*self.train, *self.test):
            check_sensors(recording, self.sensors)
        ids = [recording.id for recording in (*self.train, *self.test)]
        if twice := [one for number, one in enumerate(ids) if one in ids[:number]]:
            raise DataError(f"{where} the ids of its recordings must be unique; {twice[0]!r} stands there twice")
        known = {recording.id for recording in self.test}
        for split, members in self.splits.items():
            unknown = sorted(set(members) - known)
            if unknown or not members:
                raise DataError(f"{where} split {split!r} must name test recordings, found {unknown}")
        for what, declared in (("sessions", self.sessions), ("entities", self.entities)):
            if declared and (wrong := sorted(set(ids).symmetric_difference(declared))):
                fault = "undeclared" if wrong[0] in ids else "none of them"
                raise DataError(f"{where} {what} must name each of its recordings once; {wrong[0]!r} is {fault}")

    @property
    def session_of(self) -> Mapping[str, str]:
        """The session of each recording, by id: the declared session, else its own."""
        return self.sessions or {one.id: one.id for one in (*self.train, *self.test)}

    @property
    def sensors(self) -> tuple[str, ...]:
        """The sensors' names, the same in all recordings."""
        return self.train[0].sensors

    @cached_property
    def by_entity(self) -> Mapping[str, tuple[tuple[Recording, ...], tuple[Recording, ...]]]:
        """Training and test recordings by entity; "all" if there is at most one entity."""
        if len(set(self.entities.values())) < 2:
            return {ALL: (self.train, self.test)}
        train, test = (grouped(part, lambda one: self.entities[one.id]) for part in (self.train, self.test))
        return {entity: (train.get(entity, ()), test.get(entity, ())) for entity in dict.fromkeys((*train, *test))}

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 over the recordings' ids, sensors, times and values, in order; without sessions and entities."""
        digest = hashlib.sha256()
        for role, recordings in (("train", self.train), ("test", self.test)):
            for recording in recordings:
                for part in hashed_parts(recording, role):
                    digest.update(part)
        return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Cause:
    """The sensors to blame for an event in rows ``start`` to ``stop - 1`` of a test recording."""

    start: int
    stop: int
    sensors: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Labels:
    """The truth about the test recordings: which rows are anomalous.

    Parameters
    ----------
    rows
        For each test recording's id, in the data set's order: [n_rows], True where anomalous. Empty without
        labels. Arrays, lists or pandas Series of booleans or of 0 and 1; kept as read-only booleans.
    splits
        Named groups of test recordings, by id: the groups that are judged.
    causes
        Events with known sensors, by the id of the test recording; not part of `content_hash`.
    """

    rows: Mapping[str, BoolArray]
    splits: Mapping[str, tuple[str, ...]]
    causes: Mapping[str, tuple[Cause, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", {id_: as_labels(rows, repr(id_)) for id_, rows in self.rows.items()})

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 over the recordings' ids and labels, and the splits."""
        digest = hashlib.sha256(repr(sorted(self.splits.items())).encode())
        for id, rows in self.rows.items():  # noqa: A001 - the recording's field
            digest.update(repr((id, rows.shape)).encode())
            digest.update(rows.data)
        return digest.hexdigest()


def as_labels(rows: object, whose: str) -> BoolArray:
    """Return a recording's labels as read-only booleans [n_rows]; a DataError unless they are boolean or 0 and 1."""
    expected = f"labels of {whose}: expected booleans, or the integers 0 and 1, [n_rows], found"
    try:
        found = np.asarray(rows)
    except ValueError as error:  # lists of different lengths
        raise DataError(f"{expected} {type(rows).__name__}") from error
    if found.ndim != 1:
        raise DataError(f"{expected} {found.dtype} {list(found.shape)}")
    values = [] if found.dtype == np.bool_ else found.tolist()
    wrong = [value for value in values if not isinstance(value, bool | int) or value not in (0, 1)]
    if wrong:
        raise DataError(f"{expected} {wrong[0]!r} ({len(wrong)} such rows)")
    return read_only(found.astype(np.bool_, copy=False))


def hashed_parts(recording: Recording, *role: str) -> Iterator[bytes | memoryview]:
    """Yield the hashed parts of a recording: role, id, sensors and shape; values; times."""
    yield repr((*role, recording.id, recording.sensors, recording.values.shape)).encode()
    for array in (recording.values, recording.time):
        yield b"no time" if array is None else np.ascontiguousarray(array).data


class LabelledDataset(NamedTuple):
    """A loader's result: the data set for detectors, and the labels for the judge."""

    dataset: Dataset
    labels: Labels

    @property
    def missing(self) -> str:
        """What is missing for judging: "test recordings", "labels" or ""."""
        if not self.dataset.test:
            return "test recordings"
        return "" if self.labels.rows else "labels"


@dataclass(frozen=True, slots=True)
class DataOptions:
    """Where a loader looks for files, and how strict it is.

    ``directory`` has a folder per data set; None searches as documented. With ``allow_changed``, files may differ from
    the published ones, which every table notes.
    """

    directory: Path | None = None
    allow_changed: bool = False


Loader: TypeAlias = Callable[[DataOptions], LabelledDataset]
