"""The card of a data set: a TOML description of its files. docs/adding-a-data-set.md explains the keys."""

from __future__ import annotations

import re
from contextlib import suppress
from fnmatch import translate
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, Field, model_validator

from tsadbench.base.file_format import FileFormat, HeaderLine
from tsadbench.errors import UsageError
from tsadbench.utils.toml import TABLE

# The name becomes a folder of leaderboards and appears in table titles.
NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
BEFORE_FIRST_EVENT = "before first event"
NUMBER = "{number}"


def canonical(value: object) -> str:
    """Normalise a label's value to text, so that 1, 1.0, true and " 1" are equal."""
    text = str(value).strip()
    text = {"true": "1", "false": "0"}.get(text.lower(), text)
    try:
        return f"{float(text):.15g}"
    except ValueError:
        return text


def listed(one_or_more: str | list[str] | None) -> tuple[str, ...]:
    """Return one value, a list, or None as a tuple."""
    return () if one_or_more is None else (one_or_more,) if isinstance(one_or_more, str) else tuple(one_or_more)


def name_pattern(text: str) -> re.Pattern[str]:
    """Compile an `fnmatch` pattern with one placeholder, such as ``*_{run}.csv``; the placeholder is the group."""
    found = None
    with suppress(TypeError, re.error):  # a number, or brackets that are no pattern
        found = re.compile(translate(re.sub(r"\{[a-z]+\}", "\0", text)).replace("\0", "(.+?)"))
    if found is None or found.groups != 1:
        raise ValueError('expected a pattern with one placeholder, such as "*_{run}.csv"')
    return found


Texts: TypeAlias = Annotated[list[str], Field(min_length=1)]
NamePattern: TypeAlias = Annotated[re.Pattern[str], BeforeValidator(name_pattern)]  # regular expressions may never end
Positive: TypeAlias = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Rows: TypeAlias = Annotated[int, Field(ge=1)]
Values: TypeAlias = Annotated[list[bool | int | float | str], Field(min_length=1)]


class CardTable(BaseModel):
    """A table of a card; unknown keys are errors."""

    model_config = TABLE


class WrittenAs(CardTable):
    """The format of text files. Each key may differ between ``[train]``, ``[test]`` and ``[labels]``."""

    separator: str | None = None
    decimal: Literal[".", ","] | None = None
    encoding: str | None = None
    header_line: HeaderLine | None = None  # from 1, or "search": the first of ten lines that has all columns
    units_line: bool | None = None  # skip the line of units below the header
    remove_prefix: str | None = None  # prefix to remove from column names
    missing: list[str] | None = None  # texts of missing values, in addition to the empty cell, NaN, NA and NULL


class Part(WrittenAs):
    """The files of one part, training or test."""

    files: Texts  # names or patterns, relative to the card's folder
    ids: str = "{path}"  # recording ids: "{path}" is the file's path, "{name}" its name
    variables: Texts | None = None  # arrays that are recordings, with the array's name as id
    join: NamePattern | None = None  # files with the same text for the placeholder form one recording with that id


class Train(Part):
    """The training files. If only their first rows train, ``[test]`` may use the remaining rows of the same files."""

    # A number of first rows, or a pattern of the file's path with this number as its placeholder.
    rows: Literal["all", "before first event"] | Rows | NamePattern = "all"


class Columns(CardTable):
    """The roles of columns."""

    sensors: Texts = ["*"]
    ignore: list[str] = []
    time: str | Texts | None = None  # several columns are joined to one time
    time_format: str | Texts = "ISO8601"  # as in `FileFormat.time_formats`
    period: Positive | None = None  # seconds from row to row if no column holds times
    names: str | Texts | None = None  # column names for arrays: a list, or a text with "{number}"


class LabelValues(WrittenAs):
    """Labels with one value per row; 1 equals true, and 0 equals false."""

    anomalous: Values = [1]
    normal: Values = [0]


class LabelColumn(LabelValues):
    """A column of the data files marks anomalous rows; training files may lack it."""

    kind: Literal["column"]
    column: str


class LabelFile(LabelValues):
    """One file per recording with one label per row."""

    kind: Literal["file"]
    file: Annotated[str, Field(pattern=r"\{id\}")]  # below the data folder; "{id}" is the recording's id
    column: str | None = None  # if the file has several columns


class LabelIntervals(WrittenAs):
    """A file next to the card or in the data folder that lists anomalous intervals.

    The optional column ``sensors`` names the sensors that an event shows in, separated by semicolons. With
    ``unit = "time"``, a file without a column of recordings is a log book: its intervals apply to all recordings.
    """

    kind: Literal["intervals"]
    file: str
    recording: str = "recording"
    start: str = "start"
    end: str = "end"
    # Rows are counted from 0, seconds from the recording's first row; both ends belong to the interval.
    unit: Literal["rows", "time", "seconds"] = "rows"
    time_format: str | Texts | None = None  # by default the data's


class Gaps(CardTable):
    """Missing values are errors, or filled with the sensor's last value, or the recording is cut at their rows."""

    policy: Literal["error", "forward-fill", "cut"] = "error"
    at_most: Rows | None = None  # the longest run of missing values that may be filled
    at_least: Rows | None = None  # rows of a piece between cuts, 2 by default; shorter ones are dropped


class Long(CardTable):
    """The columns of long tables, with one value of one sensor per row: a sample, or a change of the value."""

    name: str
    value: str


class Resample(CardTable):
    """Resampling to a regular grid that begins at a file's first time."""

    every: Positive  # seconds
    # How values between two grid points are combined; in a long table, "last" holds until the next value.
    by: Literal["median", "mean", "last"] = "median"


class Card(CardTable):
    """A card. Patterns of splits, sessions and entities match recordings' ids."""

    schema_: Annotated[Literal[1], Field(alias="schema")]
    name: Annotated[str, Field(pattern=f"^{NAME}$")]
    files: WrittenAs = WrittenAs()  # of all parts, unless a part says otherwise
    train: Train
    test: Part | None = None  # without [test], detectors can be fitted but not compared
    columns: Columns = Columns()
    gaps: Gaps = Gaps()
    labels: Annotated[LabelColumn | LabelFile | LabelIntervals | None, Field(discriminator="kind")] = None
    long: Long | None = None
    resample: Resample | None = None
    # Sensor name or pattern -> text in cells -> number.
    states: dict[str, Annotated[dict[str, Annotated[float, Field(allow_inf_nan=False)]], Field(min_length=1)]] = {}
    splits: dict[str, Texts] = {}  # of test recordings; "overall" always holds all
    # If any are declared, every recording must belong to one.
    sessions: dict[str, Texts] = {}
    entities: dict[str, Texts] = {}
    description: str | None = None  # files below the card's folder
    prior: str | None = None
    citation: str = ""
    licence: str = ""
    version: Rows = 1  # grows whenever recordings, training rows, labels or splits change

    @model_validator(mode="after")
    def _consistent(self) -> Card:
        columns, grid, labels, gaps = self.columns, self.resample, self.labels, self.gaps
        timed = bool(columns.time) or columns.period is not None
        unit = labels.unit if isinstance(labels, LabelIntervals) else ""
        values = [*labels.anomalous, *labels.normal] if isinstance(labels, LabelValues) else []
        rules = (
            (columns.time is None or columns.period is None, "columns: give time or period, not both"),
            (not isinstance(columns.names, str) or NUMBER in columns.names, f"columns.names: expected {NUMBER} in it"),
            (len(set(map(canonical, values))) == len(values), f"labels: a value occurs twice among {values}"),
            (not gaps.at_most or gaps.policy == "forward-fill", 'gaps.at_most needs policy = "forward-fill"'),
            (not gaps.at_least or gaps.policy == "cut", 'gaps.at_least needs policy = "cut"'),
            ("overall" not in self.splits, "splits: overall always holds all test recordings; leave it out"),
            (labels or self.train.rows != BEFORE_FIRST_EVENT, f'"{BEFORE_FIRST_EVENT}" needs [labels]'),
            (self.long is None or (grid and columns.time), "[long] needs columns.time and [resample]"),
            (grid is None or timed, "[resample] needs columns.time or columns.period"),
            (grid is None or unit != "rows", '[resample] changes rows, so labels.unit must be "time" or "seconds"'),
            (timed or unit not in ("time", "seconds"), "labels.unit: times need columns.time or columns.period"),
        )
        broken = [text for holds, text in rules if not holds]
        try:
            for written in (self.files, labels, *self.parts.values()):
                self.file_format(written)
        except UsageError as error:
            broken.append(str(error))
        if broken:
            raise ValueError("; ".join(broken))
        return self

    @property
    def parts(self) -> dict[str, Part]:
        """The parts that the card has, by name."""
        return {"train": self.train} | ({} if self.test is None else {"test": self.test})

    def file_format(self, part: WrittenAs | None = None) -> FileFormat:
        """Return the format of a part's files: its own keys, else those of ``[files]``, else the defaults."""
        part, columns, gaps = part or self.test or self.train, self.columns, self.gaps
        written = {**self.files.model_dump(exclude_none=True), **part.model_dump(exclude_none=True)}
        label = [self.labels.column] if isinstance(self.labels, LabelColumn) else []
        return FileFormat(
            time=listed(columns.time),
            time_formats=listed(getattr(part, "time_format", None) or columns.time_format),
            period=columns.period,
            unused=(*label, *columns.ignore),
            fill="forward-fill" if gaps.policy == "forward-fill" else "error",
            fill_at_most=gaps.at_most,
            missing=tuple(written.pop("missing", ())),
            long=None if self.long is None else (self.long.name, self.long.value),
            resample_every=None if self.resample is None else self.resample.every,
            resample_by="median" if self.resample is None else self.resample.by,
            states=tuple((pattern, tuple(codes.items())) for pattern, codes in self.states.items()),
            **{key: value for key, value in written.items() if key in WrittenAs.model_fields},
        )
