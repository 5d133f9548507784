"""The tables of a card: how files are written, which ones there are, and what their columns and labels are."""

from __future__ import annotations

import re
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, Field, field_validator, model_validator

from tsadbench.base.file_format import HeaderLine, encoding_fault, separates, time_format_fault
from tsadbench.datasets.reading.cells import canonical
from tsadbench.utils.toml import TABLE

Texts: TypeAlias = Annotated[list[str], Field(min_length=1)]
_Value: TypeAlias = bool | int | float | str

BEFORE_FIRST_EVENT = "before first event"
NUMBER = "{number}"


class CardTable(BaseModel):
    """A table of a card: no key but its fields."""

    model_config = TABLE


class WrittenAs(CardTable):
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
    header_line: HeaderLine | None = None
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
    variables
        Names or patterns of the arrays of a file that are recordings, called by the array's name; by default a file's
        only array, called by its file.
    join
        A regular expression with one group: files with the same text in it are one recording, in the files' order,
        called by that text.
    """

    files: Texts
    ids: Literal["path", "file name"] = "path"
    variables: Texts | None = None
    join: str | None = None

    @field_validator("join")
    @classmethod
    def _one_group(cls, join: str | None) -> str | None:
        try:
            groups = 1 if join is None else re.compile(join).groups
        except re.error as error:
            raise ValueError(f"expected a regular expression, found {join!r} ({error})") from error
        if groups != 1:
            raise ValueError(f"expected a regular expression with one group in parentheses, found {join!r}")
        return join

    @model_validator(mode="after")
    def _variables_or_join(self) -> Part:
        if self.variables is not None and self.join is not None:
            raise ValueError("give variables or join, not both: joined files hold one array each")
        return self


class Train(Part):
    """The training files.

    Parameters
    ----------
    rows
        Which rows of each recording train: "all", or those "before first event". A file may be in ``[test]`` as well
        then, which takes the rows from the first event on.
    """

    rows: Literal["all", "before first event"] = "all"


class Single(Part):
    """Files that hold training rows first and test rows after them.

    Parameters
    ----------
    train_rows
        How many rows of each recording are training rows; "file name": the number after ``tr_`` in the file's name,
        as TSB-AD writes it; or "before first event": those before its first anomalous row.
    """

    train_rows: Annotated[int, Field(ge=1)] | Literal["file name", "before first event"]


class Columns(CardTable):
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
        Name of the column that marks anomalous rows; None if ``[labels]`` tells them.
    anomalous, normal
        The values it has in anomalous and in normal rows.
    names
        Names of the columns of arrays that have none: a list, or a text in which ``{number}`` stands for the column's
        number, counted from 1.
    extra_columns
        Whether an array may have more columns than there are names: "error", or "ignore" to leave the others out.
    constant
        What becomes of sensors that are constant over all training rows: "keep" them, or "leave out".
    optional
        Names or patterns of sensors that some files may lack: those that every file has are kept.
    """

    sensors: Texts = ["*"]
    ignore: list[str] = []
    time: str | Texts | None = None
    time_format: str | Texts = "ISO8601"
    period: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    label: str | None = None
    anomalous: Annotated[list[_Value], Field(min_length=1)] = [1]
    normal: Annotated[list[_Value], Field(min_length=1)] = [0]
    names: str | Texts | None = None
    extra_columns: Literal["error", "ignore"] = "error"
    constant: Literal["keep", "leave out"] = "keep"
    optional: list[str] = []

    @field_validator("names")
    @classmethod
    def _distinct(cls, names: str | list[str] | None) -> str | list[str] | None:
        if isinstance(names, str) and NUMBER not in names:
            raise ValueError(f"expected a list of names, or a text with {NUMBER} in it, found {names!r}")
        twice = sorted({name for name in names or () if isinstance(names, list) and names.count(name) > 1})
        if twice:
            raise ValueError(f"a name may stand for one column only, these stand for several: {twice}")
        return names

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


_OF_INTERVALS = ("recording", "start", "end", "time_format")


class LabelFiles(WrittenAs):
    """Files that tell which rows are anomalous, if no column of the data files does.

    Its keys about how they are written count for them alone; separator, decimal and encoding are else those of
    ``[files]``.

    Parameters
    ----------
    file
        Path of the file with a recording's labels, one a row: ``{id}`` stands for the recording's id, ``{name}`` for
        the id's last part.
    column
        The column of such a file that has the labels, if there are several.
    intervals
        A CSV file of anomalous intervals, beside the card or in the data folder, with the columns ``recording``,
        ``start``, ``end`` and, optionally, ``sensors``: those an event shows in, separated by semicolons. A log book
        has no column with recordings: each of its intervals, which are in times then, counts in every recording that
        has rows in it.
    recording, start, end
        What the file of intervals calls these columns.
    unit
        What start and end are: "rows", counted from 0, or the "time". Both belong to the interval.
    origin
        From where times count: as in the recording ("time"), or in seconds from the recording's first row
        ("recording").
    time_format
        How start and end are written if they are times; by default as ``columns.time_format`` says.
    """

    file: str | None = None
    column: str | None = None
    intervals: str | None = None
    recording: str | None = None
    start: str | None = None
    end: str | None = None
    time_format: str | Texts | None = None
    unit: Literal["rows", "time"] = "rows"
    origin: Literal["time", "recording"] = "time"

    @model_validator(mode="after")
    def _one_kind(self) -> LabelFiles:
        if (self.file is None) == (self.intervals is None):
            raise ValueError("give file, for one label a row, or intervals, for starts and ends")
        if self.file is not None and "{id}" not in self.file and "{name}" not in self.file:
            raise ValueError(
                f"file: expected {{id}} or {{name}} in it, so that each recording has its own: {self.file!r}"
            )
        of_intervals = ((key, self.intervals, "intervals") for key in ("origin", *_OF_INTERVALS))
        for key, needed, other in (("column", self.file, "file"), *of_intervals):
            if key in self.model_fields_set and needed is None:
                raise ValueError(f"{key} is for {other}; leave it out")
        if self.origin == "recording" and self.unit == "rows":
            raise ValueError('origin is for unit = "time"; rows always count from the first of the recording')
        if self.time_format is not None and (self.unit == "rows" or self.origin == "recording"):
            raise ValueError('time_format is for unit = "time" and origin = "time"; leave it out')
        fault = next(filter(None, map(time_format_fault, self.time_formats)), "")
        if fault:
            raise ValueError(fault)
        return self

    @property
    def time_formats(self) -> tuple[str, ...]:
        """The formats of start and end that may fit; empty if they are those of the data files."""
        if self.time_format is None:
            return ()
        return (self.time_format,) if isinstance(self.time_format, str) else tuple(self.time_format)


class Missing(CardTable):
    """What to do about missing values. Nothing is filled unless the card says so, and every table reports it.

    Parameters
    ----------
    policy
        "error"; "forward-fill": the sensor's last value in the same recording, never a later one; or "cut": rows with
        a missing value are left out, and the recording is cut there into pieces.
    at_most
        The longest run of missing values of a sensor that may be filled, in rows; None for any.
    at_least
        How many rows a piece must have; shorter ones are left out.
    values
        Texts that mean a missing value ("Bad Input"), in addition to the empty cell, NaN, NA, NULL and the like.
    """

    policy: Literal["error", "forward-fill", "cut"] = "error"
    at_most: Annotated[int, Field(ge=1)] | None = None
    at_least: Annotated[int, Field(ge=1)] | None = None
    values: list[str] = []

    @model_validator(mode="after")
    def _of_one_policy(self) -> Missing:
        if self.at_least is not None and self.policy != "cut":
            raise ValueError('at_least is for policy = "cut"; leave it out')
        if self.at_most is not None and self.policy == "cut":
            raise ValueError('at_most is for policy = "forward-fill"; leave it out')
        return self
