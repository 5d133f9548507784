"""Sort the files of a folder into training, test, labels and leftovers, by their names and contents."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tsadbench.datasets.cards.copies import originals_of
from tsadbench.datasets.cards.doubts import agree_on_dates, text_doubt
from tsadbench.datasets.cards.files import File, as_counted
from tsadbench.datasets.cards.label_guess import guess_labels
from tsadbench.datasets.cards.look import ENDINGS, Look, look_at
from tsadbench.errors import DataError, UsageError
from tsadbench.utils.text import first_of, printable

# The default protocol evaluates a test recording's rows after its first 30.
FEWEST_TEST_ROWS = 31
_TRAINING = re.compile(r"train|normal|healthy|baseline|nominal|good|gesund|gutfall", re.IGNORECASE)
_FAULT_FREE = re.compile(
    r"(fault|fail(ure)?|anomal(y|ies)|attack|error|leak)s?[-_ ]?free|(fehler|störungs|stoerungs)frei", re.IGNORECASE
)
_ABNORMAL = re.compile(
    r"ab-?normal|anormal|un-?(healthy|gesund)|(not?|non|nicht)[-_ ]?(normal|good|healthy|gesund|nominal)"
    r"|fault|anomal|attack|fail|broken|st(ö|oe)rung|fehler|defekt",
    re.IGNORECASE,
)
_TEST = re.compile(r"test|fault|anomal|attack|fail|broken|faulty|st(ö|oe)r|fehler|defekt|pr(ü|ue)f", re.IGNORECASE)
_NORMAL = ("0", "normal", "ok", "none", "healthy", "good", "benign", "false", "no")
_NO_TABLES = {
    ".zip": "an archive: unpack it",
    ".gz": "compressed: unpack it",
    ".7z": "an archive: unpack it",
    ".xlsx": "a workbook: save its sheets as CSV files",
    ".xls": "a workbook: save its sheets as CSV files",
}


@dataclass(slots=True)
class Sorted:
    """What the files of a folder seem to be for.

    Parameters
    ----------
    train, test
        Files for training and for testing. A file that is in neither of them is left out.
    single
        Files that hold training rows first and test rows after them, instead of the two.
    label_lines, labels
        What a card says of labels in files of their own, and these files.
    normal
        The label of normal rows; None if no column holds labels.
    reasons
        For each file, in groups of one reason: what it is for ("train", "test", "single", "labels", "left out"), why,
        and which files.
    decide
        What only a person can decide.
    ignores_labels
        Whether no row could train if labels counted.
    """

    train: list[Look] = field(default_factory=list)
    test: list[Look] = field(default_factory=list)
    single: list[Look] = field(default_factory=list)
    label_lines: list[str] = field(default_factory=list)
    labels: list[Look] = field(default_factory=list)
    normal: str | None = None
    reasons: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    decide: list[str] = field(default_factory=list)
    ignores_labels: bool = False

    @property
    def tables(self) -> list[Look]:
        """All files with rows, in their order."""
        return sorted([*self.train, *self.test, *self.single], key=lambda look: as_counted(look.file.name))

    def parts(self) -> dict[str, str]:
        """Return for each file with rows which part of the data it is in."""
        looks = {"train": self.train, "test": self.test, "single": self.single}
        return {look.file.name: part for part, members in looks.items() for look in members}

    def lines(self) -> list[str]:
        """Return for each role and reason a line that names the files."""
        order = ("train", "test", "single", "labels", "left out")
        return [
            f"{role:<8} {first_of(names, 5)}: {reason}"
            for (role, reason), names in sorted(self.reasons.items(), key=lambda one: order.index(one[0][0]))
        ]

    def told(self, role: str, reason: str, names: Iterable[str]) -> None:
        """Note why files are sorted as they are."""
        if names := list(names):
            self.reasons.setdefault((role, reason), []).extend(names)


def sort_files(folder: Path, without: dict[str, str]) -> Sorted:
    """Return what the files of a folder, and of the folders below it, seem to be for.

    A UsageError if there is no such folder, or no file in it that may be a table. A DataError if none is a table of
    numbers.
    """
    if not folder.is_dir():
        kind = "is no folder" if folder.exists() else "there is no such folder"
        raise UsageError(f"{folder}: expected a folder with CSV, Parquet or array files; {kind}")
    found = Sorted()
    for name, reason in without.items():
        found.told("left out", reason, [name])
    looks = list(_looks(folder, found, without))
    found.label_lines, found.labels = guess_labels(looks)
    found.told("labels", "they tell which rows of other files are anomalous", (one.file.name for one in found.labels))
    tables = [look for look in looks if look not in found.labels]
    tables = list(_of_one_kind(_distinct(tables, found), found))
    if not tables:
        text = f"{folder}: no file is a table with a header and columns of numbers"
        raise DataError("\n  ".join([text, *found.lines()]))
    agree_on_dates(tables)
    found.normal = _normal_value(tables)
    if any(look.labels for look in tables) or found.label_lines:
        _sort_labelled(tables, found)
    else:
        _sort_by_name(tables, found)
    return found


def _looks(folder: Path, found: Sorted, without: dict[str, str]) -> Iterable[Look]:
    """Yield a look at each file that has rows of numbers, or that may have labels of others."""
    paths = [path.relative_to(folder) for path in folder.rglob("*") if not path.is_dir()]
    shown = [path.as_posix() for path in paths if not any(part.startswith(".") for part in path.parts)]
    candidates = [name for name in shown if Path(name).suffix.lower() in ENDINGS]
    for name in sorted({*shown}.difference(candidates), key=as_counted):
        suffix = Path(name).suffix.lower()
        if suffix != ".toml":  # cards
            found.told("left out", _NO_TABLES.get(suffix, "no table"), [printable(name)])
    # Pipes, devices, links to nothing, and names that a card, which is UTF-8, cannot hold.
    strange = [name for name in candidates if printable(name) != name or not (folder / name).is_file()]
    found.told("left out", "no file, or a name that is not UTF-8", sorted(map(printable, strange)))
    names = [name for name in candidates if name not in strange and name not in without]
    if not names and not without:
        raise UsageError(f"{folder}: expected files that end in {', '.join(ENDINGS)}, found none")
    for name in sorted(names, key=as_counted):
        try:
            look = look_at(File(folder / name, name, name))
        except DataError as error:
            found.told("left out", str(error).partition(": ")[2] or str(error), [name])
            continue
        yield look


def _distinct(looks: Sequence[Look], found: Sorted) -> Iterable[Look]:
    """Yield files with rows of numbers; of files with the same bytes the first."""
    originals = originals_of(looks)
    for look in looks:
        name = look.file.name
        twice = [column for column, count in Counter(look.table.header).items() if count > 1]
        if look.units:
            found.told("left out", f"line 2 holds units ({first_of(look.units, 3)}), not values: delete it", [name])
        elif look.n_sensors == 0 and look.texts:
            found.told("left out", "no table of numbers: " + text_doubt(*next(iter(look.texts.items()))), [name])
        elif look.n_sensors == 0 or (len(look.table.header) == 1 and look.table.n_rows == 0):
            found.told("left out", "no table of numbers", [name])
        elif look.table.n_rows < 2:
            count = "one row" if look.table.n_rows else "no rows"
            found.told("left out", f"a table with {count}", [name])
        elif twice:
            found.told("left out", f"two of its columns are called {twice[0]!r}: rename or remove one", [name])
        elif originals[name] != name:
            found.told("left out", f"the same bytes as {originals[name]}", [name])
        else:
            yield look


def _names(looks: Iterable[Look]) -> list[str]:
    return [look.file.name for look in looks]


def _of_one_kind(looks: Iterable[Look], found: Sorted) -> Iterable[Look]:
    """Yield the files that have all columns that most rows have."""
    looks = list(looks)
    rows: Counter[tuple[frozenset[str], str | None]] = Counter()
    for look in looks:
        rows[frozenset(look.sensors), look.time_name] += look.table.n_rows
    if not rows:
        return
    # Of kinds whose columns others have as well, the one that lets most rows in.
    fitting = {kind: sum(n for other, n in rows.items() if _has(other, kind)) for kind in rows}
    sensors, time = max(fitting, key=lambda kind: (fitting[kind], len(kind[0])))
    for look in looks:
        lacking = sorted(sensors.difference(look.table.header))
        if time is not None and time not in look.table.header:
            lacking.append(time)
        if lacking:
            what = "columns" if len(lacking) > 1 else "the column"
            found.told("left out", f"it lacks {what} {first_of(lacking, 3)} of most rows", [look.file.name])
        else:
            yield look
    alone = [look for look in looks if look.n_sensors == 1 and look.time_name is not None]
    if len(alone) == len(looks) > 1 and len({look.sensors[0] for look in alone}) > 1:
        found.decide.append(
            "Each file holds one sensor, it seems, and a card needs all sensors in each file: write them into one long "
            "table (time, name, value) and give [long] and [resample] (docs/adding-a-data-set.md)"
        )


def _has(columns: tuple[frozenset[str], str | None], needed: tuple[frozenset[str], str | None]) -> bool:
    return needed[0] <= columns[0] and needed[1] in (None, columns[1])


def _sort_labelled(tables: Sequence[Look], found: Sorted) -> None:
    """Sort files by their labels: a file without anomalous rows may train."""
    train = [look for look in tables if _is_training(look, found.normal)]
    test = [look for look in tables if look not in train]
    if train and test:
        by_name = [look.file.name for look in train if _called_normal(look)]
        found.told("train", "by its name, and no row is labelled anomalous", by_name)
        found.told("train", "no row is labelled", [look.file.name for look in train if look.file.name not in by_name])
        found.told("test", "it has labels, and its name does not say normal", (look.file.name for look in test))
        found.train, found.test = train, _long_enough(test, found)
        return
    if not test:
        found.told("train", "no row of any file is labelled anomalous", (look.file.name for look in tables))
        found.train = list(tables)
        found.decide.append("No row is labelled anomalous: nothing can be compared until a [test] part has such rows.")
        return
    if not any(look.file.train_rows or first_anomaly(look, found.normal) for look in tables):
        found.ignores_labels = True
        found.train = list(tables)
        found.told("train", "each file begins with an anomalous row, so labels are left aside", _names(tables))
        found.decide.append(
            "Each file begins with a row that is labelled anomalous, so that no row is known to be normal. [train] "
            "takes whole files whatever their labels say: give files or rows that are normal."
        )
        return
    found.single = list(tables)
    found.told("single", "no file seems to be for training alone", _names(tables))


def _long_enough(test: Sequence[Look], found: Sorted) -> list[Look]:
    short = [look.file.name for look in test if look.table.n_rows < FEWEST_TEST_ROWS]
    reason = f"fewer than {FEWEST_TEST_ROWS} rows: the first {FEWEST_TEST_ROWS - 1} of a test file are not judged"
    found.told("left out", reason, short)
    for name in short:
        for (role, _), names in found.reasons.items():
            if role == "test" and name in names:
                names.remove(name)
    found.reasons = {key: names for key, names in found.reasons.items() if names}
    return [look for look in test if look.file.name not in short]


def _sort_by_name(tables: Sequence[Look], found: Sorted) -> None:
    """Sort files that nobody has labelled by their names."""
    normal = [look for look in tables if _called_normal(look)]
    faulty = [look for look in tables if look not in normal and _TEST.search(look.file.name)]
    others = [look for look in tables if look not in normal and look not in faulty]
    if normal:
        found.train, found.test = normal, [*faulty, *others]
        found.told("train", "its name says normal or training", (look.file.name for look in normal))
        found.told("test", "its name does not say normal", (look.file.name for look in found.test))
        if found.test:
            found.decide.append("No labels were found: the test files can be scored, and nothing can be compared.")
    else:
        found.train, found.test = others or faulty, faulty if others else []
        found.told("train", "nothing tells whether its rows are normal", (look.file.name for look in found.train))
        found.told("test", "its name speaks of faults or of tests", (look.file.name for look in found.test))
        found.decide.append(
            "Nothing tells which rows are normal: [train] takes whole files, as if all of their rows were. Take out "
            "what is not, or give labels."
        )
    found.test = _long_enough(found.test, found)


def _called_normal(look: Look) -> bool:
    name = _FAULT_FREE.sub("normal", look.file.name)
    return bool(_TRAINING.search(name)) and not _ABNORMAL.search(name)


def _is_training(look: Look, normal: str | None) -> bool:
    """Whether a file seems to be for training: by its name or for lack of a label, and without anomalous rows."""
    sound = not any(value != normal for value in look.labels)
    return sound and (_called_normal(look) or not look.labels)


def _normal_value(tables: Sequence[Look]) -> str | None:
    """Return the label of normal rows: one with a common name for them, or else the one that most files begin with."""
    values = list(dict.fromkeys(value for look in tables for value in look.labels))
    called = [value for name in _NORMAL for value in values if value.lower() == name]
    begin = [next(iter(look.labels)) for look in tables if look.labels]
    return called[0] if called else max(begin, key=begin.count, default=None)


def first_anomaly(look: Look, normal: str | None) -> int:
    """Return the first row of a file that is labelled anomalous; the number of its rows if none is."""
    return min((row for value, row in look.labels.items() if value != normal), default=look.table.n_rows)
