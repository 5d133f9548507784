"""Read the data set that a card describes, and report everything that is wrong with its files at once."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tsadbench.base.dataset import Cause, Dataset, LabelledDataset, Labels
from tsadbench.base.prior import Prior
from tsadbench.base.recording import Recording
from tsadbench.datasets.cards.choice import SHOWN, called_like_labels, sensors_of, unmatched, without, without_constant
from tsadbench.datasets.cards.contents import Contents
from tsadbench.datasets.cards.files import find_file
from tsadbench.datasets.cards.gaps import fill_gaps
from tsadbench.datasets.cards.intervals import Intervals, read_intervals
from tsadbench.datasets.cards.labels import label_file, labels_of_rows
from tsadbench.datasets.cards.membership import Membership
from tsadbench.datasets.cards.parts import Cut, Piece, cut_at_gaps, pieces_of
from tsadbench.datasets.cards.rows import RowReader
from tsadbench.datasets.cards.schema import Card, read_card
from tsadbench.datasets.cards.sources import Source, TableOfFile, find_sources
from tsadbench.datasets.reading.header import header_faults
from tsadbench.datasets.reading.table import Table
from tsadbench.datasets.reading.text import MalformedError
from tsadbench.errors import DataError, UsageError
from tsadbench.utils.arrays import BoolArray
from tsadbench.utils.files import read_text
from tsadbench.utils.grouping import grouped
from tsadbench.utils.issues import Issue, raise_if_any
from tsadbench.utils.progress import progress
from tsadbench.utils.text import first_of
from tsadbench.utils.toml import line_of

_LONGEST_DESCRIPTION = 2**24


def load_card(path: Path, folder: Path | None = None) -> LabelledDataset:
    """Return the data set that a card describes.

    A DataError if anything is wrong with the card or its files; the message lists all of it.
    """
    what = f"data set card {path}" if folder is None else f"data set {path.stem} in {folder}"
    loaded, issues = try_card(path, path.parent if folder is None else folder)
    raise_if_any(what, issues)
    if loaded is None:
        raise DataError(f"{what}: cannot be read")
    return loaded


def try_card(path: Path, folder: Path) -> tuple[LabelledDataset | None, list[Issue]]:
    """Return the data set of a card whose files lie in a folder, None if anything is wrong; and what is wrong."""
    card, text, issues = read_card(path)
    if card is None:
        return None, list(issues)
    reader = _CardReader(card, text, path, folder, issues)
    return reader.read(), reader.issues


@dataclass(frozen=True, slots=True, eq=False)
class _Loaded:
    """A recording of the files, and what becomes of its rows."""

    source: Source
    contents: Contents
    pieces: tuple[Piece, ...]
    causes: tuple[Cause, ...]
    n_filled: int
    cut: Cut


class _CardReader:
    """Reads the files of one card. What is wrong is collected in `issues`."""

    def __init__(self, card: Card, text: str, path: Path, folder: Path, issues: Sequence[Issue]) -> None:
        self.issues = list(issues)
        self._card = card
        self._text = text
        self._path = path
        self._folder = folder
        self._sensors: tuple[str, ...] = ()
        self._lacking: list[str] = []
        self._intervals: Intervals | None = None

    def read(self) -> LabelledDataset | None:
        """Return the data set, or None if anything is wrong."""
        card = self._card
        sources, issues = find_sources(card, self._folder, self._path.name)
        self.issues += issues
        description, prior = self._description(), self._prior()
        recordings = list(self._recordings(sources))
        if not recordings:
            return None
        if self._intervals is not None and not self.issues:
            self.issues += self._intervals.unmatched()
        pieces = [
            *(piece for one in recordings for piece in one.pieces if piece.is_train),
            *(piece for one in _as_tested(recordings) for piece in one.pieces if not piece.is_train),
        ]
        self._check_distinct(pieces)
        read = {one.source.id for one in recordings}
        unread = [source for source in sources if source.id not in read]
        # Nobody knows what the arrays of a file that cannot be opened are called.
        unknown = issues or any(
            one.part.variables and any(table.table is None for table in one.tables) for one in unread
        )
        names = None if unknown else [source.id for source in unread]
        membership = Membership(pieces, self._path.name, self._text, unread=names)
        splits = membership.splits(card.splits)
        sessions = membership.belonging("sessions", card.sessions)
        entities = membership.belonging("entities", card.entities)
        if names == [] and not membership.issues:  # else it is not known what belongs to each
            membership.require_training(entities)
        self.issues += membership.issues
        if prior is not None and self._lacking:
            prior = without(prior, self._lacking)
        if prior is not None:
            try:
                prior.check(self._sensors)
            except UsageError as error:
                self._report(str(error))
        tested = card.test is not None or card.single is not None
        for what, found in (("training", any(piece.is_train for piece in pieces)), ("test", bool(splits["overall"]))):
            if not found and not self.issues and (tested or what == "training"):
                self._report(f"no {what} row is left; correct the card's choice of files and rows")
        if self.issues:
            return None
        splits = splits if tested else {}
        made = {piece.id: self._recording(one.contents, piece) for one in recordings for piece in one.pieces}
        dataset = Dataset(
            name=card.name,
            train=tuple(made[piece.id] for piece in pieces if piece.is_train),
            test=tuple(made[id_] for id_ in splits.get("overall", ())),
            splits=splits,
            description=description,
            prior=prior,
            citation=card.citation,
            licence=card.licence,
            notes=tuple(self._notes(recordings)),
            folder=self._innermost(sources),
            layout=card.file_format(),
            sessions=sessions,
            entities=entities,
            version=card.version,
        )
        loaded = LabelledDataset(dataset, _labels(_as_tested(recordings), splits))
        return without_constant(loaded) if card.columns.constant == "leave out" else loaded

    @property
    def _at_least(self) -> int:
        """How many rows a piece of a recording must have."""
        return self._card.missing.at_least or 2

    def _report(self, text: str, file: str | None = None, line: int | None = None) -> None:
        self.issues.append(Issue(file or self._path.name, text, line))

    def _check_distinct(self, pieces: Sequence[Piece]) -> None:
        """Report pieces of different files that have the same name, as the piece 1 of "run" and a file "run/1"."""
        for id_, same in grouped(pieces, lambda piece: piece.id).items():
            bases = list(dict.fromkeys(repr(piece.base) for piece in same))  # those of one name are told of already
            if len(bases) > 1:
                self._report(f"recordings of {' and '.join(bases)} would both be called {id_!r}; rename a file")

    def _description(self) -> str:
        if self._card.description is None:
            return ""
        try:
            return read_text(find_file(self._path.parent, self._card.description, "description"), _LONGEST_DESCRIPTION)
        except MalformedError as error:
            self._report(error.text)
        except UnicodeDecodeError:
            self._report("expected a text in UTF-8; save it so", self._card.description)
        except OSError as error:
            self._report(f"cannot be read ({error.strerror or error})", self._card.description)
        return ""

    def _prior(self) -> Prior | None:
        if self._card.prior is None:
            return None
        try:
            return Prior.load(find_file(self._path.parent, self._card.prior, "prior"), origin=self._card.name)
        except MalformedError as error:
            self._report(error.text)
        except DataError as error:
            self._report(str(error), self._card.prior)
        return None

    def _recordings(self, sources: Sequence[Source]) -> Iterator[_Loaded]:
        """Yield every recording that can be read; the first table's header decides which sensors there are."""
        opened = [table for source in sources for table in source.tables if table.table is not None]
        if opened:
            headers = [table.table.header for table in opened if table.table is not None]
            all_opened = len(opened) == sum(len(source.tables) for source in sources)
            self._choose_sensors(headers, opened[0].name, all_opened=all_opened)
        if self._sensors:
            self._read_intervals(sources)
        for done, source in enumerate(sources):
            progress(len(sources) + done, 2 * len(sources), source.id)
            read = self._contents(source)
            if read is None:
                continue
            contents, causes = read
            n_filled, issues = fill_gaps(
                contents, self._sensors, source.file_format, cut=self._card.missing.policy == "cut"
            )
            self.issues += issues
            pieces, issues = pieces_of(source, contents)
            self.issues += issues
            cut = Cut()
            if self._card.missing.policy == "cut":
                pieces, cut = cut_at_gaps(pieces, contents, self._at_least)
            yield _Loaded(source, contents, tuple(pieces), causes, n_filled, cut)
        progress(2 * len(sources), 2 * len(sources))

    def _choose_sensors(self, headers: Sequence[Sequence[str]], first: str, *, all_opened: bool) -> None:
        """Choose the sensors from the columns' names in each file; the first file's decide which there are."""
        columns = self._card.columns
        sensors, self._lacking = sensors_of(headers, self._card.times, columns)
        self._sensors = tuple(sensors)
        if not sensors:
            self._report(f"no column is a sensor by columns.sensors = {columns.sensors}; found {headers[0]}", first)
        suspects = called_like_labels(sensors, columns) if columns.label is None and self._card.labels is None else ()
        for name in suspects:
            text = (
                f"column {name!r} is called like a label, and the card names none: name it under columns.label, put it "
                "under columns.ignore, or, if it is a sensor, name it under columns.sensors"
            )
            self._report(text, first)
        for key, text in unmatched(headers, columns) if all_opened and sensors else ():
            self._report(text, line=line_of(self._text, ("columns", key)))

    def _read_intervals(self, sources: Sequence[Source]) -> None:
        labels = self._card.labels
        if labels is None or labels.intervals is None:
            return
        folders = [self._path.parent, self._folder]
        self._intervals, issues = read_intervals(self._card, labels, folders, self._sensors)
        self.issues += issues
        # Nobody knows what the arrays of a file that cannot be opened are called.
        if self._intervals is not None and all(table.table is not None for one in sources for table in one.tables):
            self.issues += self._intervals.unknown(source.id for source in sources)

    def _contents(self, source: Source) -> tuple[Contents, tuple[Cause, ...]] | None:
        """Return the labelled rows of a recording and its events; None if a file of it cannot be read."""
        tables = [table for opened in source.tables if (table := self._checked(source, opened)) is not None]
        if len(tables) < len(source.tables):
            return None
        reader = RowReader([one.name for one in source.tables], tables, source.file_format, self._card.columns)
        labels: BoolArray | None = None
        if self._card.labels is not None and self._card.labels.file is not None:
            labels, issues = labels_of_rows(
                self._card,
                self._card.labels,
                self._folder,
                source.id,
                reader.n_rows,
                required=source.needs_labels,
            )
            self.issues += issues
        try:
            contents = reader.contents(self._sensors, labels)
        except (OSError, ValueError) as error:
            self._report(f"cannot be read ({' '.join(str(error).split())[:200]})", source.tables[0].name)
            return None
        self.issues += contents.issues
        return self._with_intervals(source, contents)

    def _checked(self, source: Source, opened: TableOfFile) -> Table | None:
        """Return a table if it has all columns."""
        self.issues += opened.issues
        columns, table = self._card.columns, opened.table
        if table is None or not self._sensors:
            return None
        needed = dict.fromkeys(self._card.times, "time column") | dict.fromkeys(self._sensors, "sensor")
        labels = [] if columns.label is None else [columns.label]
        if source.needs_labels:
            needed |= dict.fromkeys(labels, "label column")
        faults = list(header_faults(table.header, needed, labels))
        for fault in faults:
            self._report(fault, opened.name, getattr(table, "header_line", None))
        return None if faults else table

    def _with_intervals(self, source: Source, contents: Contents) -> tuple[Contents, tuple[Cause, ...]]:
        """Return rows with the labels of intervals, which are told after whatever changes rows, and the events."""
        if self._intervals is None or (contents.time is None and contents.issues):
            return contents, ()
        step = source.file_format.resample_every or 0.0
        rows, causes, issues = self._intervals.label(source.id, len(contents.values), contents.time, step=step)
        self.issues += issues
        return replace(contents, labels=rows), causes

    def _recording(self, contents: Contents, piece: Piece) -> Recording:
        values, time = contents.values[piece.start : piece.stop], contents.time
        values.flags.writeable = False  # so that the recording does not copy them
        return Recording(piece.id, values, self._sensors, None if time is None else time[piece.start : piece.stop])

    def _notes(self, recordings: Sequence[_Loaded]) -> Iterator[str]:
        if self._lacking:
            yield f"sensors that some files lack are left out: {first_of(self._lacking, SHOWN)}"
        filled = sum(one.n_filled for one in recordings)
        if filled:
            cells = sum(one.contents.values.size for one in recordings)
            count = sum(one.n_filled > 0 for one in recordings)
            yield (
                f"{filled} missing values ({filled / cells:.2%}) in {count} files are filled with the sensor's last "
                "value, as its card says"
            )
        if self._intervals is not None and self._intervals.note:
            yield self._intervals.note
        cut = functools.reduce(Cut.plus, (one.cut for one in recordings), Cut())
        if cut.missing_rows:
            share = cut.missing_rows / sum(len(one.contents.values) for one in recordings)
            count = sum(one.cut.missing_rows > 0 for one in recordings)
            short = f" and {cut.short_rows} in pieces of fewer than {self._at_least} rows" if cut.short_rows else ""
            plural = "s" if count > 1 else ""
            yield (
                f"{cut.missing_rows} rows with missing values ({share:.2%}){short} are left out, as its card says, "
                f"which cuts {count} recording{plural}; {cut.anomalous_rows or 'none'} of these rows are anomalous"
            )

    def _innermost(self, sources: Sequence[Source]) -> Path:
        """Return the innermost folder that holds all files: what a detector in the box must not reach for."""
        paths = [table.file.path for source in sources for table in source.tables]
        if (labels := self._card.labels) is not None:
            named = [labels.intervals] if labels.intervals else [label_file(labels, source.id) for source in sources]
            paths += [self._folder / name for name in named if (self._folder / name).exists()]
        return Path(os.path.commonpath([path.resolve().parent for path in paths]))


def _as_tested(recordings: Sequence[_Loaded]) -> list[_Loaded]:
    """Return recordings in the order of the test part."""
    return sorted(recordings, key=lambda one: one.source.place)


def _labels(recordings: Sequence[_Loaded], splits: dict[str, tuple[str, ...]]) -> Labels:
    """Return the labels and known causes of all test recordings."""
    rows: dict[str, BoolArray] = {}
    causes: dict[str, tuple[Cause, ...]] = {}
    for one in recordings:
        for piece in one.pieces:
            if piece.is_train or one.contents.labels is None:
                continue
            rows[piece.id] = one.contents.labels[piece.start : piece.stop].copy()
            if within := tuple(_within(piece, one.causes)):
                causes[piece.id] = within
    return Labels(rows=rows, splits=splits, causes=causes)


def _within(piece: Piece, causes: Sequence[Cause]) -> Iterator[Cause]:
    """Yield the events of a recording that lie in a piece of it, in rows of the piece."""
    for cause in causes:
        start, stop = max(cause.start, piece.start), min(cause.stop, piece.stop)
        if start < stop:
            yield Cause(start - piece.start, stop - piece.start, cause.sensors)
