"""Read the data set that a card describes: files, columns, labels, gaps, recordings."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import numpy as np
import pandas as pd

from tsadbench.base.dataset import Cause, Dataset, LabelledDataset, Labels
from tsadbench.base.prior import Prior
from tsadbench.base.recording import Recording
from tsadbench.datasets.card import (
    NUMBER,
    Card,
    CutGaps,
    FillGaps,
    LabelColumn,
    LabelFile,
    LabelIntervals,
    Part,
    Single,
    listed,
    read_card,
)
from tsadbench.datasets.formats import Table, header_fault, matches, number_fault, numbers_of, read_files, states_of
from tsadbench.datasets.labels import Intervals, first_rows, labels_of_cells, labels_of_file
from tsadbench.datasets.resampling import Grid, grid_fault
from tsadbench.datasets.times import BACKWARDS, joined, time_fault, time_in_seconds
from tsadbench.errors import DataError, UsageError
from tsadbench.utils.arrays import BoolArray, FloatArray, IntArray
from tsadbench.utils.files import read_text
from tsadbench.utils.issues import Issue, raise_if_any
from tsadbench.utils.parameters import nearest
from tsadbench.utils.progress import progress
from tsadbench.utils.text import printable
from tsadbench.utils.toml import line_of

# What columns with labels are called.
LABEL = re.compile(
    r"anomal|label|lable|attack|fault|outlier|defect|failure|^(class|target|y|status|event)$", re.IGNORECASE
)
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
    reader = CardReader(card, text, path, folder)
    loaded = reader.read()
    issues = [*issues, *reader.issues]
    return (None if issues else loaded), issues


@dataclass(slots=True, eq=False)
class Source:
    """A recording of the files, before its rows become training and test recordings."""

    id: str
    roles: dict[str, int]  # the parts that name it, each with its place there
    part: Part  # the last of these
    tables: tuple[Table, ...]  # hold its rows
    values: FloatArray = field(default_factory=lambda: np.empty((0, 0)))  # [n_rows, n_sensors], NaN if missing
    time: FloatArray | None = None
    labels: BoolArray | None = None
    causes: tuple[Cause, ...] = ()
    rows: IntArray | None = None  # for each row of a grid, its first row in the files

    @property
    def before_event(self) -> bool:
        """Whether the rows before its first event train."""
        return len(self.roles) > 1 or self.part.before_event

    @property
    def needs_labels(self) -> bool:
        """Whether its rows must be labelled."""
        return [*self.roles] != ["train"] or self.before_event

    def issue(self, row: int, text: str, kind: str | None = None, count: int = 1) -> Issue:
        """Return what is wrong with a row."""
        row = int(row if self.rows is None else self.rows[row])
        for table in self.tables:
            if row < len(table.frame) or table is self.tables[-1]:
                return table.issue(row, text, kind, count)
            row -= len(table.frame)
        raise AssertionError


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """Rows ``start`` to ``stop - 1`` of a source that become a recording; ``names`` are what patterns may call it."""

    source: Source
    id: str
    start: int
    stop: int
    is_train: bool
    names: tuple[str, ...]

    def is_called(self, patterns: Sequence[str]) -> bool:
        """Whether one of its names fits one of the patterns."""
        return any(matches(name, patterns) for name in self.names)

    def recording(self, sensors: tuple[str, ...]) -> Recording:
        """Return its rows as a recording."""
        values, time = self.source.values[self.start : self.stop], self.source.time
        values.flags.writeable = False  # so that the recording does not copy them
        return Recording(self.id, values, sensors, None if time is None else time[self.start : self.stop])

    def causes(self) -> tuple[Cause, ...]:
        """Return the source's events that lie in this piece, in rows of the piece."""
        inside = (
            Cause(max(one.start, self.start) - self.start, min(one.stop, self.stop) - self.start, one.sensors)
            for one in self.source.causes
            if max(one.start, self.start) < min(one.stop, self.stop)
        )
        return tuple(inside)


class CardReader:
    """Reads the files of one card. What is wrong is collected in `issues`."""

    def __init__(self, card: Card, text: str, path: Path, folder: Path) -> None:
        self.issues: list[Issue] = []
        self._card, self._text, self._path, self._folder = card, text, path, folder
        self._sensors: tuple[str, ...] = ()
        self._notes: list[str] = []

    def read(self) -> LabelledDataset | None:
        """Return the data set, or None if its recordings cannot be read."""
        card = self._card
        sources = self._sources()
        self._choose_sensors(sources)
        if not self._sensors:
            return None
        intervals = self._intervals(sources)
        for done, source in enumerate(sources):
            progress(done, len(sources), source.id)
            self._read_rows(source, intervals)
        sources = [source for source in sources if len(source.values)]
        if intervals is not None:
            if not self.issues and (note := intervals.note()):
                self._notes.append(note)
            self.issues += intervals.issues
        self._settle_gaps(sources)
        pieces = self._pieces(sources)
        train, test = ([one for one in pieces if one.is_train == is_train] for is_train in (True, False))
        splits = self._splits(test)
        sessions, entities = (self._groups(table, pieces) for table in ("sessions", "entities"))
        description, prior = self._description(), self._prior()
        if not self.issues and not train:
            self._report("no train row is left; correct the card's choice of files and rows")
        if not self.issues and not test and (card.test or card.single):
            self._report("no test row is left; correct the card's choice of files and rows")
        if self.issues:
            return None
        labels = Labels(
            {one.id: one.source.labels[one.start : one.stop].copy() for one in test if one.source.labels is not None},
            splits,
            {one.id: causes for one in test if (causes := one.causes())},
        )
        dataset = Dataset(
            name=card.name,
            train=tuple(piece.recording(self._sensors) for piece in train),
            test=tuple(piece.recording(self._sensors) for piece in test),
            splits=splits,
            description=description,
            prior=prior,
            citation=card.citation,
            licence=card.licence,
            notes=tuple(self._notes),
            folder=self._innermost(sources),
            layout=card.file_format(),
            sessions=sessions,
            entities=entities,
            version=card.version,
        )
        return LabelledDataset(dataset, labels)

    def _report(self, text: str, file: str | None = None, line: int | None = None, kind: str | None = None) -> None:
        self.issues.append(Issue(file or self._path.name, text, line, kind))

    # ------------------------------------------------------------------------------------------------------ files

    def _sources(self) -> list[Source]:
        """Return the recordings of all parts, those of training first."""
        card = self._card
        found = {role: self._find(part.files) for role, part in card.parts}
        part_of = {name: part for role, part in card.parts for name in found[role]}
        paths = {name: path for files in found.values() for name, path in files.items()}
        label = card.labels.column if isinstance(card.labels, LabelColumn) else None
        tables, issues = read_files(
            paths,
            lambda name: card.file_format(part_of[name]),
            needed=[*listed(card.columns.time), *(card.long.model_dump().values() if card.long else ())],
            sensors=[] if card.long else card.columns.sensors,
            skipped=[pattern for pattern in card.columns.ignore if pattern != label] if not card.long else [],
        )
        self.issues += issues
        sources: dict[tuple[int, ...], Source] = {}
        for role, part in card.parts:
            for place, (id_, own) in enumerate(self._recordings(role, part, found[role], tables)):
                key = tuple(map(id, own))
                if key not in sources:
                    sources[key] = Source(id_, {role: place}, part, tuple(own))
                    continue
                other = sources[key]
                if not other.part.before_event:
                    self._report(f"{own[0].name} is a training file and a test file; take it out of one of them")
                other.roles[role] = place
                other.id, other.part = id_, part
        return list(sources.values())

    def _find(self, patterns: Sequence[str]) -> dict[str, Path]:
        """Return the files that any pattern names, by their paths below the card's folder."""
        files: dict[str, Path] = {}
        for pattern in patterns:
            try:
                found = [path for path in self._folder.glob(pattern) if path.is_file()]
            except (ValueError, IndexError, NotImplementedError, OSError) as error:
                self._report(f"files {pattern!r}: expected a name or pattern below the card's folder ({error})")
                continue
            if not found:
                self._report(f"files {pattern!r}: there is no such file in {self._folder}; correct the name or pattern")
            for path in sorted(found, key=lambda path: as_counted(str(path))):
                name = path.relative_to(self._folder).as_posix()
                if ".." in name or not path.resolve().is_relative_to(self._folder.resolve()):
                    self._report(f"files {name!r}: lies outside of the card's folder; put the file itself there")
                elif printable(name) != name:
                    self._report(f"files '{printable(name)}': its name cannot be printed; rename it")
                else:
                    files.setdefault(name, path)
        return files

    def _recordings(
        self, role: str, part: Part, files: Mapping[str, Path], tables: Mapping[str, Mapping[str, Table]]
    ) -> list[tuple[str, list[Table]]]:
        """Return the id and the tables of each recording of a part."""
        found: dict[str, tuple[str, list[Table]]] = {}
        for name, path in files.items():
            arrays = tables.get(name, {})
            picked = [array for array in arrays if part.variables is None or matches(array, part.variables)]
            if arrays and not picked:
                text = f"{role}.variables: no array is called {part.variables}; it holds {list(arrays)[:10]}"
                self._report(text, name)
            if len(picked) > 1 and part.variables is None:
                self._report(f"it holds several arrays, {picked[:10]}; pick some by {role}.variables", name)
                continue
            key, id_ = name, path.stem if part.ids == "file name" else str(PurePosixPath(name).with_suffix(""))
            if part.join is not None:
                group = re.search(part.join, name)
                if not group or not group[1]:
                    self._report(f"{role}.join: {part.join!r} finds no group in {name!r}; correct either")
                    continue
                key = id_ = group[1]
            for array in picked:
                if part.variables is not None:
                    key = id_ = array or path.stem
                found.setdefault(key, (id_, []))[1].append(self._named(arrays[array]))
        return list(found.values())

    def _named(self, table: Table) -> Table:
        """Give names to the columns of an array that has none."""
        columns, n_columns = self._card.columns, table.frame.shape[1]
        if not isinstance(table.frame.columns, pd.RangeIndex):
            return table
        names = columns.names or []
        if isinstance(names, str):
            names = [names.replace(NUMBER, str(number)) for number in range(1, n_columns + 1)]
        n_named = len(names)
        if n_named > n_columns or not (n_named == n_columns or (names and columns.extra_columns == "ignore")):
            text = f"its {n_columns} columns have no names, and columns.names has {n_named}; correct these, or ignore"
            self._report(f"{text} more columns by columns.extra_columns", table.name)
            names = []
        table.frame = table.frame.iloc[:, : len(names)].set_axis(names, axis=1)
        return table

    # ---------------------------------------------------------------------------------------------------- columns

    def _names(self, table: Table) -> list[str]:
        """Return the names of a table's columns; of a long one, those of its sensors and of its times."""
        names, long = list(table.frame.columns), self._card.long
        if long is None or long.name not in names:
            return names
        return [*listed(self._card.columns.time), *table.frame[long.name].dropna().astype(str).str.strip().unique()]

    def _choose_sensors(self, sources: Sequence[Source]) -> None:
        """Choose the sensors from the columns' names; the first file's header decides, and its order."""
        columns, labels = self._card.columns, self._card.labels
        headers = [self._names(table) for source in sources for table in source.tables]
        if not headers:
            return
        everywhere = dict.fromkeys(name for header in headers for name in header)
        used = {*listed(columns.time), "", *([labels.column] if isinstance(labels, LabelColumn) else [])}
        free = [name for name in headers[0] if name not in used and not matches(name, columns.ignore)]
        free += [name for name in columns.sensors if name in everywhere and name not in {*free, *used}]
        chosen = dict.fromkeys(name for one in columns.sensors for name in free if matches(name, [one]))
        self._sensors = tuple(chosen)
        first = sources[0].tables[0].name
        if not chosen:
            text = f"no column is a sensor by columns.sensors = {columns.sensors}; found {headers[0][:20]}"
            self._report(text, first)
        for name in chosen if labels is None else ():
            if LABEL.search(name) and name not in columns.sensors:
                advice = "name it under [labels], columns.ignore or columns.sensors"
                self._report(f"column {name!r} is called like a label: {advice}", first)
        for pattern in columns.sensors if not self.issues else ():
            if not any(matches(name, [pattern]) for name in everywhere):
                near = nearest(pattern, everywhere) if len(everywhere) < 1000 else ""
                line = line_of(self._text, ("columns", "sensors"))
                self._report(f"columns.sensors: no column is called {pattern!r}{near}", line=line)

    # ------------------------------------------------------------------------------------------------------- rows

    def _read_rows(self, source: Source, intervals: Intervals | None) -> None:
        """Read the rows of a recording; it has none if its columns or times are wrong."""
        card, sensors = self._card, self._sensors
        labels = card.labels
        label = labels.column if isinstance(labels, LabelColumn) else None
        needed = dict.fromkeys(listed(card.columns.time), "time column")
        needed |= dict.fromkeys(card.long.model_dump().values() if card.long else sensors, "column")
        if label is not None and (source.needs_labels or label in source.tables[0].frame):
            needed[label] = "label column"
        faults = [(table, header_fault(list(table.frame.columns), needed)) for table in source.tables]
        for table, fault in faults:
            if fault:
                self._report(fault, table.name, table.header_line)
        n_rows = sum(len(table.frame) for table in source.tables)
        if n_rows == 0:
            self._report("it has no rows", source.tables[0].name)
        if n_rows == 0 or any(fault for _, fault in faults):
            return
        time = self._times(source)
        if time is None and card.columns.time:
            return
        if isinstance(labels, LabelColumn) and label in needed:
            found = [labels_of_cells(table.frame[label], labels, table, labels.column) for table in source.tables]
            source.labels = np.concatenate([rows for rows, _ in found])
            self.issues += [issue for _, issues in found for issue in issues]
        if isinstance(labels, LabelFile):
            self._read_label_file(source, labels, n_rows)
        grid = None
        if card.resample is not None and time is not None:
            held = card.long is not None and card.resample.by == "last"
            if fault := grid_fault(time, card.resample.every, held=held):
                self.issues.append(source.issue(int(np.argmax(np.diff(time))) + 1, fault))
                return
            grid = Grid.of(time, card.resample.every)
            source.labels = None if source.labels is None else grid.labels(source.labels)
            time = grid.time
        source.values, source.time = self._values(source, grid), time
        if grid is not None:
            source.rows = np.searchsorted(grid.bins, np.arange(len(grid.time)))
        if intervals is not None:
            step = 0.0 if card.resample is None else card.resample.every
            source.labels, source.causes = intervals.label(source.id, len(source.values), time, step)
        for table in source.tables:
            table.frame = table.frame[[]]  # its rows are in memory once

    def _times(self, source: Source) -> FloatArray | None:
        """Return the times, None if there are none, or if they are wrong."""
        columns = self._card.columns
        names = list(listed(columns.time))
        if not names:
            n_rows = sum(len(table.frame) for table in source.tables)
            return None if columns.period is None else np.arange(n_rows, dtype=np.float64) * columns.period
        cells = pd.concat([joined([table.frame[name] for name in names]) for table in source.tables], ignore_index=True)
        forms = listed(columns.time_format)
        failed = -1
        for form in forms:
            time = time_in_seconds(cells, form)
            wrong = np.flatnonzero(~np.isfinite(time))
            if not len(wrong):
                break
            failed = max(failed, int(wrong[0]))
        else:
            fault = f"column {', '.join(names)!r}: {time_fault(cells.iloc[failed], forms)}"
            self.issues.append(source.issue(failed, fault, "time"))
            return None
        back = np.flatnonzero(np.diff(time) < 0) + 1
        if len(back):
            fault = f"column {', '.join(names)!r}: {BACKWARDS}"
            self.issues.append(source.issue(int(back[0]), fault, "order", len(back)))
            return None
        return time

    def _values(self, source: Source, grid: Grid | None) -> FloatArray:
        """Return the sensors' values [n_rows, n_sensors], on the grid if there is one."""
        card, tables = self._card, source.tables
        n_rows = sum(len(table.frame) for table in tables) if grid is None else len(grid.time)
        values = np.empty((n_rows, len(self._sensors)))
        form = card.file_format(source.part)
        names: pd.Series | None = None
        if card.long is not None:
            names = pd.concat([table.frame[card.long.name] for table in tables], ignore_index=True)
            if names.isna().any():
                row = int(np.argmax(names.isna().to_numpy()))
                self.issues.append(
                    source.issue(row, f"column {card.long.name!r}: expected a sensor's name, found none")
                )
            places = names.astype(str).str.strip().groupby(names.astype(str).str.strip()).indices
        for i, sensor in enumerate(self._sensors):
            column = sensor if card.long is None else card.long.value
            cells = [table.frame[column] for table in tables]
            whole = cells[0] if len(cells) == 1 else pd.concat(cells, ignore_index=True)
            rows = None if names is None else np.asarray(places.get(sensor, []), dtype=np.int64)
            own = whole if rows is None else whole.iloc[rows]
            states = states_of(form, sensor)
            numbers, wrong = numbers_of(own, form, states)
            bad = np.flatnonzero(wrong)
            for row, count in first_rows(bad):
                text = f"column {sensor!r}: {number_fault(own.iloc[row], states)}"
                self.issues.append(source.issue(row if rows is None else rows[row], text, f"number {sensor}", count))
            if len(bad):
                numbers = np.where(wrong, 0.0, numbers)
            values[:, i] = numbers if grid is None else grid.values(numbers, form.resample_by, rows)
        return values

    # ----------------------------------------------------------------------------------------------------- labels

    def _read_label_file(self, source: Source, labels: LabelFile, n_rows: int) -> None:
        name = labels.of(source.id)
        path = self._beside(name, self._folder)
        if path is None:
            if source.needs_labels:
                self._report(f"there is no such file below {self._folder}; it holds the labels of {source.id!r}", name)
            return
        source.labels, issues = labels_of_file(self._card, labels, name, path, n_rows)
        self.issues += issues

    def _intervals(self, sources: Sequence[Source]) -> Intervals | None:
        labels = self._card.labels
        if not isinstance(labels, LabelIntervals):
            return None
        path = self._beside(labels.file, self._path.parent) or self._beside(labels.file, self._folder)
        if path is None:
            self._report("there is no such file beside the card, or in the data folder", labels.file)
            return None
        found = Intervals(self._card, labels, path, self._sensors)
        if not self.issues:
            found.check_known(source.id for source in sources)
        return found

    def _beside(self, name: str, folder: Path) -> Path | None:
        """Return a file that a card names, None if there is no such file below the folder."""
        path = folder / name
        inside = ".." not in PurePosixPath(name).parts and path.resolve().is_relative_to(folder.resolve())
        return path if inside and path.is_file() else None

    # ------------------------------------------------------------------------------------------------------- gaps

    def _settle_gaps(self, sources: Sequence[Source]) -> None:
        """Fill missing values or report them, as the card says."""
        gaps = self._card.gaps
        filled = [int(np.isnan(source.values).sum()) for source in sources]
        for source in sources:
            for sensor, values in zip(self._sensors, source.values.T, strict=True):
                if isinstance(gaps, FillGaps) and np.isnan(values).any():
                    values[:] = pd.Series(values).ffill(limit=gaps.at_most)
                missing = np.isnan(values)
                if missing.all():
                    text = "so are all others; put the column under ignore"
                elif isinstance(gaps, CutGaps) or not missing.any():
                    continue
                elif isinstance(gaps, FillGaps):
                    text = "no value lies before it to be carried forward"
                    if not missing[0]:
                        text = f"more than {gaps.at_most} in a row are missing (gaps.at_most)"
                else:
                    text = 'fill it in, ignore the column, or set gaps.policy = "forward-fill" or "cut"'
                row, count = int(np.argmax(missing)), int(missing.sum())
                text = f"column {sensor!r}: a value is missing; {text}"
                self.issues.append(source.issue(row, text, f"missing {sensor}", count))
        if isinstance(gaps, FillGaps) and any(filled):
            share = sum(filled) / sum(source.values.size for source in sources)
            self._notes.append(
                f"{sum(filled)} missing values ({share:.2%}) in {np.count_nonzero(filled)} files are filled with the "
                "sensor's last value, as its card says"
            )

    # ----------------------------------------------------------------------------------------------------- pieces

    def _pieces(self, sources: Sequence[Source]) -> list[Piece]:
        """Return the training recordings, then the test recordings in the order of their part."""
        pieces: list[Piece] = []
        for source in sources:
            border, n_rows = self._border(source), len(source.values)
            both = len(source.roles) > 1 or isinstance(source.part, Single)
            for is_train, start, stop in ((True, 0, border), (False, border, n_rows)):
                if start < stop and (is_train or [*source.roles] != ["train"]):
                    id_ = f"{source.id}/{'train' if is_train else 'test'}" if both else source.id
                    pieces.append(Piece(source, id_, start, stop, is_train, (source.id, id_)))
        if isinstance(self._card.gaps, CutGaps):
            pieces = self._cut(pieces, self._card.gaps.at_least)
        for piece in pieces:
            labels = piece.source.labels
            if piece.is_train and labels is not None and (wrong := labels[piece.start : piece.stop]).any():
                text = f'this row of {piece.id!r}, which trains, is labelled anomalous; set rows = "before first event"'
                row = piece.start + int(np.argmax(wrong))
                self.issues.append(piece.source.issue(row, text, "train", int(wrong.sum())))
        seen: dict[str, Piece] = {}
        for piece in pieces:
            other = seen.setdefault(piece.id, piece)
            if other is not piece:  # files of one name, or piece 1 of "run" and a file "run/1"
                files = f"{other.source.tables[0].name} and {piece.source.tables[0].name}"
                self._report(f"recordings of {files} would both be called {piece.id!r}; rename one")
        return sorted(pieces, key=lambda one: (not one.is_train, not one.is_train and [*one.source.roles.values()][-1]))

    def _border(self, source: Source) -> int:
        """Return how many rows of a recording are for training."""
        n_rows, labels, part, name = len(source.values), source.labels, source.part, source.tables[0].name
        if source.before_event:
            if labels is not None and labels.any():
                return int(np.argmax(labels))
            if labels is not None and [*source.roles] != ["train"]:
                self._report("it has no event, so no row is left to test on; name it in one part", name)
            return n_rows
        if not isinstance(part, Single):
            return n_rows if "train" in source.roles else 0
        rows = part.train_rows
        if isinstance(rows, str):
            found = re.search(rows, name)
            rows = int(found[1]) if found and found[1].isdecimal() else 0
        if not 0 < rows < n_rows:
            self._report(f"train_rows: {part.train_rows!r} makes {rows} training rows, but it has {n_rows}", name)
        return min(rows, n_rows)

    def _cut(self, pieces: Sequence[Piece], at_least: int) -> list[Piece]:
        """Return what missing values leave of pieces: those without any, and their long stretches."""
        kept, lost, anomalous, recordings = list[Piece](), 0, 0, set[str]()
        for piece in pieces:
            missing = np.isnan(piece.source.values[piece.start : piece.stop]).any(axis=1)
            if not missing.any():
                kept.append(piece)
                continue
            borders = np.flatnonzero(np.diff(np.concatenate([[True], missing, [True]]))).reshape(-1, 2)
            left = np.ones(piece.stop - piece.start, dtype=np.bool_)
            long = (pair for pair in borders.tolist() if pair[1] - pair[0] >= at_least)
            for number, (start, stop) in enumerate(long, start=1):
                left[start:stop] = False
                id_, first = f"{piece.id}/{number}", piece.start
                kept.append(Piece(piece.source, id_, first + start, first + stop, piece.is_train, (*piece.names, id_)))
            lost += int(left.sum())
            recordings.add(piece.source.id)
            if piece.source.labels is not None:
                anomalous += int((left & piece.source.labels[piece.start : piece.stop]).sum())
        if lost:
            n_rows = sum(piece.stop - piece.start for piece in pieces)
            self._notes.append(
                f"{lost} rows ({lost / n_rows:.2%}) with missing values, or in pieces of fewer than {at_least} rows, "
                f"are left out of {len(recordings)} recordings, as its card says; {anomalous} of them are anomalous"
            )
        return kept

    # ----------------------------------------------------------------------------------------------------- groups

    def _splits(self, test: Sequence[Piece]) -> dict[str, tuple[str, ...]]:
        """Return the test recordings of each split, by id."""
        splits = {"overall": tuple(piece.id for piece in test)} if self._card.test or self._card.single else {}
        for split, patterns in self._card.splits.items():
            splits[split] = tuple(piece.id for piece in test if piece.is_called(patterns))
            if not splits[split] and not self.issues:
                text = f"no test recording is called {patterns}; there are {splits['overall'][:10]}"
                self._report(f"splits.{split}: {text}")
        return splits

    def _groups(self, table: str, pieces: Sequence[Piece]) -> dict[str, str]:
        """Return the session or entity that each recording belongs to."""
        declared: dict[str, list[str]] = getattr(self._card, table)
        found: dict[str, str] = {}
        if self.issues:  # it is not known what belongs to each
            return found
        for group, patterns in declared.items():
            line = line_of(self._text, (table, group))
            for pattern in patterns:
                members = [piece for piece in pieces if piece.is_called([pattern])]
                if not members:
                    ids = [piece.id for piece in pieces[:10]]
                    self._report(f"{table}.{group}: no recording is called {pattern!r}; there are {ids}", line=line)
                for one in members:
                    if (other := found.setdefault(one.id, group)) != group:
                        text = (
                            f"{table}.{group}: recording {one.id!r} belongs to {table}.{other} too; take it out of one"
                        )
                        self._report(text, line=line, kind=f"{table} twice")
        missing = [piece.id for piece in pieces if declared and piece.id not in found]
        if missing:
            text = f"{table}: recordings {missing[:10]} belong to none of them; add them, or leave [{table}] out"
            self._report(text, line=line_of(self._text, (table,)))
        trained = {found.get(piece.id) for piece in pieces if piece.is_train}
        for group in declared if table == "entities" and not self.issues else ():
            if group not in trained:
                self._report(f"entities.{group}: it has no training row", line=line_of(self._text, (table, group)))
        return found

    # ------------------------------------------------------------------------------------------------ description

    def _near(self, name: str) -> Path:
        """Return a file that the card names relative to its own folder."""
        path = self._beside(name, self._path.parent)
        if path is None:
            raise FileNotFoundError("there is no such file below the card's folder")
        return path

    def _description(self) -> str:
        name = self._card.description
        try:
            return "" if name is None else read_text(self._near(name), _LONGEST_DESCRIPTION)
        except (OSError, UnicodeDecodeError) as error:
            self._report(f"description: {error}", name)
            return ""

    def _prior(self) -> Prior | None:
        name = self._card.prior
        if name is None:
            return None
        try:
            prior = Prior.load(self._near(name), origin=self._card.name)
            prior.check(self._sensors)
        except (OSError, DataError, UsageError) as error:
            self._report(str(error), name)
            return None
        return prior

    def _innermost(self, sources: Sequence[Source]) -> Path:
        """Return the innermost folder that holds all files: what a detector in the box must not reach for."""
        paths = [table.path for source in sources for table in source.tables]
        labels = self._card.labels
        if isinstance(labels, LabelFile):
            paths += [path for one in sources if (path := self._folder / labels.of(one.id)).exists()]
        elif isinstance(labels, LabelIntervals) and (self._folder / labels.file).exists():
            paths.append(self._folder / labels.file)
        return Path(os.path.commonpath([path.resolve().parent for path in paths]))


def as_counted(text: str) -> tuple[tuple[int, int, str], ...]:
    """Return a key that sorts "2" before "10".

    Examples
    --------
    >>> sorted(["d10.csv", "d2.csv"], key=as_counted)
    ['d2.csv', 'd10.csv']
    """
    parts = re.findall(r"\d+|\D+", text)
    return tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts)
