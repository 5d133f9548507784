"""The card of a data set: what its files hold, in TOML; docs/adding-a-data-set.md shows each key in use."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, Field, model_validator

from tsadbench.base.file_format import FileFormat, HeaderLine
from tsadbench.errors import UsageError
from tsadbench.utils.issues import Issue
from tsadbench.utils.toml import TABLE, read_toml

# A name becomes a folder of leaderboards and stands in every table's title.
NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
BEFORE_FIRST_EVENT = "before first event"
NUMBER = "{number}"


def canonical(value: object) -> str:
    """Return a label's value as text in which equal values are equal: 1, 1.0, true and " 1" are the same."""
    text = str(value).strip()
    text = {"true": "1", "false": "0"}.get(text.lower(), text)
    try:
        return f"{float(text):g}"
    except ValueError:
        return text


def listed(one_or_more: str | list[str] | None) -> tuple[str, ...]:
    """Return what a card names once or several times."""
    return () if one_or_more is None else (one_or_more,) if isinstance(one_or_more, str) else tuple(one_or_more)


Texts: TypeAlias = Annotated[list[str], Field(min_length=1)]
Positive: TypeAlias = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Rows: TypeAlias = Annotated[int, Field(ge=1)]
Values: TypeAlias = Annotated[list[bool | int | float | str], Field(min_length=1)]


class CardTable(BaseModel):
    """A table of a card: no key but its fields."""

    model_config = TABLE


class WrittenAs(CardTable):
    """How text files are written. Each key may differ between ``[train]``, ``[test]`` and ``[labels]``."""

    separator: str | None = None
    decimal: Literal[".", ","] | None = None
    encoding: str | None = None
    header_line: HeaderLine | None = None  # counted from 1, or "search": the first of ten with all the columns
    units_line: bool | None = None  # whether the line below the header holds units or other texts to skip
    remove_prefix: str | None = None  # from the front of column names
    missing: list[str] | None = None  # texts of missing values, in addition to the empty cell, NaN, NA and NULL


class Part(WrittenAs):
    """The files of one part, training or test."""

    files: Texts  # names or patterns, relative to the card's folder
    ids: str = "{path}"  # what a recording is called; "{path}" is its file's path, "{name}" the name alone
    variables: Texts | None = None  # the arrays of a file that are recordings, called by the array's name
    join: re.Pattern[str] | None = None  # files with the same text in this group are one recording, called by that text


class Train(Part):
    """The training files. Unless all rows train, ``[test]`` may name the same files, for the rows after these."""

    # The first so many rows, or as many as the expression's group finds in the file's name.
    rows: Literal["all", "before first event"] | Rows | re.Pattern[str] = "all"


class Columns(CardTable):
    """What the columns are."""

    sensors: Texts = ["*"]
    ignore: list[str] = []
    time: str | Texts | None = None  # several columns: their texts make up a time
    time_format: str | Texts = "ISO8601"  # as in `FileFormat.time_formats`
    period: Positive | None = None  # seconds from row to row if no column holds times
    names: str | Texts | None = None  # of the columns of arrays that have none: a list, or a text with "{number}"


class LabelValues(WrittenAs):
    """Labels that are one value a row; 1 and true are the same, 0 and false as well."""

    anomalous: Values = [1]
    normal: Values = [0]


class LabelColumn(LabelValues):
    """A column of the data files marks anomalous rows; training files may lack it."""

    kind: Literal["column"]
    column: str


class LabelFile(LabelValues):
    """A file for each recording holds its labels, one a row."""

    kind: Literal["file"]
    file: Annotated[str, Field(pattern=r"\{id\}")]  # below the data folder; "{id}" stands for the recording's id
    column: str | None = None  # if there are several


class LabelIntervals(WrittenAs):
    """A file, next to the card or in the data folder, lists anomalous intervals.

    A column ``sensors`` may name the sensors that an event shows in, separated by semicolons. A file without the column
    of recordings is a log book: each of its intervals counts in every recording that has rows in it.
    """

    kind: Literal["intervals"]
    file: str
    recording: str = "recording"
    start: str = "start"
    end: str = "end"
    # Rows are counted from 0, seconds from the recording's first row; both ends belong to the interval.
    unit: Literal["rows", "time", "seconds"] = "rows"
    time_format: str | Texts | None = None  # by default that of the data


class GapsAreErrors(CardTable):
    """A missing value is an error."""

    policy: Literal["error"]


class FillGaps(CardTable):
    """A sensor's last value in the same recording is carried forward, and every table says so."""

    policy: Literal["forward-fill"]
    at_most: Rows | None = None  # the longest run of missing values that may be filled


class CutGaps(CardTable):
    """Rows with a missing value are left out, and the recording is cut there into pieces."""

    policy: Literal["cut"]
    at_least: Rows = 2  # shorter pieces are left out


class Long(CardTable):
    """The columns of files whose rows each hold one value of one sensor: a sample, or a change of the value."""

    name: str
    value: str


class Resample(CardTable):
    """The regular grid that the rows of a file are laid on. It begins at the file's first time."""

    every: Positive  # seconds
    # What stands for the values from one row of the grid up to the next; "last" holds until there is another.
    by: Literal["median", "mean", "last"] = "median"


class Card(CardTable):
    """What a folder's files hold. Patterns of splits, sessions and entities are those of recordings' ids."""

    schema_: Annotated[Literal[1], Field(alias="schema")]
    name: Annotated[str, Field(pattern=f"^{NAME}$")]
    files: WrittenAs = WrittenAs()  # of all parts, unless a part says otherwise
    train: Train
    test: Part | None = None  # without it, detectors can be fitted, not compared
    columns: Columns = Columns()
    gaps: Annotated[GapsAreErrors | FillGaps | CutGaps, Field(discriminator="policy")] = GapsAreErrors(policy="error")
    labels: Annotated[LabelColumn | LabelFile | LabelIntervals | None, Field(discriminator="kind")] = None
    long: Long | None = None
    resample: Resample | None = None
    # By name or pattern of sensors: the numbers that stand for texts in their cells.
    states: dict[str, Annotated[dict[str, Annotated[float, Field(allow_inf_nan=False)]], Field(min_length=1)]] = {}
    splits: dict[str, Texts] = {}  # of test recordings; "overall" always holds all
    # Once one is named, each recording belongs to one of them.
    sessions: dict[str, Texts] = {}
    entities: dict[str, Texts] = {}
    description: str | None = None  # files below the card's folder
    prior: str | None = None
    citation: str = ""
    licence: str = ""
    version: Rows = 1  # grows whenever recordings, training rows, labels or splits change

    @model_validator(mode="after")
    def _consistent(self) -> Card:
        columns, grid, labels = self.columns, self.resample, self.labels
        timed = bool(columns.time) or columns.period is not None
        unit = labels.unit if isinstance(labels, LabelIntervals) else ""
        values = [*labels.anomalous, *labels.normal] if isinstance(labels, LabelValues) else []
        rules = (
            (columns.time is None or columns.period is None, "columns: give time or period, not both"),
            (not isinstance(columns.names, str) or NUMBER in columns.names, f"columns.names: expected {NUMBER} in it"),
            (len(set(map(canonical, values))) == len(values), f"labels: a value stands twice among {values}"),
            ("overall" not in self.splits, "splits: overall always holds all test recordings; leave it out"),
            (labels or self.train.rows != BEFORE_FIRST_EVENT, f'"{BEFORE_FIRST_EVENT}" needs [labels]'),
            (self.long is None or (grid and columns.time), "[long] needs columns.time and [resample]"),
            (grid is None or timed, "[resample] needs columns.time or columns.period"),
            (grid is None or unit != "rows", '[resample] makes other rows: labels.unit must be "time" or "seconds"'),
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
            fill="forward-fill" if isinstance(gaps, FillGaps) else "error",
            fill_at_most=gaps.at_most if isinstance(gaps, FillGaps) else None,
            missing=tuple(written.pop("missing", ())),
            long=None if self.long is None else (self.long.name, self.long.value),
            resample_every=None if self.resample is None else self.resample.every,
            resample_by="median" if self.resample is None else self.resample.by,
            states=tuple((pattern, tuple(codes.items())) for pattern, codes in self.states.items()),
            **{key: value for key, value in written.items() if key in WrittenAs.model_fields},
        )


def read_card(path: Path) -> tuple[Card | None, str, list[Issue]]:
    """Return the card in a file, None if it cannot be used at all; the file's text; and what is wrong with it."""
    return read_toml(path, Card, "the card", "tsadbench data new FOLDER  writes a card")
