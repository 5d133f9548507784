"""The card of a data set: what its files hold, in TOML."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, Field, model_validator

from tsadbench.base.file_format import FileFormat, HeaderLine, encoding_fault, separates, time_format_fault
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


def _encoding(name: str) -> str:
    if fault := encoding_fault(name):
        raise ValueError(fault)
    return name


def _separator(text: str) -> str:
    if not separates(text):
        raise ValueError(f"expected one character that stands between cells, found {text!r}")
    return text


def _one_group(pattern: str) -> str:
    try:
        groups = re.compile(pattern).groups
    except re.error as error:
        raise ValueError(f"expected a regular expression, found {pattern!r} ({error})") from error
    if groups != 1:
        raise ValueError(f"expected a regular expression with one group in parentheses, found {pattern!r}")
    return pattern


def _time_formats(forms: str | list[str]) -> str | list[str]:
    if fault := next(filter(None, map(time_format_fault, listed(forms))), ""):
        raise ValueError(fault)
    return forms


Texts: TypeAlias = Annotated[list[str], Field(min_length=1)]
Positive: TypeAlias = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Rows: TypeAlias = Annotated[int, Field(ge=1)]
OneGroup: TypeAlias = Annotated[str, AfterValidator(_one_group)]
TimeFormats: TypeAlias = Annotated[str | Texts, AfterValidator(_time_formats)]
Values: TypeAlias = Annotated[list[bool | int | float | str], Field(min_length=1)]


class CardTable(BaseModel):
    """A table of a card: no key but its fields."""

    model_config = TABLE


class WrittenAs(CardTable):
    """How text files are written. Each key may differ between ``[train]``, ``[test]`` and ``[labels]``.

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
    units_line
        Whether the line below the header holds units or other texts; it is skipped.
    remove_prefix
        Text to remove from the front of column names.
    """

    separator: Annotated[str, AfterValidator(_separator)] | None = None
    decimal: Literal[".", ","] | None = None
    encoding: Annotated[str, AfterValidator(_encoding)] | None = None
    header_line: HeaderLine | None = None
    units_line: bool | None = None
    remove_prefix: str | None = None


class Files(WrittenAs):
    """How all files are written, unless a part says otherwise.

    Parameters
    ----------
    missing
        Texts that mean a missing value ("Bad Input", "-999"), in addition to the empty cell, NaN, NA, NULL and the
        like.
    """

    missing: list[str] = []


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
    join: OneGroup | None = None

    @property
    def before_event(self) -> bool:
        """Whether the rows before a recording's first event train."""
        return False

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

    @property
    def before_event(self) -> bool:
        """Whether the rows before a recording's first event train."""
        return self.rows == BEFORE_FIRST_EVENT


class Single(Part):
    r"""Files that hold training rows first and test rows after them.

    Parameters
    ----------
    train_rows
        How many rows of each recording are training rows; a regular expression that finds this number in the file's
        name, as ``'tr_(\d+)'`` for TSB-AD's files; or "before first event": those before its first anomalous row.
    """

    train_rows: Rows | Literal["before first event"] | OneGroup

    @property
    def before_event(self) -> bool:
        """Whether the rows before a recording's first event train."""
        return self.train_rows == BEFORE_FIRST_EVENT


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
    names
        Names of the columns of arrays that have none: a list, or a text in which ``{number}`` stands for the column's
        number, counted from 1.
    extra_columns
        Whether an array may have more columns than there are names: "error", or "ignore" to leave the others out.
    """

    sensors: Texts = ["*"]
    ignore: list[str] = []
    time: str | Texts | None = None
    time_format: TimeFormats = "ISO8601"
    period: Positive | None = None
    names: str | Texts | None = None
    extra_columns: Literal["error", "ignore"] = "error"

    @model_validator(mode="after")
    def _consistent(self) -> Columns:
        if self.time is not None and self.period is not None:
            raise ValueError("give time or period, not both: period is for rows without a time")
        if isinstance(self.names, str) and NUMBER not in self.names:
            raise ValueError(f"names: expected a list of names, or a text with {NUMBER} in it, found {self.names!r}")
        if isinstance(self.names, list) and len(set(self.names)) < len(self.names):
            raise ValueError("names: a name may stand for one column only")
        return self


class LabelValues(WrittenAs):
    """Labels that are one value a row.

    Parameters
    ----------
    anomalous, normal
        The values in anomalous and in normal rows; 1 and true are the same, 0 and false as well.
    """

    anomalous: Values = [1]
    normal: Values = [0]

    @model_validator(mode="after")
    def _disjoint(self) -> LabelValues:
        normal = {canonical(value) for value in self.normal}
        if both := [value for value in self.anomalous if canonical(value) in normal]:
            raise ValueError(f"a value cannot be both anomalous and normal: {both}")
        return self


class LabelColumn(LabelValues):
    """A column of the data files marks anomalous rows; training files may lack it."""

    kind: Literal["column"]
    column: str


class LabelFile(LabelValues):
    """A file for each recording holds its labels, one a row.

    Parameters
    ----------
    file
        Its path, relative to the data folder; ``{id}`` stands for the recording's id, ``{name}`` for its last part.
    column
        The column with the labels, if there are several.
    """

    kind: Literal["file"]
    file: Annotated[str, Field(pattern=r"\{(id|name)\}")]
    column: str | None = None

    def of(self, id_: str) -> str:
        """Return the file with the labels of a recording."""
        return self.file.replace("{id}", id_).replace("{name}", PurePosixPath(id_).name)


class LabelIntervals(WrittenAs):
    """A CSV file, beside the card or in the data folder, lists anomalous intervals.

    A column ``sensors`` may name the sensors that an event shows in, separated by semicolons.

    Parameters
    ----------
    file
        Its path.
    recording, start, end
        Its columns. A file without the column of recordings is a log book: each of its intervals counts in every
        recording that has rows in it.
    unit
        What start and end are, both of which belong to the interval: "rows", counted from 0; "time", written as the
        times of the data; or "seconds" from the recording's first row.
    time_format
        How times are written; by default as ``columns.time_format`` says.
    """

    kind: Literal["intervals"]
    file: str
    recording: str = "recording"
    start: str = "start"
    end: str = "end"
    unit: Literal["rows", "time", "seconds"] = "rows"
    time_format: TimeFormats | None = None


class GapsAreErrors(CardTable):
    """A missing value is an error."""

    policy: Literal["error"]


class FillGaps(CardTable):
    """A sensor's last value in the same recording is carried forward, and every table says so.

    Parameters
    ----------
    at_most
        The longest run of missing values that may be filled, in rows; None for any.
    """

    policy: Literal["forward-fill"]
    at_most: Rows | None = None


class CutGaps(CardTable):
    """Rows with a missing value are left out, and the recording is cut there into pieces.

    Parameters
    ----------
    at_least
        How many rows a piece must have; shorter ones are left out.
    """

    policy: Literal["cut"]
    at_least: Rows = 2


class Long(CardTable):
    """The columns of files whose rows each hold one value of one sensor: a sample, or a change of the value.

    Parameters
    ----------
    name
        Name of the column with the sensor's name.
    value
        Name of the column with its value.
    """

    name: str
    value: str


class Resample(CardTable):
    """The regular grid that the rows of a file are laid on. It begins at the file's first time.

    Parameters
    ----------
    every
        Seconds from row to row.
    by
        What stands for the values from one row of the grid up to the next: their "median", their "mean", or the "last"
        of them, which holds until there is another. A row is anomalous if any of those that it stands for is.
    """

    every: Positive
    by: Literal["median", "mean", "last"] = "median"


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
    columns
        What the columns are.
    gaps
        What to do about missing values: ``policy`` is "error", "forward-fill" or "cut".
    labels
        Which rows are anomalous: ``kind`` is "column", "file" or "intervals". Without labels nothing can be judged.
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
    files: Files = Files()
    train: Train | None = None
    test: Part | None = None
    single: Single | None = None
    columns: Columns = Columns()
    gaps: Annotated[GapsAreErrors | FillGaps | CutGaps, Field(discriminator="policy")] = GapsAreErrors(policy="error")
    labels: Annotated[LabelColumn | LabelFile | LabelIntervals | None, Field(discriminator="kind")] = None
    long: Long | None = None
    resample: Resample | None = None
    states: dict[str, Annotated[dict[str, Annotated[float, Field(allow_inf_nan=False)]], Field(min_length=1)]] = {}
    splits: dict[str, Texts] = {}
    sessions: dict[str, Texts] = {}
    entities: dict[str, Texts] = {}
    description: str | None = None
    prior: str | None = None
    citation: str = ""
    licence: str = ""
    version: Rows = 1

    @model_validator(mode="after")
    def _consistent(self) -> Card:
        if (self.train is None) == (self.single is None) or (self.single is not None and self.test is not None):
            raise ValueError("give [train], and [test] if there are test files, or [single] alone for files with both")
        if "overall" in self.splits:
            raise ValueError("splits: 'overall' always holds all test recordings; leave it out")
        if self.splits and self.single is None and self.test is None:
            raise ValueError("splits are groups of test recordings, and there is no [test]; leave them out")
        if self.labels is None and any(part.before_event for _, part in self.parts):
            raise ValueError(f'"{BEFORE_FIRST_EVENT}" needs [labels]')
        timed = bool(self.columns.time) or self.columns.period is not None
        if self.long is not None and (self.resample is None or not self.columns.time):
            raise ValueError('[long] needs [resample], for instance every = 1 and by = "last", and columns.time')
        if self.resample is not None and not timed:
            raise ValueError("[resample] needs times: give columns.time or columns.period")
        unit = self.labels.unit if isinstance(self.labels, LabelIntervals) else None
        if unit == "rows" and self.resample is not None:
            raise ValueError('[resample] makes other rows than the files have: give intervals in unit = "time"')
        if unit in ("time", "seconds") and not timed:
            raise ValueError(f'labels.unit = "{unit}" needs times: give columns.time or columns.period')
        return self

    @property
    def parts(self) -> Iterator[tuple[Literal["train", "test", "single"], Part]]:
        """The parts that the card has, by name."""
        for name in ("train", "test", "single"):
            part: Part | None = getattr(self, name)
            if part is not None:
                yield name, part

    def file_format(self, part: WrittenAs | None = None) -> FileFormat:
        """Return the format of a part's files: its own keys, else those of ``[files]``, else the defaults."""
        part = part or self.test or self.single or self.train or self.files
        own = part.model_dump(include=set(WrittenAs.model_fields), exclude_none=True)
        unused = [self.labels.column] if isinstance(self.labels, LabelColumn) else []
        return FileFormat(
            time=listed(self.columns.time),
            time_formats=listed(self.columns.time_format),
            period=self.columns.period,
            unused=(*unused, *self.columns.ignore),
            fill="forward-fill" if isinstance(self.gaps, FillGaps) else "error",
            fill_at_most=self.gaps.at_most if isinstance(self.gaps, FillGaps) else None,
            missing=tuple(self.files.missing),
            long=None if self.long is None else (self.long.name, self.long.value),
            resample_every=None if self.resample is None else self.resample.every,
            resample_by="median" if self.resample is None else self.resample.by,
            states=tuple((pattern, tuple(codes.items())) for pattern, codes in self.states.items()),
            **self.files.model_dump(include=set(WrittenAs.model_fields), exclude_none=True) | own,
        )


def read_card(path: Path) -> tuple[Card | None, str, list[Issue]]:
    """Return the card in a file, None if it cannot be used at all; the file's text; and what is wrong with it."""
    return read_toml(path, Card, "the card", "tsadbench data new FOLDER  writes a card")
