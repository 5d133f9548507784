"""Draft a card for a folder of files: a guess at its columns and files, for a person to review."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from tsadbench.datasets.cards.files import File, as_counted
from tsadbench.datasets.cards.label_guess import guess_labels
from tsadbench.datasets.cards.look import ENDINGS, Look, label_of, look_at
from tsadbench.datasets.cards.schema import NAME
from tsadbench.datasets.reading.csv import CsvFile
from tsadbench.datasets.reading.table import NamedTable
from tsadbench.errors import DataError, UsageError
from tsadbench.utils.text import printable
from tsadbench.utils.toml import toml_value

_TRAINING = re.compile(r"train|normal|free|healthy|baseline|nominal|good", re.IGNORECASE)
_NORMAL = ("0", "normal", "ok", "none", "healthy", "good", "benign", "false", "no")

_SESSIONS = """
# Recordings of one stretch of operation (a run, a day) resemble each other, and statistics count stretches. Put each
# training and test recording into one; without this table, shared rows and times tell which belong together.
# [sessions]
# monday = ["train/1", "test/*"]"""


def draft_card(folder: Path) -> str:
    """Return a commented card for the files of tables and arrays in a folder and the folders below it.

    Raises
    ------
    UsageError
        If there is no such folder, or no such file in it.
    DataError
        If a file cannot be read, or none is a table of numbers.
    """
    if not folder.is_dir():
        raise UsageError(f"{folder}: expected a folder with CSV, Parquet or array files; there is no such folder")
    paths = [path.relative_to(folder) for path in folder.rglob("*") if not path.is_dir()]
    found = [
        path.as_posix()
        for path in paths
        if path.suffix.lower() in ENDINGS and not any(part.startswith(".") for part in path.parts)
    ]
    # Pipes, devices, links to nothing, and names that a card, which is UTF-8, cannot hold.
    strange = sorted(printable(name) for name in found if printable(name) != name or not (folder / name).is_file())
    names = [name for name in found if printable(name) not in strange]
    if not names:
        raise UsageError(f"{folder}: expected files that end in {', '.join(ENDINGS)}, found none")
    looks = [look_at(File(folder / name, name, name)) for name in sorted(names, key=as_counted)]
    labels, with_labels = guess_labels(looks)
    used = {look.file.name for look in with_labels}
    tables = [look for look in looks if look.n_sensors > 0 and look.table.n_rows > 1 and look.file.name not in used]
    if not tables:
        raise DataError(f"{folder}: no file is a table with a header and columns of numbers")
    known = used | {look.file.name for look in tables}
    others = [*strange, *(look.file.name for look in looks if look.file.name not in known)]
    return "\n".join(_card(folder, tables, others, labels, with_labels)) + "\n"


def _card(
    folder: Path, tables: Sequence[Look], others: Sequence[str], labels: Sequence[str], with_labels: Sequence[Look]
) -> Iterable[str]:
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
    yield from _parts(tables, normal, with_labels)
    yield from _columns(tables, normal, labels)
    yield from _missing(tables)
    yield from _splits(tables, normal)
    yield from _SESSIONS.splitlines()


def _files(tables: Sequence[Look]) -> Iterable[str]:
    texts = [look for look in tables if isinstance(look.table, CsvFile)]
    if not texts:
        return
    yield "[files]"
    for key in ("separator", "decimal", "encoding", "header_line"):
        values = list(dict.fromkeys(getattr(look.file_format, key) for look in texts))
        yield f"{key} = {toml_value(values[0])}" + (f"  # FILES DIFFER: {values}" if len(values) > 1 else "")
    yield ""


def _parts(tables: Sequence[Look], normal: str | None, with_labels: Sequence[Look]) -> Iterable[str]:
    known = [*tables, *with_labels]
    train = [look for look in tables if _is_training(look, normal)]
    test = [look for look in tables if look not in train]
    if train and test:
        for role, looks in (("train", train), ("test", test)):
            if role == "train":
                yield "# Normal rows only: a training file whose label says otherwise is refused."
            yield f"[{role}]"
            yield f"files = {toml_value(_patterns(looks, known))}"
            yield from _variables(looks)
            yield ""
        return
    yield "# No file seems to be for training alone: each gives its first rows for training, the others for testing."
    yield "[single]"
    yield f"files = {toml_value(_patterns(tables, known))}"
    yield from _variables(tables)
    if all(look.file.train_rows is not None for look in tables):
        yield 'train_rows = "file name"  # the number after tr_'
    else:
        first = min((_first_anomaly(look, normal) for look in tables), default=0)
        rows, reason = max(1, first // 2), "half of what lies before the first anomaly"
        yield f'train_rows = {rows}  # {reason}; or "before first event"'
    yield ""


def _variables(looks: Sequence[Look]) -> Iterable[str]:
    variables = list(dict.fromkeys(name for look in looks for name in look.variables))
    if variables:
        yield f"variables = {toml_value(variables)}  # the widest arrays"


def _columns(tables: Sequence[Look], normal: str | None, labels: Sequence[str]) -> Iterable[str]:
    first = tables[0]
    label = next((name for look in tables if (name := label_of(look)) is not None), None)
    sensors = [name for name in first.table.header if name not in first.roles]
    roles = {name: role for look in tables for name, role in look.roles.items()}
    ignored = [name for name, role in roles.items() if name and role != "time" and name != label]
    times = first.of_role("time")
    yield "[columns]"
    if any(isinstance(look.table, NamedTable) for look in tables):
        yield 'names = "x{number}"  # arrays have no names; better: a list of them'
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
    if label is None and not labels:
        yield 'label = "label"  # NOT FOUND: name the column that tells anomalous rows, or give [labels] instead'
        return
    anomalous = [value for value in dict.fromkeys(v for look in tables for v in look.labels) if value != normal]
    if not labels:
        yield f"label = {toml_value(label)}"
    yield f"anomalous = {toml_value(anomalous or ['1'])}" + ("" if anomalous else "  # no such row was found")
    yield f"normal = {toml_value([normal or '0'])}"
    if labels:
        yield ""
        yield "# No column tells anomalous rows, but files of their own seem to."
        yield from labels


def _missing(tables: Sequence[Look]) -> Iterable[str]:
    missing = {look.file.name: look.missing for look in tables if look.missing}
    yield ""
    yield "[missing]"
    if missing:
        count = sum(missing.values())
        some = next(iter(missing))
        yield f"# {count} values are missing in the first rows of {len(missing)} files, {some} among them."
    yield 'policy = "error"  # or "forward-fill": a sensor\'s last value is carried forward, and every table says so'


def _splits(tables: Sequence[Look], normal: str | None) -> Iterable[str]:
    test = [look for look in tables if not _is_training(look, normal)]
    folders = list(dict.fromkeys(PurePosixPath(look.file.name).parent.as_posix() for look in test))
    if len(folders) < 2 or "." in folders:
        return
    yield ""
    yield "# Groups of test recordings that tables show apart."
    yield "[splits]"
    for folder in folders:
        yield f"{toml_value(PurePosixPath(folder).name)} = {toml_value([folder + '/*'])}"


def _is_training(look: Look, normal: str | None) -> bool:
    """Whether a file seems to be for training: by its name or for lack of a label, and without anomalous rows."""
    sound = not any(value != normal for value in look.labels)
    return sound and (bool(_TRAINING.search(look.file.name)) or not look.labels)


def _normal_value(tables: Sequence[Look]) -> str | None:
    """Return the label of normal rows: one with a common name for them, or else the one that most files begin with."""
    values = list(dict.fromkeys(value for look in tables for value in look.labels))
    called = [value for name in _NORMAL for value in values if value.lower() == name]
    begin = [next(iter(look.labels)) for look in tables if look.labels]
    return called[0] if called else max(begin, key=begin.count, default=None)


def _first_anomaly(look: Look, normal: str | None) -> int:
    return min((row for value, row in look.labels.items() if value != normal), default=look.table.n_rows)


def _patterns(looks: Sequence[Look], all_looks: Sequence[Look]) -> list[str]:
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
