"""The card itself: its keys, and how it is read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, Field, field_validator, model_validator

from tsadbench.base.file_format import LAST_HEADER_LINE, FileFormat, encoding_fault, separates, time_format_fault
from tsadbench.utils.issues import Issue
from tsadbench.utils.toml import TABLE, read_toml

# A name becomes a folder of leaderboards and stands in every table's title.
NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"

_Texts: TypeAlias = Annotated[list[str], Field(min_length=1)]
_Value: TypeAlias = bool | int | float | str


class _Table(BaseModel):
    model_config = TABLE


class WrittenAs(_Table):
    """How files are written. Each key may differ between ``[train]`` and ``[test]``.

    Parameters
    ----------
    separator
        The character between two cells; by default a comma.
    decimal
        The decimal mark; by default a point.
    encoding
        As Python names it; by default UTF-8.
    header_line
        Number of the line that names the columns, counted from 1 (the default), or "search" for the first of ten that
        has them all.
    remove_prefix
        Text to remove from the front of column names.
    """

    separator: str | None = None
    decimal: Literal[".", ","] | None = None
    encoding: str | None = None
    header_line: Annotated[int, Field(ge=1, le=LAST_HEADER_LINE)] | Literal["search"] | None = None
    remove_prefix: str | None = None

    @field_validator("encoding")
    @classmethod
    def _known(cls, encoding: str | None) -> str | None:
        if encoding is not None and (fault := encoding_fault(encoding)):
            raise ValueError(fault)
        return encoding

    @field_validator("separator")
    @classmethod
    def _separates(cls, separator: str | None) -> str | None:
        if separator is not None and not separates(separator):
            raise ValueError(f"expected one character that stands between cells, found {separator!r}")
        return separator


class Part(WrittenAs):
    """The files of one part, training or test.

    Parameters
    ----------
    files
        File names or patterns, relative to the card's folder.
    ids
        What recordings are called: the "path" of their file without the ending, or its "file name" alone.
    """

    files: _Texts
    ids: Literal["path", "file name"] = "path"


class Single(WrittenAs):
    """Files that hold training rows first and test rows after them.

    Parameters
    ----------
    files
        File names or patterns, relative to the card's folder.
    train_rows
        How many rows of each file are training rows, or "file name": the number after ``tr_`` in the file's name,
        as TSB-AD writes it.
    """

    files: _Texts
    train_rows: Annotated[int, Field(ge=1)] | Literal["file name"]


class Columns(_Table):
    """What the columns are.

    Parameters
    ----------
    sensors
        Names or patterns; by default every column without another use.
    ignore
        Names or patterns of columns that are not sensors.
    time
        Name of the column with the times, or of several whose texts make up a time; None if rows have no time.
    time_format
        "ISO8601", "seconds", "milliseconds" or formats of `datetime.strptime`; one of them must fit a whole file.
    period
        Seconds from row to row if no column holds times.
    label
        Name of the column that marks anomalous rows.
    anomalous, normal
        The values it has in anomalous and in normal rows.
    """

    sensors: _Texts = ["*"]
    ignore: list[str] = []
    time: str | _Texts | None = None
    time_format: str | _Texts = "ISO8601"
    period: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    label: str
    anomalous: Annotated[list[_Value], Field(min_length=1)] = [1]
    normal: Annotated[list[_Value], Field(min_length=1)] = [0]

    @model_validator(mode="after")
    def _consistent(self) -> Columns:
        if self.time is not None and self.period is not None:
            raise ValueError("give time or period, not both: period is for rows without a time")
        fault = next(filter(None, map(time_format_fault, self.time_formats)), "")
        if fault:
            raise ValueError(fault)
        normal = {canonical(value) for value in self.normal}
        both = [value for value in self.anomalous if canonical(value) in normal]
        if both:
            raise ValueError(f"a value cannot be both anomalous and normal: {both}")
        return self

    @property
    def times(self) -> tuple[str, ...]:
        """The columns whose texts make up a time."""
        if self.time is None:
            return ()
        return (self.time,) if isinstance(self.time, str) else tuple(self.time)

    @property
    def time_formats(self) -> tuple[str, ...]:
        """The formats that may fit."""
        return (self.time_format,) if isinstance(self.time_format, str) else tuple(self.time_format)


class Missing(_Table):
    """What to do about missing values. Nothing is filled unless the card says so, and every table reports it.

    Parameters
    ----------
    policy
        "error", or "forward-fill": the sensor's last value in the same recording, never a later one.
    at_most
        The longest run of missing values of a sensor that may be filled, in rows; None for any.
    values
        Texts that mean a missing value ("Bad Input"), in addition to the empty cell, NaN, NA, NULL and the like.
    """

    policy: Literal["error", "forward-fill"] = "error"
    at_most: Annotated[int, Field(ge=1)] | None = None
    values: list[str] = []


class Card(_Table):
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
        Which files are for training and which for testing.
    single
        Files that hold both, instead of the two.
    columns, missing
        What the columns are; what to do about missing values.
    splits
        Named groups of test recordings: patterns of their ids. ``overall`` always holds all.
    sessions, entities
        Stretches of operation, and machines: patterns of the ids of the recordings that belong to each. Once one is
        named, each training and test recording belongs to one of them.
    description, prior
        Files, relative to the card's folder: the system in words (Markdown or text), its couplings (JSON).
    citation, licence
        Whom to cite, and the terms of use.
    """

    schema_: Annotated[Literal[1], Field(alias="schema")]
    name: Annotated[str, Field(pattern=f"^{NAME}$")]
    files: WrittenAs = WrittenAs()
    train: Part | None = None
    test: Part | None = None
    single: Single | None = None
    columns: Columns
    missing: Missing = Missing()
    splits: dict[str, _Texts] = {}
    sessions: dict[str, _Texts] = {}
    entities: dict[str, _Texts] = {}
    description: str | None = None
    prior: str | None = None
    citation: str = ""
    licence: str = ""

    @model_validator(mode="after")
    def _parts(self) -> Card:
        apart = self.train is not None and self.test is not None
        if apart == (self.single is not None) or (not apart and (self.train or self.test)):
            raise ValueError("give [train] and [test], or [single] alone for files that hold both")
        if "overall" in self.splits:
            raise ValueError("splits: 'overall' always holds all test recordings; leave it out")
        return self

    def file_format(self, part: WrittenAs | None = None) -> FileFormat:
        """Return how a part's files are written: its own keys, else those of ``[files]``, else the defaults.

        Parameters
        ----------
        part
            ``[train]``, ``[test]`` or ``[single]``; None stands for the part whose files are scored.
        """
        part = part or self.test or self.single or self.files
        own = part.model_dump(include=set(WrittenAs.model_fields), exclude_none=True)
        return FileFormat(
            time=self.columns.times,
            time_formats=self.columns.time_formats,
            period=self.columns.period,
            unused=(self.columns.label, *self.columns.ignore),
            fill=self.missing.policy,
            fill_at_most=self.missing.at_most,
            missing=tuple(self.missing.values),
            **self.files.model_dump(exclude_none=True) | own,
        )


def read_card(path: Path) -> tuple[Card | None, str, list[Issue]]:
    """Return the card in a file, None if it cannot be used at all; the file's text; and what is wrong with it."""
    return read_toml(path, Card, "the card", "tsadbench data new FOLDER  writes a card")


def canonical(value: object) -> str:
    """Return a label's value as text in which equal values are equal: 1, 1.0, true and " 1" are the same.

    Examples
    --------
    >>> canonical(1), canonical("1.0"), canonical(True), canonical(" A ttack")
    ('1', '1', '1', 'A ttack')
    """
    text = str(value).strip()
    if text.lower() in ("true", "false"):
        return "1" if text.lower() == "true" else "0"
    try:
        number = float(text)
    except ValueError:
        return text
    return str(int(number)) if number.is_integer() else str(number)
