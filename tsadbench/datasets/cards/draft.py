"""Draft a card for a folder of files: a guess at its columns and files, for a person to review."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import numpy as np
import pandas as pd

from tsadbench.base.file_format import FileFormat
from tsadbench.datasets.cards.files import File, as_counted
from tsadbench.datasets.cards.schema import NAME
from tsadbench.datasets.cards.sniff import sniff
from tsadbench.datasets.reading.cells import canonical
from tsadbench.datasets.reading.csv import CsvFile, open_csv
from tsadbench.datasets.reading.parquet import PARQUET, open_parquet
from tsadbench.datasets.reading.table import Table
from tsadbench.datasets.reading.text import MalformedError, first_lines, names_in
from tsadbench.datasets.reading.times import time_in_seconds
from tsadbench.errors import DataError, UsageError
from tsadbench.utils.text import printable
from tsadbench.utils.toml import toml_value

_ENDINGS = (".csv", ".txt", ".tsv", *PARQUET)
_COUNTER = re.compile(r"(unnamed.*|index|row|row ?id|id|nr|no|sample)?", re.IGNORECASE)
_TIME = re.compile(r"\b(date|time|timestamp|datetime|zeit|datum)\b|timestamp|datetime|_time$|^ts?$", re.IGNORECASE)
_LABEL = re.compile(r"anomal|label|lable|attack|fault|outlier|defect|failure|^(class|target|y|status)$", re.IGNORECASE)
_TRAINING = re.compile(r"train|normal|free|healthy|baseline|nominal|good", re.IGNORECASE)
_NORMAL = ("0", "normal", "ok", "none", "healthy", "good", "benign", "false", "no")
_MOST_LABELS = 10
_TIME_FORMATS = (
    "ISO8601",
    "%d.%m.%Y %H:%M:%S",
    "%d.%m.%Y %H:%M",
    "%d/%m/%Y %H:%M:%S",
    "%m/%d/%Y %H:%M:%S",
    "%d/%m/%Y %H:%M",
    "%m/%d/%Y %H:%M",
    "%d/%m/%Y %I:%M:%S %p",
    "%m/%d/%Y %I:%M:%S %p",
    "%Y/%m/%d %H:%M:%S",
)

_SESSIONS = """
# Recordings of one stretch of operation (a run, a day) resemble each other, and statistics count stretches. Put each
# training and test recording into one; without this table, shared rows and times tell which belong together.
# [sessions]
# monday = ["train/1", "test/*"]"""


@dataclass(slots=True)
class _Look:
    """What one file seems to hold.

    Parameters
    ----------
    file, file_format, table
        The file, its likely format, and how it is read.
    roles
        For each column that is not a sensor: "time", "label", "counter", "text" or "empty".
    time_format
        The format of its times.
    labels
        The first row of each value of its label, in order of appearance.
    missing
        How many sensor values are missing in its first rows.
    """

    file: File
    file_format: FileFormat
    table: Table
    roles: dict[str, str] = field(default_factory=dict)
    time_format: str = "ISO8601"
    labels: dict[str, int] = field(default_factory=dict)
    missing: int = 0

    def of_role(self, role: str) -> list[str]:
        return [name for name, other in self.roles.items() if other == role]

    @property
    def n_sensors(self) -> int:
        return len(self.table.header) - len(self.roles)


def draft_card(folder: Path) -> str:
    """Return a commented card for the CSV and Parquet files in a folder and the folders below it.

    Raises
    ------
    UsageError
        If there is no such folder, or no such file in it.
    DataError
        If a file cannot be read, or none is a table of numbers.
    """
    if not folder.is_dir():
        raise UsageError(f"{folder}: expected a folder with CSV or Parquet files; there is no such folder")
    paths = [path.relative_to(folder) for path in folder.rglob("*") if not path.is_dir()]
    found = [
        path.as_posix()
        for path in paths
        if path.suffix.lower() in _ENDINGS and not any(part.startswith(".") for part in path.parts)
    ]
    # Pipes, devices, links to nothing, and names that a card, which is UTF-8, cannot hold.
    strange = sorted(printable(name) for name in found if printable(name) != name or not (folder / name).is_file())
    names = [name for name in found if printable(name) not in strange]
    if not names:
        raise UsageError(f"{folder}: expected files that end in {', '.join(_ENDINGS)}, found none")
    looks = [_look(File(folder / name, name, name)) for name in sorted(names, key=as_counted)]
    tables = [look for look in looks if look.n_sensors > 0 and look.table.n_rows > 1]
    if not tables:
        raise DataError(f"{folder}: no file is a table with a header and columns of numbers")
    others = [*strange, *(look.file.name for look in looks if look not in tables)]
    return "\n".join(_card(folder, tables, others)) + "\n"


def _look(file: File) -> _Look:
    try:
        file_format, table = _opened(file)
        look = _Look(file, file_format, table)
        first = next(iter(table.chunks(range(len(table.header)))), None)
    except (OSError, ValueError, MalformedError) as error:
        reason = " ".join(str(error).split())[:200]
        raise DataError(f"{file.path}: cannot be read as a table ({reason}); repair it or take it out") from error
    if first is not None:
        _find_roles(look, first)
        _find_labels(look)
    return look


def _opened(file: File) -> tuple[FileFormat, Table]:
    """Return the likely format of a file, and the file; a text file that is not a table has no columns."""
    if file.is_parquet:
        return FileFormat(), open_parquet(file.path, FileFormat())
    file_format = sniff(file.path)
    number = int(file_format.header_line)
    lines, table = first_lines(file.path, file_format.encoding, number), None
    if len(lines) == number:
        table, _ = open_csv(file.path, file.name, file_format, number, names_in(lines[-1], file_format))
    return file_format, table or CsvFile(file.path, file_format, number, header=(), n_rows=0)


def _find_roles(look: _Look, rows: pd.DataFrame) -> None:
    """Guess what each column is from its name and its first rows."""
    n_missing = rows.isna().to_numpy().sum(axis=0).tolist()
    timed = False
    for place, (name, dtype) in enumerate(zip(look.table.header, rows.dtypes, strict=True)):
        numeric = pd.api.types.is_numeric_dtype(dtype)
        if n_missing[place] == len(rows):
            look.roles[name] = "empty"
        elif _COUNTER.fullmatch(name):
            look.roles[name] = "counter"
        elif _LABEL.search(name) and rows[place].nunique() <= _MOST_LABELS:
            look.roles[name] = "label"
        elif not timed and (form := _time_format(name, rows, place, numeric=numeric)) is not None:
            look.roles[name], look.time_format, timed = "time", form, True
        elif not numeric:
            look.roles[name] = "text"
        else:
            look.missing += n_missing[place]


def _time_format(name: str, rows: pd.DataFrame, place: int, *, numeric: bool) -> str | None:
    """Return the format of a column's times, or None if it seems to hold none."""
    if numeric and not _TIME.search(name):
        return None
    cells = rows[place]
    filled = cells.dropna().head(1000)
    if pd.api.types.is_datetime64_any_dtype(cells.dtype):
        return "ISO8601"
    if numeric:
        if not (np.diff(filled.to_numpy(np.float64)) >= 0).all():
            return None
        return "milliseconds" if filled.iloc[0] > 1e11 else "seconds"
    return next((form for form in _TIME_FORMATS if np.isfinite(time_in_seconds(filled, form)).all()), None)


def _find_labels(look: _Look) -> None:
    """Read the whole label: a fault may begin with the last row."""
    label = _label(look)
    if label is None:
        return
    place, start = look.table.header.index(label), 0
    for rows in look.table.chunks([place]):
        codes, values = pd.factorize(rows[place].astype("object"))
        for code, value in enumerate(values):
            look.labels.setdefault(canonical(value), start + int(np.argmax(codes == code)))
        start += len(rows)


def _label(look: _Look) -> str | None:
    """Return the most likely label column: one with a common name for labels before others."""
    candidates = look.of_role("label")
    order = ("anomaly", "label", "is_anomaly", "attack", "fault")
    return min(candidates, key=lambda name: order.index(name.lower()) if name.lower() in order else 9, default=None)


def _card(folder: Path, tables: Sequence[_Look], others: Sequence[str]) -> Iterable[str]:
    normal = _normal_value(tables)
    yield "# A card for tsadbench, written by looking at the files. Everything in it is a guess until you have read it."
    yield "# Then:  tsadbench data validate CARD   and   tsadbench run --dataset CARD --detector t2"
    yield "schema = 1"
    yield f"name = {toml_value(_name(folder))}"
    yield '# citation = ""    licence = ""'
    yield "# The system in words, and its physical couplings (docs/priors.md), as files beside this card:"
    yield '# description = "system.md"'
    yield '# prior = "prior.json"'
    if others:
        yield f"# No files with tables of numbers, so left out: {', '.join(others[:10])}"
    yield ""
    yield from _files(tables)
    yield from _parts(tables, normal)
    yield from _columns(tables, normal)
    yield from _missing(tables)
    yield from _splits(tables, normal)
    yield from _SESSIONS.splitlines()


def _files(tables: Sequence[_Look]) -> Iterable[str]:
    texts = [look for look in tables if isinstance(look.table, CsvFile)]
    if not texts:
        return
    yield "[files]"
    for key in ("separator", "decimal", "encoding", "header_line"):
        values = list(dict.fromkeys(getattr(look.file_format, key) for look in texts))
        yield f"{key} = {toml_value(values[0])}" + (f"  # FILES DIFFER: {values}" if len(values) > 1 else "")
    yield ""


def _parts(tables: Sequence[_Look], normal: str | None) -> Iterable[str]:
    train = [look for look in tables if _is_training(look, normal)]
    test = [look for look in tables if look not in train]
    if train and test:
        for role, looks in (("train", train), ("test", test)):
            if role == "train":
                yield "# Normal rows only: a training file whose label says otherwise is refused."
            yield f"[{role}]"
            yield f"files = {toml_value(_patterns(looks, tables))}"
            yield ""
        return
    yield "# No file seems to be for training alone: each gives its first rows for training, the others for testing."
    yield "[single]"
    yield f"files = {toml_value(_patterns(tables, tables))}"
    if all(look.file.train_rows is not None for look in tables):
        yield 'train_rows = "file name"  # the number after tr_'
    else:
        first = min((_first_anomaly(look, normal) for look in tables), default=0)
        yield f"train_rows = {max(1, first // 2)}  # half of what lies before the first anomaly"
    yield ""


def _columns(tables: Sequence[_Look], normal: str | None) -> Iterable[str]:
    first = tables[0]
    label = next((name for look in tables if (name := _label(look)) is not None), None)
    sensors = [name for name in first.table.header if name not in first.roles]
    roles = {name: role for look in tables for name, role in look.roles.items()}
    ignored = [name for name, role in roles.items() if name and role != "time" and name != label]
    times = first.of_role("time")
    yield "[columns]"
    if len(sensors) <= 100:
        yield f"sensors = {toml_value(sensors)}"
    else:
        yield f'sensors = ["*"]  # all {len(sensors)} that have no other use'
    if ignored:
        reasons = {"label": "another label", "counter": "counts rows", "text": "text", "empty": "empty"}
        why = "; ".join(f"{name}: {reasons[roles[name]]}" for name in ignored[:10])
        yield f"ignore = {toml_value(ignored)}  # {' '.join(why.split())}"
    if times:
        yield f"time = {toml_value(times[0])}"
        yield f"time_format = {toml_value(first.time_format)}"
    else:
        yield "# time = ...    No column seems to hold times. With a fixed rate, give the seconds from row to row:"
        yield "# period = 1"
    if label is None:
        yield 'label = "label"  # NOT FOUND: name the column that tells anomalous rows'
        return
    anomalous = [value for value in dict.fromkeys(v for look in tables for v in look.labels) if value != normal]
    yield f"label = {toml_value(label)}"
    yield f"anomalous = {toml_value(anomalous or ['1'])}" + ("" if anomalous else "  # no such row was found")
    yield f"normal = {toml_value([normal or '0'])}"


def _missing(tables: Sequence[_Look]) -> Iterable[str]:
    missing = {look.file.name: look.missing for look in tables if look.missing}
    yield ""
    yield "[missing]"
    if missing:
        count = sum(missing.values())
        some = next(iter(missing))
        yield f"# {count} values are missing in the first rows of {len(missing)} files, {some} among them."
    yield 'policy = "error"  # or "forward-fill": a sensor\'s last value is carried forward, and every table says so'


def _splits(tables: Sequence[_Look], normal: str | None) -> Iterable[str]:
    test = [look for look in tables if not _is_training(look, normal)]
    folders = list(dict.fromkeys(PurePosixPath(look.file.name).parent.as_posix() for look in test))
    if len(folders) < 2 or "." in folders:
        return
    yield ""
    yield "# Groups of test recordings that tables show apart."
    yield "[splits]"
    for folder in folders:
        yield f"{toml_value(PurePosixPath(folder).name)} = {toml_value([folder + '/*'])}"


def _is_training(look: _Look, normal: str | None) -> bool:
    """Whether a file seems to be for training: by its name or for lack of a label, and without anomalous rows."""
    sound = not any(value != normal for value in look.labels)
    return sound and (bool(_TRAINING.search(look.file.name)) or not look.labels)


def _normal_value(tables: Sequence[_Look]) -> str | None:
    """Return the label of normal rows: one with a common name for them, or else the one that most files begin with."""
    values = list(dict.fromkeys(value for look in tables for value in look.labels))
    called = [value for name in _NORMAL for value in values if value.lower() == name]
    begin = [next(iter(look.labels)) for look in tables if look.labels]
    return called[0] if called else max(begin, key=begin.count, default=None)


def _first_anomaly(look: _Look, normal: str | None) -> int:
    return min((row for value, row in look.labels.items() if value != normal), default=look.table.n_rows)


def _patterns(looks: Sequence[_Look], all_looks: Sequence[_Look]) -> list[str]:
    """Return patterns that match these files and no others, or the files themselves if a folder holds both kinds."""
    patterns: dict[str, None] = {}
    chosen = {look.file.name for look in looks}
    for look in looks:
        path = PurePosixPath(look.file.name)
        pattern = path.with_name(f"*{path.suffix}").as_posix()
        matching = {other.file.name for other in all_looks if PurePosixPath(other.file.name).match(pattern)}
        same_depth = {name for name in matching if name.count("/") == look.file.name.count("/")}
        patterns[pattern if same_depth <= chosen and len(same_depth) > 1 else look.file.name] = None
    return list(patterns)


def _name(folder: Path) -> str:
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", folder.resolve().name).strip("-._")
    return name if re.fullmatch(NAME, name) else "my-plant"
