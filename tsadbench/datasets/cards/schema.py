"""The card itself: its tables, and how it is read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, model_validator

from tsadbench.base.file_format import FileFormat
from tsadbench.datasets.cards.regular import Long, Resample
from tsadbench.datasets.cards.sections import (
    BEFORE_FIRST_EVENT,
    CardTable,
    Columns,
    LabelFiles,
    Missing,
    Part,
    Single,
    Texts,
    Train,
    WrittenAs,
)
from tsadbench.utils.issues import Issue
from tsadbench.utils.toml import read_toml

# A name becomes a folder of leaderboards and stands in every table's title.
NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"

_Number: TypeAlias = Annotated[float, Field(allow_inf_nan=False)]


class Card(CardTable):
    """What a folder's files hold.

    Parameters
    ----------
    schema_
        Number of the card format; 1. Written ``schema``.
    name
        The name under which tables show the data set.
    files
        How files are written.
    train, test
        Which files are for training and which for testing. Without test files, detectors can be fitted, not compared.
    single
        Files that hold both, instead of the two.
    columns, missing
        What the columns are; what to do about missing values.
    labels
        Files that tell which rows are anomalous, if no column does. Without either, nothing can be judged.
    long, resample
        The columns of files in long format; the regular grid that rows are laid on.
    states
        By name or pattern of sensors: the numbers that stand for texts in their cells.
    splits
        Named groups of test recordings: patterns of their ids. ``overall`` always holds all.
    sessions, entities
        Stretches of operation, and machines: patterns of the ids of the recordings that belong to each. Once one is
        named, each training and test recording belongs to one of them.
    description, prior
        Files, relative to the card's folder: the system in words (Markdown or text), its couplings (JSON).
    citation, licence
        Whom to cite, and the terms of use.
    version
        The data set's version: a number that grows whenever its recordings, its training rows, its labels or its splits
        change.
    """

    schema_: Annotated[Literal[1], Field(alias="schema")]
    name: Annotated[str, Field(pattern=f"^{NAME}$")]
    files: WrittenAs = WrittenAs()
    train: Train | None = None
    test: Part | None = None
    single: Single | None = None
    columns: Columns
    missing: Missing = Missing()
    labels: LabelFiles | None = None
    long: Long | None = None
    resample: Resample | None = None
    states: dict[str, Annotated[dict[str, _Number], Field(min_length=1)]] = Field(default_factory=dict)
    splits: dict[str, Texts] = Field(default_factory=dict)
    sessions: dict[str, Texts] = Field(default_factory=dict)
    entities: dict[str, Texts] = Field(default_factory=dict)
    description: str | None = None
    prior: str | None = None
    citation: str = ""
    licence: str = ""
    version: Annotated[int, Field(ge=1)] = 1

    @model_validator(mode="after")
    def _parts(self) -> Card:
        if (self.train is None) == (self.single is None) or (self.single is not None and self.test is not None):
            raise ValueError("give [train], and [test] if there are test files, or [single] alone for files with both")
        if "overall" in self.splits:
            raise ValueError("splits: 'overall' always holds all test recordings; leave it out")
        if self.splits and self.train is not None and self.test is None:
            raise ValueError("splits are groups of test recordings, and there is no [test]; leave them out")
        if self.columns.label is not None and self.labels is not None:
            raise ValueError("give columns.label, the column that marks anomalous rows, or [labels], and not both")
        by_event = self.train is not None and self.train.rows == BEFORE_FIRST_EVENT
        by_event |= self.single is not None and self.single.train_rows == BEFORE_FIRST_EVENT
        if by_event and self.columns.label is None and self.labels is None:
            raise ValueError(f'"{BEFORE_FIRST_EVENT}" needs labels: give columns.label or [labels]')
        return self

    @model_validator(mode="after")
    def _regular(self) -> Card:
        if self.long is not None and self.resample is None:
            raise ValueError('[long] needs [resample], for instance every = "1s" and by = "last": rows become regular')
        if self.long is not None and (self.columns.time is not None or self.columns.period is not None):
            raise ValueError("[long] names the column with the times: take columns.time and columns.period out")
        if (
            self.resample is not None
            and self.labels is not None
            and self.labels.intervals
            and self.labels.unit == "rows"
        ):
            raise ValueError('[resample] makes other rows than the files have: tell intervals by unit = "time"')
        if self.resample is not None and not self.times and self.columns.period is None:
            raise ValueError("[resample] needs times: give columns.time or columns.period")
        return self

    @property
    def times(self) -> tuple[str, ...]:
        """The columns whose texts make up a row's time."""
        if self.long is None:
            return self.columns.times
        return (self.long.time,) if isinstance(self.long.time, str) else tuple(self.long.time)

    @property
    def parts(self) -> Iterator[tuple[Literal["train", "test", "single"], Part]]:
        """The parts that the card has, by name."""
        if self.train is not None:
            yield "train", self.train
        if self.test is not None:
            yield "test", self.test
        if self.single is not None:
            yield "single", self.single

    def file_format(self, part: WrittenAs | None = None) -> FileFormat:
        """Return the format of a part's files: its own keys, else those of ``[files]``, else the defaults."""
        part = part or self.test or self.single or self.train or self.files
        own = part.model_dump(include=set(WrittenAs.model_fields), exclude_none=True)
        return FileFormat(
            time=self.times,
            time_formats=self.columns.time_formats,
            period=self.columns.period,
            unused=(*([] if self.columns.label is None else [self.columns.label]), *self.columns.ignore),
            fill="forward-fill" if self.missing.policy == "forward-fill" else "error",
            fill_at_most=self.missing.at_most,
            missing=tuple(self.missing.values),
            long=None if self.long is None else (self.long.name, self.long.value),
            resample_every=None if self.resample is None else self.resample.seconds,
            resample_by="median" if self.resample is None else self.resample.by,
            states=tuple((pattern, tuple(codes.items())) for pattern, codes in self.states.items()),
            **self.files.model_dump(exclude_none=True) | own,
        )


def read_card(path: Path) -> tuple[Card | None, str, list[Issue]]:
    """Return the card in a file, None if it cannot be used at all; the file's text; and what is wrong with it."""
    return read_toml(path, Card, "the card", "tsadbench data new FOLDER  writes a card")
