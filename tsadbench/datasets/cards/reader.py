"""From a card to the data set: every file is read, and everything that is wrong is told in one go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tsadbench.base.dataset import Dataset, LabelledDataset, Labels
from tsadbench.base.file_format import FileFormat
from tsadbench.base.prior import Prior
from tsadbench.base.recording import Recording
from tsadbench.datasets.cards.columns import column_faults, has_all, matches, sensors_of
from tsadbench.datasets.cards.contents import Contents, Open, read
from tsadbench.datasets.cards.csv import SEARCHED_LINES, SEPARATORS, header_lines, names_in, note_encoding, open_csv
from tsadbench.datasets.cards.files import File, find_file, find_files
from tsadbench.datasets.cards.parquet import open_parquet
from tsadbench.datasets.cards.schema import Card, read_card
from tsadbench.errors import DataError, UsageError
from tsadbench.utils.arrays import BoolArray
from tsadbench.utils.issues import Issues
from tsadbench.utils.progress import progress

# The protocols judge rows from the 30th on: a shorter recording would not count at all.
FEWEST_ROWS = 31


def load_card(path: Path, folder: Path | None = None) -> LabelledDataset:
    """Return the data set that a card describes.

    Parameters
    ----------
    path
        The card.
    folder
        Where its files lie; by default the card's own folder.

    Raises
    ------
    DataError
        If anything is wrong with the card or its files; the message lists all of it.
    """
    issues = Issues()
    loaded = examine(path, issues, folder)
    issues.raise_if_any(f"data set card {path}")
    if loaded is None:
        raise DataError(f"data set card {path}: cannot be read")
    return loaded


def examine(path: Path, issues: Issues, folder: Path | None = None) -> LabelledDataset | None:
    """Read a card and every file that it means; return the data set if nothing is wrong.

    Parameters
    ----------
    path, folder
        As `load_card`'s.
    issues
        Where to note what is wrong.
    """
    card = read_card(path, issues)
    if card is None:
        return None
    folder = path.parent if folder is None else folder
    parts = _parts(card, folder, path.name, issues)
    description, prior = _documents(card, folder, path.name, issues)
    found = _read_all(parts, card, issues)
    if not found:
        return None
    train, test = _recordings(found, card, issues)
    splits = _splits(card, [recording.id for recording, _ in test], path.name, issues)
    if prior is not None and found:
        try:
            prior.check(found[0].sensors)
        except UsageError as error:
            issues.add(path.name, str(error))
    if issues or not train or not test:
        return None
    dataset = Dataset(
        name=card.name,
        train=tuple(train),
        test=tuple(recording for recording, _ in test),
        splits=splits,
        description=description,
        prior=prior,
        citation=card.citation,
        licence=card.licence,
        notes=tuple(_notes(found)),
        folder=_innermost([one.file.path for one in found]),
        layout=card.file_format(),
    )
    return LabelledDataset(dataset, Labels(rows={one.id: labels for one, labels in test}, splits=splits))


@dataclass(frozen=True, slots=True)
class _Part:
    """Files that are read alike, and what they are for."""

    files: tuple[File, ...]
    written: FileFormat
    role: str  # "train", "test" or "single"


@dataclass(frozen=True, slots=True)
class _Found:
    """A file, read."""

    file: File
    role: str
    sensors: tuple[str, ...]
    opened: Open
    contents: Contents


def _parts(card: Card, folder: Path, name: str, issues: Issues) -> list[_Part]:
    parts = []
    for role, described in (("train", card.train), ("test", card.test), ("single", card.single)):
        if described is not None:
            files = find_files(folder, described.files, name, issues)
            parts.append(_Part(tuple(files), card.file_format(described), role))
    seen: dict[str, str] = {}
    for part in parts:
        for file in part.files:
            if file.id in seen and seen[file.id] != file.name:
                issues.add(name, f"{file.name} and {seen[file.id]} would have the same name as recordings; rename one")
            elif file.id in seen:
                issues.add(name, f"{file.name} is a training file and a test file; take it out of one of them")
            seen[file.id] = file.name
    return parts


def _documents(card: Card, folder: Path, name: str, issues: Issues) -> tuple[str, Prior | None]:
    description, prior = "", None
    if card.description is not None:
        path = find_file(folder, card.description, name, "description", issues)
        if path is not None:
            try:
                description = path.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError):
                issues.add(card.description, "expected a text in UTF-8; save it so")
    if card.prior is not None:
        path = find_file(folder, card.prior, name, "prior", issues)
        if path is not None:
            try:
                prior = Prior.load(path, origin=card.name)
            except DataError as error:
                issues.add(card.prior, str(error))
    return description, prior


def _read_all(parts: Sequence[_Part], card: Card, issues: Issues) -> list[_Found]:
    """Return every file that could be read; the first one's header decides which sensors there are."""
    found: list[_Found] = []
    sensors: tuple[str, ...] | None = None
    total = sum(len(part.files) for part in parts)
    done = 0
    for part in parts:
        for file in part.files:
            progress(done, total, file.name)
            done += 1
            opened = _open(file, part, card, issues)
            if opened is None:
                continue
            if sensors is None:
                sensors = sensors_of(opened.header, card.columns)
                if not sensors:
                    issues.add(
                        file.name,
                        f"no column is a sensor by columns.sensors = {card.columns.sensors}; found {opened.header}",
                    )
                    return []
            faults = column_faults(opened.header, sensors, card.columns, needs_label=part.role != "train")
            for fault in faults:
                issues.add(file.name, fault, getattr(opened, "header_line", None))
            if faults:
                continue
            try:
                contents = read(file, opened, sensors, card.columns, card.missing, issues)
            except (OSError, ValueError) as error:
                issues.add(file.name, f"cannot be read ({' '.join(str(error).split())[:200]})")
                continue
            found.append(_Found(file, part.role, sensors, opened, contents))
    progress(total, total)
    return found


def _open(file: File, part: _Part, card: Card, issues: Issues) -> Open | None:
    try:
        if file.is_parquet:
            return open_parquet(file.path, part.written.remove_prefix)
        header = _header(file, part, card, issues)
        return None if header is None else open_csv(file, part.written, *header, issues)
    except UnicodeDecodeError:
        note_encoding(file.path, file.name, part.written, issues)
    except OSError as error:
        issues.add(file.name, f"cannot be read ({error.strerror or error}); check its permissions")
    except ValueError as error:  # pyarrow's own errors are ValueErrors
        issues.add(file.name, f"not a Parquet file ({' '.join(str(error).split())[:120]}); copy it again")
    return None


def _header(file: File, part: _Part, card: Card, issues: Issues) -> tuple[int, str] | None:
    """Return the number of the line that names the columns, and that line; or None, and why among the issues."""
    written, wanted = part.written, part.written.header_line
    needs_label = part.role != "train"
    lines = header_lines(file.path, written, SEARCHED_LINES if wanted == "search" else wanted)
    if wanted == "search":
        for number, line in enumerate(lines, start=1):
            if has_all(names_in(line, written), card.columns, needs_label=needs_label):
                return number, line
        text = f"none of the first {SEARCHED_LINES} lines names all columns; set header_line and look at columns"
        issues.add(file.name, text)
        return None
    if len(lines) < wanted or not lines[-1].strip():
        issues.add(file.name, f"expected columns' names on line {wanted}, found {'none' if lines else 'an empty file'}")
        return None
    separator = written.separator
    if separator not in lines[-1]:
        other = max((one for one in SEPARATORS if one != separator), key=lines[-1].count)
        if other in lines[-1]:
            text = f"expected columns separated by {separator!r}, but {other!r} seems to be used; set separator"
            issues.add(file.name, f"{text}, or write all files alike", wanted)
            return None
    return wanted, lines[-1]


def _recordings(
    found: Sequence[_Found], card: Card, issues: Issues
) -> tuple[list[Recording], list[tuple[Recording, BoolArray]]]:
    """Return training recordings, and test recordings with their labels."""
    train: list[Recording] = []
    test: list[tuple[Recording, BoolArray]] = []
    for one in found:
        n_rows = len(one.contents.values)
        if one.role == "train":
            pieces = [(one.file.id, 0, n_rows, True)]
        elif one.role == "test":
            pieces = [(one.file.id, 0, n_rows, False)]
        else:
            border = _border(one, card, issues)
            pieces = [(f"{one.file.id}/train", 0, border, True), (f"{one.file.id}/test", border, n_rows, False)]
        for id, start, stop, is_train in pieces:  # noqa: A001 - the recording's field
            if not _allowed(one, id, start, stop, is_train=is_train, issues=issues):
                continue
            recording = _recording(one, id, start, stop, issues)
            if recording is None:
                continue
            if is_train:
                train.append(recording)
            elif one.contents.labels is not None:
                test.append((recording, one.contents.labels[start:stop].copy()))
    return train, test


def _allowed(one: _Found, id: str, start: int, stop: int, *, is_train: bool, issues: Issues) -> bool:  # noqa: A002
    """Whether these rows can be a recording; why not is noted."""
    sound = True
    if stop - start < FEWEST_ROWS:
        text = f"recording {id!r} has {stop - start} rows, but protocols judge rows from the 30th on; leave it out"
        issues.add(one.file.name, text)
        sound = False
    labels = one.contents.labels
    if is_train and labels is not None and labels[start:stop].any():
        row = start + int(np.argmax(labels[start:stop]))
        count = int(np.count_nonzero(labels[start:stop]))
        line = one.opened.line(row)
        text = (
            f"recording {id!r} is for training, which takes normal rows only, but this row is labelled anomalous; "
            "take the recording out, or cut it before the anomaly"
        )
        issues.add(one.file.name, text, line, count=count)
        sound = False
    return sound


def _recording(one: _Found, id: str, start: int, stop: int, issues: Issues) -> Recording | None:  # noqa: A002
    values, time = one.contents.values[start:stop], one.contents.time
    values.flags.writeable = False
    try:
        return Recording(id=id, values=values, sensors=one.sensors, time=None if time is None else time[start:stop])
    except DataError as error:
        if not issues:  # a cell that was noted already has no value either
            issues.add(one.file.name, str(error))
        return None


def _border(one: _Found, card: Card, issues: Issues) -> int:
    """Return how many rows of a file are training rows."""
    n_rows = len(one.contents.values)
    wanted = card.single.train_rows if card.single is not None else n_rows
    if wanted == "file name":
        if one.file.train_rows is None:
            text = "expected the number of training rows in the file's name, as in ..._tr_1007_...; or set train_rows"
            issues.add(one.file.name, text)
            return 0
        wanted = one.file.train_rows
    rows = int(wanted)
    if rows >= n_rows:
        issues.add(one.file.name, f"{rows} rows are for training, but it has {n_rows}: none is left to test on")
        return n_rows
    return rows


def _splits(card: Card, ids: Sequence[str], name: str, issues: Issues) -> Mapping[str, tuple[str, ...]]:
    splits = {"overall": tuple(ids)}
    for split, patterns in card.splits.items():
        members = tuple(one for one in ids if matches(one, patterns))
        if not members and ids:
            issues.add(name, f"splits.{split}: no test recording is called {patterns}; there are {list(ids)[:10]}")
        splits[split] = members
    return splits


def _notes(found: Sequence[_Found]) -> Iterator[str]:
    filled = sum(one.contents.filled for one in found)
    if filled:
        cells = sum(one.contents.values.size for one in found)
        files = sum(one.contents.filled > 0 for one in found)
        yield (
            f"{filled} missing values ({filled / cells:.2%}) in {files} files are filled with the sensor's last value, "
            "as its card says"
        )


def _innermost(paths: Sequence[Path]) -> Path:
    """Return the innermost folder that holds all files: what a detector in the box must not reach for."""
    folders = [path.resolve().parent for path in paths]
    common = folders[0]
    while not all(folder.is_relative_to(common) for folder in folders):
        common = common.parent
    return common
