"""The card itself: its keys, and how it is read."""

from __future__ import annotations

import re
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
_Number: TypeAlias = Annotated[float, Field(allow_inf_nan=False)]

_UNITS = {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(rf"(\d+(?:\.\d+)?)\s*({'|'.join(_UNITS)})", re.ASCII)


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
    constant
        What becomes of sensors that are constant over all training rows: "keep" them, or "leave out".
    optional
        Names or patterns of sensors that some files may lack: those that every file has are kept.
    """

    sensors: _Texts = ["*"]
    ignore: list[str] = []
    time: str | _Texts | None = None
    time_format: str | _Texts = "ISO8601"
    period: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    label: str
    anomalous: Annotated[list[_Value], Field(min_length=1)] = [1]
    normal: Annotated[list[_Value], Field(min_length=1)] = [0]
    constant: Literal["keep", "leave out"] = "keep"
    optional: list[str] = []

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


class Long(_Table):
    """The columns of files whose rows each hold one value of one sensor: a sample, or a change of the value.

    Parameters
    ----------
    time
        Name of the column with the times, or of several whose texts make up a time.
    name
        Name of the column with the sensor's name.
    value
        Name of the column with its value.
    """

    time: str | _Texts
    name: str
    value: str


class Resample(_Table):
    """The regular grid that the rows of a file are laid on. It begins at the file's first time.

    Parameters
    ----------
    every
        From row to row: a number with one of the units ms, s, min, h and d, as in "10s".
    by
        What stands for the values from one row of the grid up to the next: their "median", their "mean", or the "last"
        of them, which holds until there is another. A row is anomalous if any of those that it stands for is.
    """

    every: str
    by: Literal["median", "mean", "last"] = "median"

    @field_validator("every")
    @classmethod
    def _lasts(cls, every: str) -> str:
        if _seconds(every) == 0.0:
            raise ValueError(
                f"expected a number above 0 and a unit ({', '.join(_UNITS)}), as in '10s', found {every!r}"
            )
        return every

    @property
    def seconds(self) -> float:
        """Seconds from row to row."""
        return _seconds(self.every)


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
    """

    schema_: Annotated[Literal[1], Field(alias="schema")]
    name: Annotated[str, Field(pattern=f"^{NAME}$")]
    files: WrittenAs = WrittenAs()
    train: Part | None = None
    test: Part | None = None
    single: Single | None = None
    columns: Columns
    missing: Missing = Missing()
    long: Long | None = None
    resample: Resample | None = None
    states: dict[str, Annotated[dict[str, _Number], Field(min_length=1)]] = {}
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

    @model_validator(mode="after")
    def _regular(self) -> Card:
        if self.long is not None and self.resample is None:
            raise ValueError('[long] needs [resample], for instance every = "1s" and by = "last": rows become regular')
        if self.long is not None and (self.columns.time is not None or self.columns.period is not None):
            raise ValueError("[long] names the column with the times: take columns.time and columns.period out")
        if self.resample is not None and not self.times and self.columns.period is None:
            raise ValueError("[resample] needs times: give columns.time or columns.period")
        return self

    @property
    def times(self) -> tuple[str, ...]:
        """The columns whose texts make up a row's time."""
        if self.long is None:
            return self.columns.times
        return (self.long.time,) if isinstance(self.long.time, str) else tuple(self.long.time)

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
            time=self.times,
            time_formats=self.columns.time_formats,
            period=self.columns.period,
            unused=(self.columns.label, *self.columns.ignore),
            fill=self.missing.policy,
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


def _seconds(duration: str) -> float:
    """Return the seconds of a duration; 0 for a text that is none."""
    found = _DURATION.fullmatch(duration.strip())
    return 0.0 if found is None else float(found[1]) * _UNITS[found[2]]


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
