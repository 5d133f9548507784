"""Sort the files of a stranger's folder by their names and contents: training, test, labels and leftovers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import numpy as np
import pandas as pd

from tsadbench.base.file_format import FileFormat
from tsadbench.datasets.boxed import ARRAYS
from tsadbench.datasets.formats import PARQUET, read_files
from tsadbench.datasets.look import Look, find_roles, fitting_times, sniffed, values_in
from tsadbench.datasets.reader import LABEL, as_counted
from tsadbench.datasets.times import time_in_seconds
from tsadbench.errors import DataError, UsageError
from tsadbench.utils.files import digest
from tsadbench.utils.text import first_of, printable
from tsadbench.utils.toml import toml_value

TEXTS = (".csv", ".txt", ".tsv")
ENDINGS = (*TEXTS, *PARQUET, *ARRAYS)
# The default protocol evaluates a test recording's rows after its first 30.
FEWEST_TEST_ROWS = 31
_TRAINING = re.compile(r"train|normal|healthy|baseline|nominal|good", re.IGNORECASE)
_TEST = re.compile(
    r"test(?!bed|rig|stand)|(?<!z)eval|fault|anomal|attack|fail|broken|ab-?normal|unhealthy|st(ö|oe)r|fehler|defe[ck]t"
    r"|(not?|non)[-_ ]?(normal|good|healthy|nominal)",
    re.IGNORECASE,
)
_FAULT_FREE = re.compile(r"(fault|fail(ure)?|anomal(y|ies)|attack|error|leak)s?[-_ ]?free", re.IGNORECASE)
_NORMAL = ("0", "normal", "ok", "none", "healthy", "good", "benign", "false", "no")
_START = re.compile(r"(start|begin|beginn|from|von)([ _-]?(time|date|zeit|row))?", re.IGNORECASE)
_END = re.compile(r"(end|ende|stop|to|until|bis)([ _-]?(time|date|zeit|row))?", re.IGNORECASE)
# What a card says of how text files are written.
WRITTEN_AS = ("separator", "decimal", "encoding", "header_line", "units_line")


@dataclass(slots=True)
class Sorted:
    """What the files of a folder seem to be for."""

    looks: list[Look] = field(default_factory=list)
    told: list[str] = field(default_factory=list)  # which files are for what, and why
    decide: list[str] = field(default_factory=list)  # what only a person can decide
    train: list[Look] = field(default_factory=list)
    test: list[Look] = field(default_factory=list)
    before_event: bool = False  # whether the same files train up to their first anomaly
    normal: str | None = None  # the label of normal rows
    labels: list[str] = field(default_factory=list)  # the lines of [labels], if files of their own hold them
    ids: str = ""  # the line that says what test recordings are called, if labels are called so

    def tell(self, role: str, reason: str, names: Sequence[str]) -> None:
        """Note what files are for, and why."""
        if names:
            self.told.append(f"{role:<8} {first_of(names, 5)}: {reason}")


def sort_files(folder: Path) -> Sorted:
    """Return what the files of a folder, and of the folders below it, seem to be for; errors as for `draft_card`."""
    found = Sorted()
    found.looks = _of_one_kind(_guess_labels(_looks(folder, found), found), found)
    if not found.looks:
        raise DataError("\n  ".join([f"{folder}: no file is a table of numbers with a header", *found.told]))
    values = dict.fromkeys(value for look in found.looks for value in look.labels)
    usual = [value for name in _NORMAL for value in values if value.lower() == name]
    found.normal = next(iter([*usual, *values]), None)
    _sort(found.looks, found)
    return found


def _looks(folder: Path, found: Sorted) -> list[Look]:
    """Return a look at each file that can be read as a table, and tell of the others."""
    if not folder.is_dir():
        raise UsageError(f"{folder}: expected a folder with CSV, Parquet or array files")
    paths = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if not path.is_dir()}
    names = [name for name in sorted(paths, key=as_counted) if not re.search(r"(^|/)\.|\.toml$", name)]
    files = {
        name: paths[name]
        for name in names
        if paths[name].suffix.lower() in ENDINGS and printable(name) == name and paths[name].is_file()
    }
    found.tell("left out", "no tables; save workbooks as CSV, unpack archives", [n for n in names if n not in files])
    if not files:
        raise UsageError(f"{folder}: expected files that end in {', '.join(ENDINGS)}, found none")
    forms = {name: sniffed(path) if path.suffix.lower() in TEXTS else FileFormat() for name, path in files.items()}
    tables, issues = read_files(files, lambda name: forms[name])
    for issue in {issue.file: issue for issue in reversed(issues)}.values():
        found.tell("left out", str(issue).partition(": ")[2], [issue.file])
    looks = []
    for name, arrays in tables.items():
        widest = max((table.frame.shape[1] for table in arrays.values()), default=0)
        wide = {array: table for array, table in arrays.items() if table.frame.shape[1] == widest}
        frame = next(iter(wide.values())).frame if wide else pd.DataFrame()
        if isinstance(frame.columns, pd.RangeIndex):
            frame = frame.set_axis([f"x{number}" for number in range(1, widest + 1)], axis=1)
        if frame.columns.has_duplicates:
            found.tell("left out", "two of its columns have the same name", [name])
            continue
        looks.append(Look(name, files[name], forms[name], frame, tuple(wide) if len(arrays) > 1 else ()))
        find_roles(looks[-1])
    return looks


def _of_one_kind(looks: Sequence[Look], found: Sorted) -> list[Look]:
    """Return the files with numbers that have all columns that most rows have, and of equal files the first."""
    rows: Counter[frozenset[str]] = Counter()
    seen: dict[str, str] = {}
    kept = []
    for look in sorted(looks, key=lambda look: (len(look.name), look.name)):
        same = seen.setdefault(digest(look.path.read_bytes()), look.name)
        if not look.sensors or len(look.frame) < 2:
            text = next(iter(look.texts.items()), None)
            holds = f": column {text[0]!r} holds texts such as {text[1][0][:40]!r}" if text else ""
            found.tell("left out", f"no table of numbers{holds}", [look.name])
        elif same != look.name:
            found.tell("left out", f"the same bytes as {same}", [look.name])
        else:
            kept.append(look)
            rows[frozenset({*look.sensors, *filter(None, [look.time])})] += len(look.frame)
    # Of kinds whose columns others have as well, the one that lets most rows in.
    fitting = {kind: sum(n for other, n in rows.items() if kind <= other) for kind in rows}
    columns = max(fitting, key=lambda kind: (fitting[kind], len(kind)), default=frozenset())
    for look in kept:
        if lacking := sorted(columns.difference(look.frame.columns)):
            found.tell("left out", f"it lacks columns of most rows: {first_of(lacking, 3)}", [look.name])
    return [look for look in looks if look in kept and columns <= set(look.frame.columns)]


def _guess_labels(looks: Sequence[Look], found: Sorted) -> list[Look]:
    """Find files that hold the labels of others, and return the others."""
    if any(look.label for look in looks if look.sensors):
        return [*looks]
    for look in looks:
        start, end = (next(filter(form.fullmatch, look.frame.columns), "") for form in (_START, _END))
        others = [other for other in looks if other is not look]
        if start and end and others and len(look.frame):
            found.labels = _intervals(look, start, end, others)
            if found.labels:
                found.tell("labels", "it lists intervals", [look.name])
                return others
    used = []
    for other in looks:
        if other.frame.shape[1] != 1 or not LABEL.search(other.name):
            continue
        for look in sorted(looks, key=lambda look: -len(look.name)):
            id_, short = str(PurePosixPath(look.name).with_suffix("")), PurePosixPath(look.name).stem
            called = id_ if id_ in other.name else short if short == PurePosixPath(other.name).stem else ""
            above = len(look.frame) - len(other.frame)  # 1 if a label has been taken for the column's name
            if look is other or not called or above not in (0, 1) or look.frame.shape[1] < 2:
                continue
            look.labels = {value: row + above for value, row in values_in(other.frame.iloc[:, 0]).items()}
            look.labels |= {str(other.frame.columns[0]): 0} if above else {}
            # Not "{name}" in the file: two recordings of one name would share labels; as ids, the reader refuses them.
            found.ids = "" if called == id_ else 'ids = "file name"'
            found.labels = ['kind = "file"', f"file = {toml_value('{id}'.join(other.name.rsplit(called, 1)))}"]
            used.append(other)
            break
    found.tell("labels", "they tell which rows of other files are anomalous", [look.name for look in used])
    return [look for look in looks if look not in used]


def _intervals(look: Look, start: str, end: str, others: Sequence[Look]) -> list[str]:
    """Give files the first rows of their intervals; return the lines of ``[labels]``, none if no interval is found."""
    frame, form = look.frame, ""
    timed = [other for other in others if other.time is not None]
    in_rows = all(pd.api.types.is_integer_dtype(frame[name].dtype) for name in (start, end))
    if not in_rows:
        form = next(iter(fitting_times(pd.concat([frame[start], frame[end]]))), "")
    if (in_rows and "recording" not in frame) or not (in_rows or (form and timed)):
        return []
    first, last = ((frame[name].to_numpy() if in_rows else time_in_seconds(frame[name], form)) for name in (start, end))
    for other in others if in_rows else timed:
        names = frame.get("recording", pd.Series([""] * len(frame))).astype(str)
        mine = names.isin(["", str(PurePosixPath(other.name).with_suffix(""))]).to_numpy()
        rows = np.arange(len(other.frame)) if in_rows else other.seconds
        inside = np.zeros(len(rows), dtype=np.bool_)
        for begin, stop in zip(first[mine], last[mine], strict=True):
            inside |= (rows >= begin) & (rows <= stop)
        if inside.any():
            other.labels = {"0": 0, "1": int(np.argmax(inside))}
    written = [f"{key} = {toml_value(name)}" for key, name in (("start", start), ("end", end)) if name != key]
    if not in_rows and form != timed[0].time_format:
        written.append(f"time_format = {toml_value(form)}")
    own, usual = look.form, (timed or others)[0].form
    differing = [key for key in WRITTEN_AS if getattr(own, key) != getattr(usual, key)]
    written += [f"{key} = {toml_value(getattr(own, key))}" for key in differing]
    unit = "rows" if in_rows else "time"
    return ['kind = "intervals"', f"file = {toml_value(look.name)}", f'unit = "{unit}"', *written]


def _sort(looks: Sequence[Look], found: Sorted) -> None:
    """Sort files by their names and labels; a file whose name says test never trains as a whole."""
    plain = {look.name: _FAULT_FREE.sub("normal", look.name) for look in looks}
    faulty = [look for look in looks if look.first_anomaly(found.normal) < len(look.frame)]
    called_test = [look for look in looks if _TEST.search(plain[look.name])]
    test = [look for look in looks if look in faulty or look in called_test]
    normal = [look for look in looks if look not in test and _TRAINING.search(plain[look.name])]
    others = [look for look in looks if look not in test and look not in normal]
    found.tell("train", "its name says normal or training", [look.name for look in normal])
    found.tell("test", "its name speaks of tests or faults", [look.name for look in called_test])
    found.tell("test", "rows are labelled anomalous", [look.name for look in faulty if look not in called_test])
    if normal:
        found.train, test = normal, [look for look in looks if look not in normal]
        found.tell("test", "its name does not say normal, as that of others does", [look.name for look in others])
    elif others:
        names = [look.name for look in others]
        found.train = others
        found.tell("train", "nothing speaks against it", names)
        found.decide.append(f"{first_of(names, 5)} train only because nothing speaks against it: are all rows normal?")
    elif begun := [look for look in test if look.first_anomaly(found.normal) > 0 and look in faulty]:
        found.train, found.before_event = begun, True
        found.tell(
            "train", "no file is for training alone: the rows before the first anomaly", [one.name for one in begun]
        )
    else:
        found.decide.append("No file seems to hold normal rows alone: name those that do under [train].")
    short = [look.name for look in test if len(look.frame) < FEWEST_TEST_ROWS]
    found.tell("left out", f"a test file of fewer than {FEWEST_TEST_ROWS} rows is not judged", short)
    found.test = [look for look in test if look.name not in short]
    if found.test and not any(look.labels for look in looks):
        found.decide.append("No labels were found: the test files can be scored, and nothing can be compared.")
