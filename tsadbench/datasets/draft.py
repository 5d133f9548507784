"""Drafts a card for a folder of files from their names and contents, for a person to correct."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np
import pandas as pd
from jinja2 import Environment, FileSystemLoader

from tsadbench.base.file_format import FileFormat
from tsadbench.datasets.arrays import ARRAYS
from tsadbench.datasets.card import NAME, canonical
from tsadbench.datasets.formats import read_files
from tsadbench.datasets.look import Look, fitting_format, sniffed
from tsadbench.datasets.reader import LABEL, as_counted, load_card
from tsadbench.datasets.times import time_in_seconds
from tsadbench.errors import DataError, UsageError
from tsadbench.utils.arrays import BoolArray
from tsadbench.utils.files import write_file
from tsadbench.utils.issues import Issue
from tsadbench.utils.text import first_of, printable
from tsadbench.utils.toml import toml_value

_TEXTS = (".csv", ".txt", ".tsv")
_ENDINGS = (*_TEXTS, *ARRAYS)
_TRAINING = re.compile(r"(?i)train|normal|healthy|baseline|nominal|good")
_TEST = re.compile(
    r"(?i)test(?!bed|rig|stand)|(?<!z)eval|(?<!de)fault|anomal|attack|fail|broken|ab-?normal|unhealthy|st(ö|oe)r|fehler"
    r"|defe[ck]t|(not?|non)[-_ ]?(normal|good|healthy|nominal)"
)
_FAULT_FREE = re.compile(r"(?i)(fault|fail(ure)?|anomal(y|ies)|attack|error|leak)s?[-_ ]?free")
_NORMAL = ("0", "normal", "ok", "none", "healthy", "good", "benign", "false", "no")
_USUAL_LABELS = ("anomaly", "label", "is_anomaly", "attack", "fault")
_START = re.compile(r"(?i)(start|begin|beginn|from|von)([ _-]?(time|date|zeit|row))?")
_END = re.compile(r"(?i)(end|ende|stop|to|until|bis)([ _-]?(time|date|zeit|row))?")
_WRITTEN_AS = ("separator", "decimal", "encoding", "header_line", "units_line")
_UNSURE = "no sign of faults"
_MOST_NAMED = 100  # sensors; a card with more has a pattern
_LOADER = FileSystemLoader(Path(__file__).parent)
_ENVIRONMENT = Environment(trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, loader=_LOADER)
_ENVIRONMENT.filters |= {"toml": toml_value, "line": printable, "first_of": first_of}


class Draft(NamedTuple):
    """A drafted card: its text with comments, its issues, its first rows as read, and whether tests are labelled."""

    text: str
    problems: str
    rows: str
    judged: bool


def draft_card(card: Path) -> Draft:
    """Write a draft of a card for the files below its folder, and try it on them.

    Raises a UsageError if the folder has no files, a DataError if none is a table.
    """
    if not card.parent.is_dir():
        raise UsageError(f"{card.parent}: expected a folder with CSV, Parquet or array files")
    text = _Drafter(card.parent).card()
    write_file(card, text)
    try:
        loaded = load_card(card)
    except DataError as error:
        return Draft(text, str(error), "", judged=False)
    first = loaded.dataset.train[0]
    rows = pd.DataFrame(first.values[:3, :8], columns=first.sensors[:8])
    rows.index = rows.index if first.time is None else pd.to_datetime(first.time[:3], unit="s", errors="coerce")
    return Draft(text, "", f"{first.id}\n{rows.to_string()}", judged=not loaded.missing)


class _Drafter:
    """Sorts the files of a folder by their names and contents: training, test, labels and leftovers."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._told: dict[tuple[str, str], list[str]] = {}  # (role, reason) -> file names
        self._labels: dict[str, object] = {}  # the keys of [labels]
        self._looks = self._of_one_kind(self._labelled([*self._read()]))
        if not self._looks:
            raise DataError("\n  ".join([f"{folder}: no file is a table of numbers with a header", *self._reasons()]))
        values = {value: None for look in self._looks if look.labels is not None for value in look.labels.dropna()}
        normal = min(values, key=lambda one: [*_NORMAL, one.lower()].index(one.lower()), default=None)
        if len(values) > 1 and self._labels["kind"] != "intervals":
            self._labels |= {"anomalous": [value for value in values if value != normal], "normal": [normal]}
        self._sort({look.name: look.anomalous(normal) for look in self._looks})

    def _tell(self, role: str, reason: str, name: str) -> None:
        self._told.setdefault((role, reason), []).append(name)

    def _reasons(self) -> list[str]:
        return [f"{role:<8} {first_of(names, 5)}: {reason}" for (role, reason), names in self._told.items()]

    def _read(self) -> Iterator[Look]:
        """Yield a `Look` at each file that can be read as a table."""
        paths = {path.relative_to(self._folder).as_posix(): path for path in self._folder.rglob("*") if path.is_file()}
        forms = {}
        for name in sorted(paths, key=as_counted):
            ending = paths[name].suffix.lower()
            if re.search(r"(^|/)\.|\.toml$", name):
                continue
            if ending in _ENDINGS and printable(name) == name:
                forms[name] = sniffed(paths[name]) if ending in _TEXTS else FileFormat()
            else:
                self._tell("left out", "no tables; save workbooks as CSV, unpack archives", name)
        if not forms:
            raise UsageError(f"{self._folder}: expected files that end in {', '.join(_ENDINGS)}, found none")
        issues = list[Issue]()
        tables = read_files({name: paths[name] for name in forms}, forms.__getitem__, issues)
        for issue in {issue.file: issue for issue in reversed(issues)}.values():
            self._tell("left out", str(issue).partition(": ")[2], issue.file)
        for name, arrays in tables.items():
            widest = max(table.shape[1] for table in arrays.values())
            wide = {array: table for array, table in arrays.items() if table.shape[1] == widest}
            frame = next(iter(wide.values())).reset_index(drop=True)
            if isinstance(frame.columns, pd.RangeIndex):
                frame.columns = [f"x{number}" for number in range(1, widest + 1)]
            if frame.columns.has_duplicates:
                self._tell("left out", "two columns have the same name", name)
            else:
                yield Look(name, paths[name], forms[name], frame, tuple(wide) if len(arrays) > 1 else ())

    def _labelled(self, looks: list[Look]) -> list[Look]:
        """Label files from a column or an interval file; return the files without the interval file."""
        if columns := [name for look in looks if look.those("sensor") for name in look.those("label")]:
            column = min(columns, key=lambda name: [*_USUAL_LABELS, name.lower()].index(name.lower()))
            self._labels = {"kind": "column", "column": column}
            for look in looks:
                look.labels = look.frame[column].map(canonical, na_action="ignore") if column in look.frame else None
            return looks
        for look in looks:
            start, end = (next(filter(form.fullmatch, look.frame.columns), "") for form in (_START, _END))
            others = [other for other in looks if other is not look]
            if start and end and others and len(look.frame) and self._intervals(look, start, end, others):
                self._tell("labels", "lists intervals", look.name)
                return others
        return looks

    def _intervals(self, look: Look, start: str, end: str, others: Sequence[Look]) -> bool:
        """Label files from a file if it lists intervals; return whether it does."""
        cells = look.frame[[start, end]]
        in_rows = all(map(pd.api.types.is_integer_dtype, cells.dtypes))
        concerned = [other for other in others if in_rows or other.time_format]
        form = "" if in_rows else fitting_format(pd.concat([cells[start], cells[end]]))
        if not ("recording" in look.frame if in_rows else form and concerned):
            return False
        first, last = (cells[name].to_numpy() if in_rows else time_in_seconds(cells[name], form) for name in cells)
        names = look.frame.get("recording", pd.Series("", look.frame.index)).astype(str)
        for other in concerned:
            mine = names.isin(["", str(PurePosixPath(other.name).with_suffix(""))]).to_numpy()
            rows = np.arange(len(other.frame)) if in_rows else other.seconds
            begun = np.searchsorted(np.sort(first[mine]), rows, side="right")
            inside = begun > np.searchsorted(np.sort(last[mine]), rows, side="left")
            other.labels = pd.Series(np.where(inside, "1", "0")) if inside.any() else None
        self._labels = {"kind": "intervals", "file": look.name, "unit": "rows" if in_rows else "time"}
        self._labels |= {key: name for key, name in (("start", start), ("end", end)) if name != key}
        if not in_rows and form != concerned[0].time_format:
            self._labels["time_format"] = form
        written = {key: getattr(look.form, key) for key in _WRITTEN_AS}
        self._labels |= {key: own for key, own in written.items() if own != getattr(concerned[0].form, key)}
        return True

    def _of_one_kind(self, looks: Sequence[Look]) -> list[Look]:
        """Return the numeric files that have the columns shared by most rows."""
        kept = list[Look]()
        for look in looks:
            if not look.those("sensor") or len(look.frame) < 2:
                texts = [f": column {name!r} holds texts such as {own[0][:40]!r}" for name, own in look.texts.items()]
                advice = "; a log book needs both ends in every line" * any(map(_START.fullmatch, look.frame.columns))
                self._tell("left out", f"no table of numbers{''.join(texts[:1])}{advice}", look.name)
            elif look.frame.shape[1] == 1 and LABEL.search(look.name):
                self._tell("left out", 'its name suggests labels: see kind = "file" under [labels]', look.name)
            else:
                kept.append(look)
        kinds = [frozenset(look.those("sensor", "time")) for look in kept]
        # Of the sets of columns, choose the one shared by most rows.
        rows = {kind: sum(len(one.frame) for one in kept if kind.issubset(one.frame)) for kind in kinds}
        columns = max(kinds, key=lambda kind: (rows[kind], len(kind)), default=frozenset[str]())
        for look in kept:
            if lacking := sorted(columns.difference(look.frame)):
                self._tell("left out", f"lacks columns that most rows have: {first_of(lacking, 3)}", look.name)
        return [look for look in kept if columns.issubset(look.frame)]

    def _sort(self, anomalous: dict[str, BoolArray]) -> None:
        """Sort the files into training and test. A file whose name says test never trains as a whole."""
        for look in self._looks:
            plain = _FAULT_FREE.sub("normal", look.name)
            if _TEST.search(plain):
                look.role, look.reason = "test", "its name suggests tests or faults"
            elif anomalous[look.name].any():
                look.role, look.reason = "test", "some rows are labelled anomalous"
            elif _TRAINING.search(plain):
                look.role, look.reason = "train", "its name says normal or training"
        roles = {look.role for look in self._looks}
        for look in self._looks:
            rows = anomalous[look.name]
            if not look.role and "train" in roles:
                look.role, look.reason = "test", "its name does not say normal, but other names do"
            elif not look.role:
                look.role, look.reason = "train", _UNSURE
            elif roles == {"test"} and rows.any() and not rows[0]:
                look.role, look.reason = "both", "no file is normal throughout: only rows before an anomaly train"
            self._tell(look.role, look.reason, look.name)

    def card(self) -> str:
        """Return the card's text."""
        looks, first, label = self._looks, self._looks[0], self._labels.get("column")
        roles = {name: role for look in looks for name, role in look.roles.items() if role not in ("sensor", "time")}
        ignored = {name: role for name, role in roles.items() if name and name != label}
        shared = set.intersection(*(set(look.frame) for look in looks))
        forms = [look.form for look in looks if look.path.suffix.lower() in _TEXTS]
        missing = [int(look.frame[look.those("sensor")].isna().any(axis=1).sum()) for look in looks]
        sensors = [name for name in first.those("sensor") if name in shared and name not in ignored]
        lacking = dict.fromkeys(name for look in looks for name in look.those("sensor") if name not in shared)
        if len(sensors) > _MOST_NAMED:  # a pattern would match what some files lack
            sensors = ["*", *filter(LABEL.search, sensors)]
            ignored |= dict.fromkeys(lacking, "some files lack it")
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", self._folder.resolve().name).strip("-._")
        return _ENVIRONMENT.get_template("draft.toml.jinja").render(
            looks=looks,
            told=self._reasons(),
            unsure=self._told.get(("train", _UNSURE)),
            name=name if re.fullmatch(NAME, name) else "my-plant",
            written_as={key: [*dict.fromkeys(getattr(form, key) for form in forms)] for key in _WRITTEN_AS},
            train=_patterns(look for look in looks if look.role in ("train", "both")),
            test=_patterns(look for look in looks if look.role in ("test", "both")),
            single=all(re.search(r"_tr_\d+", look.name) for look in looks),
            unlabelled=all(look.labels is None for look in looks),
            unnamed=first.path.suffix.lower() in ARRAYS and first.frame.columns[0] == "x1",
            sensors=sensors,
            ignored=ignored,
            lacking=[*lacking],
            labels=self._labels,
            n_missing=sum(missing),
            cut=all(2 * count < len(look.frame) for count, look in zip(missing, looks, strict=True)),
        )


def _patterns(looks: Iterable[Look]) -> list[str]:
    """Return patterns that match only these files, or the file names if a folder also holds other files."""
    chosen, patterns = {look.path: look.name for look in looks}, dict[str, None]()
    for path, name in chosen.items():
        alike = [other for other in path.parent.iterdir() if other.suffix == path.suffix]
        above = glob.escape(name.removesuffix(path.name))
        patterns[f"{above}*{path.suffix}" if len(alike) > 1 and chosen.keys() >= {*alike} else glob.escape(name)] = None
    return [*patterns]
