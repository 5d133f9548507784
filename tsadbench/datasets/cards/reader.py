"""Read the data set that a card describes, and report everything that is wrong with its files at once."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tsadbench.base.dataset import Dataset, LabelledDataset, Labels
from tsadbench.base.file_format import FileFormat
from tsadbench.base.prior import Prior
from tsadbench.base.recording import Recording
from tsadbench.datasets.cards.contents import Contents, read_contents
from tsadbench.datasets.cards.files import File, find_file, find_files
from tsadbench.datasets.cards.schema import Card, Columns, Part, Single, read_card
from tsadbench.datasets.reading.csv import encoding_issue, open_csv
from tsadbench.datasets.reading.header import find_header, header_faults, lines_needed, matches, matching, no_header
from tsadbench.datasets.reading.parquet import open_parquet
from tsadbench.datasets.reading.table import Table
from tsadbench.datasets.reading.text import MalformedError, first_lines
from tsadbench.errors import DataError, UsageError
from tsadbench.utils.arrays import BoolArray
from tsadbench.utils.bounded_files import read_text
from tsadbench.utils.issues import Issue, raise_if_any
from tsadbench.utils.progress import progress
from tsadbench.utils.toml import line_of

_LONGEST_DESCRIPTION = 2**24


def load_card(path: Path, folder: Path | None = None) -> LabelledDataset:
    """Return the data set that a card describes.

    Parameters
    ----------
    path
        The card. The description and the prior that it names lie beside it.
    folder
        Where its data files lie; by default the card's own folder.

    Raises
    ------
    DataError
        If anything is wrong with the card or its files; the message lists all of it.
    """
    what = f"data set card {path}" if folder is None else f"data set {path.stem} in {folder}"
    card, text, issues = read_card(path)
    if card is None:
        raise_if_any(what, issues)
        raise DataError(f"{what}: cannot be read")
    reader = _CardReader(card, text, path, path.parent if folder is None else folder, issues)
    loaded = reader.read()
    raise_if_any(what, reader.issues)
    if loaded is None:
        raise DataError(f"{what}: cannot be read")
    return loaded


@dataclass(frozen=True, slots=True)
class _Source:
    """A file of the data set, its part of the card, and how it is written."""

    file: File
    part: Part | Single
    role: str  # "train", "test" or "single"
    file_format: FileFormat


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A file that has been read."""

    source: _Source
    table: Table
    contents: Contents


class _CardReader:
    """Reads the files of one card. What is wrong is collected in `issues`."""

    def __init__(self, card: Card, text: str, path: Path, folder: Path, issues: Sequence[Issue]) -> None:
        self.issues = list(issues)
        self._card = card
        self._text = text
        self._path = path
        self._folder = folder
        self._sensors: tuple[str, ...] = ()
        self._ids: list[str] = []
        self._test_ids: list[str] = []

    def read(self) -> LabelledDataset | None:
        """Return the data set, or None if anything is wrong."""
        card = self._card
        sources = list(self._sources())
        description, prior = self._description(), self._prior()
        files = list(self._files(sources))
        if not files:
            return None
        train: list[Recording] = []
        test: list[tuple[Recording, BoolArray]] = []
        for file in files:
            self._add_recordings(file, train, test)
        splits = self._splits(self._test_ids)
        sessions = self._belonging("sessions", card.sessions)
        entities = self._belonging("entities", card.entities)
        if prior is not None:
            try:
                prior.check(self._sensors)
            except UsageError as error:
                self._report(self._path.name, str(error))
        if self.issues or not train or not test:
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
            notes=tuple(_notes([file.contents for file in files])),
            folder=_innermost([file.source.file.path for file in files]),
            layout=card.file_format(),
            sessions=sessions,
            entities=entities,
        )
        labels = {recording.id: labels for recording, labels in test}
        return LabelledDataset(dataset, Labels(rows=labels, splits=splits))

    def _report(self, file: str, text: str, line: int | None = None, kind: str | None = None, count: int = 1) -> None:
        self.issues.append(Issue(file, text, line, kind, count))

    def _sources(self) -> Iterator[_Source]:
        """Yield the files of all parts."""
        card, name = self._card, self._path.name
        parts: list[tuple[str, Part | Single | None]] = [
            ("train", card.train),
            ("test", card.test),
            ("single", card.single),
        ]
        named: dict[str, str] = {}
        for role, part in parts:
            if part is None:
                continue
            ids = part.ids if isinstance(part, Part) else "path"
            files, issues = find_files(self._folder, part.files, name, ids=ids)
            self.issues += issues
            for file in files:
                other = named.get(file.id)
                if other == file.name:
                    self._report(name, f"{other} is a training file and a test file; take it out of one of them")
                elif other is not None:
                    self._report(name, f"{file.name} and {other} would have the same name as recordings; rename one")
                named[file.id] = file.name
                yield _Source(file, part, role, card.file_format(part))

    def _description(self) -> str:
        if self._card.description is None:
            return ""
        try:
            return read_text(find_file(self._path.parent, self._card.description, "description"), _LONGEST_DESCRIPTION)
        except MalformedError as error:
            self._report(self._path.name, error.text)
        except UnicodeDecodeError:
            self._report(self._card.description, "expected a text in UTF-8; save it so")
        except OSError as error:
            self._report(self._card.description, f"cannot be read ({error.strerror or error})")
        return ""

    def _prior(self) -> Prior | None:
        if self._card.prior is None:
            return None
        try:
            return Prior.load(find_file(self._path.parent, self._card.prior, "prior"), origin=self._card.name)
        except MalformedError as error:
            self._report(self._path.name, error.text)
        except DataError as error:
            self._report(self._card.prior, str(error))
        return None

    def _files(self, sources: Sequence[_Source]) -> Iterator[_Loaded]:
        """Yield every file that can be read; the first one's header decides which sensors there are."""
        columns = self._card.columns
        for done, source in enumerate(sources):
            name = source.file.name
            progress(done, len(sources), name)
            table = self._open(source)
            if table is None:
                continue
            if not self._sensors:
                self._sensors = _sensors_of(table.header, columns)
                if not self._sensors:
                    self._report(
                        name, f"no column is a sensor by columns.sensors = {columns.sensors}; found {table.header}"
                    )
                    return
            needed = dict.fromkeys(columns.times, "time column") | dict.fromkeys(self._sensors, "sensor")
            if source.role != "train":
                needed[columns.label] = "label column"
            faults = list(header_faults(table.header, needed, [columns.label]))
            for fault in faults:
                self._report(name, fault, getattr(table, "header_line", None))
            if faults:
                continue
            try:
                contents = read_contents(name, table, source.file_format, self._sensors, columns)
            except (OSError, ValueError) as error:
                self._report(name, f"cannot be read ({' '.join(str(error).split())[:200]})")
                continue
            self.issues += contents.issues
            yield _Loaded(source, table, contents)
        progress(len(sources), len(sources))

    def _open(self, source: _Source) -> Table | None:
        file, file_format = source.file, source.file_format
        columns = self._card.columns
        needed = {*columns.times, *([columns.label] if source.role != "train" else [])}

        def has_all(names: Sequence[str]) -> bool:
            return needed <= set(names) and all(matching(names, [pattern]) for pattern in columns.sensors)

        try:
            if file.is_parquet:
                return open_parquet(file.path, file_format)
            lines = first_lines(file.path, file_format.encoding, lines_needed(file_format))
            header = find_header(lines, file_format, has_all)
            if header is None:
                raise MalformedError(no_header(file_format, lines))
            table, issues = open_csv(file.path, file.name, file_format, *header)
            self.issues += issues
            return table
        except MalformedError as error:
            self._report(file.name, error.text, error.line)
        except UnicodeDecodeError:
            self.issues.append(encoding_issue(file.path, file.name, file_format.encoding))
        except OSError as error:
            self._report(file.name, f"cannot be read ({error.strerror or error}); check its permissions")
        return None

    def _add_recordings(self, file: _Loaded, train: list[Recording], test: list[tuple[Recording, BoolArray]]) -> None:
        """Add what a file holds: a training recording, a test recording with its labels, or one of each."""
        contents, id_ = file.contents, file.source.file.id
        n_rows, labels, name = len(contents.values), contents.labels, file.source.file.name
        if file.source.role == "train":
            pieces = [(id_, 0, n_rows, True)]
        elif file.source.role == "test":
            pieces = [(id_, 0, n_rows, False)]
        else:
            border = self._n_train_rows(file)
            pieces = [(f"{id_}/train", 0, border, True), (f"{id_}/test", border, n_rows, False)]
        for id_, start, stop, is_train in pieces:
            self._ids.append(id_)
            if not is_train:
                self._test_ids.append(id_)
            if start == stop:
                self._report(
                    file.source.file.name, f"recording {id_!r} has no rows; complete the file, or leave it out"
                )
            elif is_train and labels is not None and labels[start:stop].any():
                row = start + int(np.argmax(labels[start:stop]))
                text = (
                    f"recording {id_!r} is for training, which takes normal rows only, but this row is labelled "
                    "anomalous; take the recording out, or cut it before the anomaly"
                )
                count = int(np.count_nonzero(labels[start:stop]))
                self._report(name, text, file.table.line(row), count=count)
            elif not contents.issues:
                recording = self._recording(contents, id_, start, stop)
                if is_train:
                    train.append(recording)
                elif labels is not None:
                    test.append((recording, labels[start:stop].copy()))

    def _recording(self, contents: Contents, id_: str, start: int, stop: int) -> Recording:
        values, time = contents.values[start:stop], contents.time
        values.flags.writeable = False  # so that the recording does not copy them
        return Recording(id_, values, self._sensors, None if time is None else time[start:stop])

    def _n_train_rows(self, file: _Loaded) -> int:
        """Return how many rows of a file are training rows."""
        n_rows, name = len(file.contents.values), file.source.file.name
        n_train = file.source.part.train_rows if isinstance(file.source.part, Single) else n_rows
        if n_train == "file name":
            n_train = file.source.file.train_rows or 0
            if n_train == 0:
                text = (
                    "expected the number of training rows in the file's name, as in ..._tr_1007_...; or set train_rows"
                )
                self._report(name, text)
        if n_train >= n_rows:
            self._report(name, f"{n_train} rows are for training, but it has {n_rows}: none is left to test on")
        return min(n_train, n_rows)

    def _splits(self, ids: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        splits = {"overall": tuple(ids)}
        for split, patterns in self._card.splits.items():
            splits[split] = tuple(id_ for id_ in ids if matches(id_, patterns))
            if not splits[split] and ids:
                text = f"splits.{split}: no test recording is called {patterns}; there are {list(ids)[:10]}"
                self._report(self._path.name, text)
        return splits

    def _belonging(self, table: str, groups: Mapping[str, Sequence[str]]) -> dict[str, str]:
        """Return the group of a card's table that each recording belongs to; empty if the table is."""
        found: dict[str, str] = {}
        for group, patterns in groups.items():
            line = line_of(self._text, (table, group))
            for pattern in patterns:
                members = [id_ for id_ in self._ids if matches(id_, [pattern])]
                if not members and self._ids:
                    text = f"{table}.{group}: no recording is called {pattern!r}; there are {self._ids[:10]}"
                    self._report(self._path.name, text, line)
                for id_ in members:
                    other = found.setdefault(id_, group)
                    if other != group:
                        text = f"{table}.{group}: recording {id_!r} belongs to {table}.{other} too; take it out of one"
                        self._report(self._path.name, text, line, f"{table} twice")
        missing = [id_ for id_ in self._ids if groups and id_ not in found]
        if missing:
            text = f"{table}: recording {missing[0]!r} belongs to none of them; add it, or leave [{table}] out"
            self._report(self._path.name, text, line_of(self._text, (table,)), count=len(missing))
        return found


def _sensors_of(header: Sequence[str], columns: Columns) -> tuple[str, ...]:
    """Return the sensors of a data set from the header of its first file; named ones come in the card's order."""
    used = {*columns.times, columns.label}
    used.update(matching(header, columns.ignore))
    return tuple(matching((name for name in header if name and name not in used), columns.sensors))


def _notes(files: Sequence[Contents]) -> Iterator[str]:
    filled = sum(contents.n_filled for contents in files)
    if filled:
        cells = sum(contents.values.size for contents in files)
        count = sum(contents.n_filled > 0 for contents in files)
        yield (
            f"{filled} missing values ({filled / cells:.2%}) in {count} files are filled with the sensor's last value, "
            "as its card says"
        )


def _innermost(paths: Sequence[Path]) -> Path:
    """Return the innermost folder that holds all files: what a detector in the box must not reach for."""
    return Path(os.path.commonpath([path.resolve().parent for path in paths]))
