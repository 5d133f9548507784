"""Read the data set that a card describes: files, columns, labels, gaps, recordings."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

import numpy as np
import pandas as pd

from tsadbench.base.dataset import Cause, Dataset, LabelledDataset, Labels
from tsadbench.base.prior import Prior
from tsadbench.base.recording import Recording
from tsadbench.datasets import card as cards
from tsadbench.datasets import formats, times
from tsadbench.datasets.formats import matches, row_issues
from tsadbench.datasets.labels import label_rows, labels_of_cells, read_events, read_labels, unused_events
from tsadbench.errors import DataError, UsageError
from tsadbench.utils.arrays import BoolArray, FloatArray, IntArray, mask_runs
from tsadbench.utils.files import read_text
from tsadbench.utils.issues import SHOWN, Issue, raise_if_any
from tsadbench.utils.parameters import nearest
from tsadbench.utils.progress import progress
from tsadbench.utils.text import first_of, printable
from tsadbench.utils.toml import line_of, read_toml

# Names that suggest labels.
LABEL = re.compile(r"(?i)anomal|label|lable|attack|(?<!de)fault|outlier|defect|failure|^(class|target|y|status|event)$")
_LONGEST_DESCRIPTION = 2**24


def load_card(path: Path, folder: Path | None = None) -> LabelledDataset:
    """Load the data set that a card describes.

    A DataError lists everything that is wrong with the card and its files.
    """
    card, text, issues = read_toml(path, cards.Card, "the card", "tsadbench data new FOLDER  writes a card")
    loaded = CardReader(card, text, path, folder or path.parent, issues).read() if card else None
    raise_if_any(f"data set card {path}" if folder is None else f"data set {path.stem} in {folder}", issues)
    assert loaded is not None
    return loaded


@dataclass(slots=True, eq=False)
class Run:
    """A recording as read from files, or a part of one for training or test."""

    id: str
    part: cards.Part  # the last part that names it
    frames: Sequence[pd.DataFrame]  # its rows, until `values` is set
    roles: dict[str, int] = field(default_factory=dict)  # part -> its position there
    names: tuple[str, ...] = ()  # set by `cut`: the names that patterns may match, the whole recording's first
    places: pd.Index = field(default_factory=lambda: pd.Index([]))  # index of its rows, as in `formats.placed`
    values: FloatArray = field(default_factory=lambda: np.empty((0, 0)))  # [n_rows, n_sensors], NaN if missing
    time: FloatArray | None = None
    labels: BoolArray | None = None
    causes: tuple[Cause, ...] = ()

    @property
    def trains(self) -> bool:
        """Whether its rows are for training only."""
        return [*self.roles] == ["train"]

    def is_called(self, *patterns: str) -> bool:
        """Whether one of its names matches a pattern."""
        return any(matches(name, patterns) for name in self.names)

    def cut(self, start: int, stop: int, id_: str, role: str) -> Run:
        """Return rows ``start`` to ``stop - 1`` under a new id."""
        rows, inside = slice(start, stop), [one for one in self.causes if start < one.stop and one.start < stop]
        return replace(
            self,
            id=id_,
            roles={role: [*self.roles.values()][-1]},
            names=(*self.names, self.id, id_),
            places=self.places[rows],
            values=self.values[rows],
            time=None if self.time is None else self.time[rows],
            labels=None if self.labels is None else self.labels[rows],
            causes=tuple(Cause(max(c.start - start, 0), min(c.stop, stop) - start, c.sensors) for c in inside),
        )


class CardReader:
    """Reads the files of one card. Problems are added to ``issues``."""

    def __init__(self, card: cards.Card, text: str, path: Path, folder: Path, issues: list[Issue]) -> None:
        self.issues = issues
        self._card, self._text, self._path, self._folder = card, text, path, folder
        self._sensors: tuple[str, ...] = ()
        self._notes: list[str] = []
        self._n_filled = 0  # missing values
        self._read: list[Path] = []  # files of the data folder

    def read(self) -> LabelledDataset | None:
        """Return the data set, or None after an issue."""
        card, runs = self._card, self._runs()
        self._choose_sensors([frame for run in runs for frame in run.frames])
        if not self._sensors:
            return None
        labels, events = card.labels, None
        if isinstance(labels, cards.LabelIntervals):
            if file := self._beside(labels.file, self._path.parent) or self._beside(labels.file, self._folder):
                self._read += [file] if file.is_relative_to(self._folder) else []
                events = read_events(card, labels, file, self._sensors, self.issues)
            else:
                self._report("there is no such file next to the card or in the data folder", labels.file)
        for done, run in enumerate(runs):
            progress(done, len(runs), run.id)
            self._read_rows(run, events)
        if events is not None and not self.issues:
            self._notes += unused_events(events, [run.id for run in runs], self.issues)
        if self._n_filled and not self.issues:
            share = self._n_filled / sum(run.values.size for run in runs)
            self._notes.append(f"{self._n_filled} missing values ({share:.2%}) are filled with the sensor's last value")
        runs = self._divided([run for run in runs if len(run.values)])
        description, prior = self._described()
        if self.issues:
            return None
        test = [run for run in runs if not run.trains]
        splits = {"overall": tuple(run.id for run in test)} if card.test else {}
        splits |= {name: tuple(run.id for run in test if run.is_called(*of)) for name, of in card.splits.items()}
        for run in runs:
            run.values.flags.writeable = False  # read-only, so that the recording does not copy them
        recordings = {run: Recording(run.id, run.values, self._sensors, run.time) for run in runs}
        try:
            dataset = Dataset(
                train=tuple(recordings[run] for run in runs if run.trains),
                test=tuple(recordings[run] for run in test),
                splits=splits,
                description=description,
                prior=prior,
                notes=tuple(self._notes),
                # A detector must not read this folder.
                folder=Path(os.path.commonpath([path.resolve().parent for path in self._read])),
                layout=card.file_format(),
                # All pieces of a recording form one session with its name.
                sessions=self._groups("sessions", runs) or {run.id: run.names[0] for run in runs},
                entities=self._groups("entities", runs),
                **card.model_dump(include={"name", "citation", "licence", "version"}),
            )
        except DataError as error:
            self._report(str(error))
            return None
        rows = {run.id: run.labels.copy() for run in test if run.labels is not None}
        return LabelledDataset(dataset, Labels(rows, splits, {run.id: run.causes for run in test if run.causes}))

    def _report(self, text: str, file: str | None = None, line: int | None = None) -> None:
        self.issues.append(Issue(file or self._path.name, text, line))

    def _runs(self) -> list[Run]:
        """Return the recordings of all parts, training first."""
        card, runs = self._card, dict[tuple[str, ...], Run]()
        names = {role: self._find(part.files) for role, part in card.parts.items()}
        forms = {name: card.file_format(part) for role, part in card.parts.items() for name in names[role]}
        self._read += [self._folder / name for name in forms]
        tables = formats.read_files(
            {name: self._folder / name for name in forms},
            forms.__getitem__,
            self.issues,
            needed=[*cards.listed(card.columns.time), *(card.long.model_dump().values() if card.long else ())],
            sensors=[] if card.long else card.columns.sensors,
            texts=[card.labels.column] if isinstance(card.labels, cards.LabelColumn) else [],
        )
        used_in: dict[str, tuple[str, ...]] = {}
        for role, part in card.parts.items():
            found: dict[tuple[str, ...], tuple[str, list[pd.DataFrame]]] = {}
            for name in names[role]:
                for key, id_, frame in self._picked(role, part, name, tables.get(name, {})):
                    found.setdefault(key, (id_, []))[1].append(frame)
            for place, (id_, own) in enumerate(found.values()):
                key = tuple(frame.attrs["name"] for frame in own)
                for name in [one for one in key if used_in.setdefault(one, key) != key][:1]:
                    self._report("it is in two recordings; keep it in one, or list the same files in both parts", name)
                run = runs.setdefault(key, Run(id_, part, own))
                if run.roles and card.train.rows == "all":
                    self._report("it is both a training and a test file; keep it in one part", own[0].attrs["name"])
                run.roles[role], run.id, run.part = place, id_, part
        return list(runs.values())

    def _find(self, patterns: Sequence[str]) -> dict[str, None]:
        """Return the paths of the files that match any pattern, relative to the data folder."""
        files: dict[str, None] = {}
        for pattern in patterns:
            try:
                if pattern.count("**") > 1:  # each multiplies the paths to search
                    raise ValueError("expected at most one **")
                found = [path.relative_to(self._folder).as_posix() for path in self._folder.glob(pattern)]
                found = [name for name in sorted(sorted(found), key=as_counted) if (self._folder / name).is_file()]
            except (ValueError, IndexError, NotImplementedError, OSError) as error:
                self._report(f"files {pattern!r}: {error}")
                continue
            safe = [name for name in found if self._beside(name, self._folder) and printable(name) == name]
            if not found or len(safe) < len(found):
                text = f"expected files below {self._folder} with printable names, found {found or 'none'}"
                self._report(f"files {pattern!r}: {printable(text)}")
            files |= dict.fromkeys(safe)
        return files

    def _picked(
        self, role: str, part: cards.Part, name: str, arrays: dict[str, pd.DataFrame]
    ) -> Iterator[tuple[tuple[str, ...], str, pd.DataFrame]]:
        """Yield the tables of a file that a part uses, with the key and the id of their recordings."""
        columns, path = self._card.columns, PurePosixPath(name)
        picked = [array for array in arrays if part.variables is None or matches(array, part.variables)]
        group = part.join.match(name) if part.join else None
        joined = group[1] if group else None
        if arrays and (not picked or (len(picked) > 1 and part.variables is None)):
            text = f"{role}.variables = {part.variables or []}: expected names of its arrays, {[*arrays][:10]}"
            self._report(text, name)
            return
        if part.join and not joined:
            self._report(f"{role}.join: the path {name!r} does not match; correct the pattern")
            return
        for array in picked:
            frame, given = arrays[array], columns.names or []
            if isinstance(frame.columns, pd.RangeIndex):  # an array without column names
                if not isinstance(given, str) and len(given) == len(frame) != frame.shape[1]:  # one sensor per row
                    frame = arrays[array] = formats.placed(pd.DataFrame(frame.to_numpy().T), frame.attrs["name"])
                found = frame.shape[1]
                if isinstance(given, str):
                    given = [given.replace(cards.NUMBER, str(number)) for number in range(1, found + 1)]
                if len(given) != found:
                    self._report(f"expected {len(given)} columns (columns.names), found {found}", frame.attrs["name"])
                frame.columns = given if len(given) == found else [""] * found
            id_ = part.ids.replace("{path}", str(path.with_suffix(""))).replace("{name}", path.stem)
            id_ = joined or (array if part.variables and array else id_)
            yield (id_,) if joined else (name, array), id_, frame

    def _choose_sensors(self, frames: Sequence[pd.DataFrame]) -> None:
        """Choose the first file's columns that match the card's patterns, in their order, and columns named exactly."""
        columns, labels, long = self._card.columns, self._card.labels, self._card.long
        headers = [[*frame.columns] for frame in frames]
        if long is not None:  # for a long table, the sensor names
            for frame in frames:
                if fault := formats.header_fault([*frame.columns], {long.name: "column"}):
                    self._report(fault, frame.attrs["name"], frame.attrs.get("header"))
                    return
            headers = [[*frame[long.name].astype(str).str.strip().unique()] for frame in frames]
        if not headers:
            return
        everywhere, first = dict.fromkeys(name for header in headers for name in header), frames[0].attrs["name"]
        used = ["", *cards.listed(columns.time), *([labels.column] if isinstance(labels, cards.LabelColumn) else [])]
        free = [name for name in headers[0] if name not in used and not matches(name, columns.ignore)]
        free += [name for name in columns.sensors if name in everywhere and name not in used]
        self._sensors = tuple(dict.fromkeys(name for one in columns.sensors for name in free if matches(name, [one])))
        if not self._sensors:
            self._report(f"no sensor columns found; the columns are {headers[0][:20]}", first)
        for frame, header in zip(frames, headers, strict=True) if isinstance(columns.names, str) else ():
            more = [name for name in header if name not in (*used, *self._sensors) and matches(name, columns.sensors)]
            if more := [name for name in more if not matches(name, columns.ignore)]:
                self._report(f"{first} has no columns {more}; ignore them, or correct the file", frame.attrs["name"])
        for name in filter(LABEL.search, self._sensors):
            if name not in columns.sensors:
                advice = "name it under [labels], columns.ignore or columns.sensors"
                self._report(f"column {name!r} has the name of a label: {advice}", first)
        for pattern in columns.sensors if not self.issues else ():
            if not any(matches(name, [pattern]) for name in everywhere):
                text = f"columns.sensors: no column matches {pattern!r}{nearest(pattern, list(everywhere)[:1000])}"
                self._report(text, line=line_of(self._text, ("columns", "sensors")))

    def _read_rows(self, run: Run, events: pd.DataFrame | None) -> None:
        """Read the rows of a recording; leave them unset if its columns or times are wrong."""
        columns, labels, long, grid = self._card.columns, self._card.labels, self._card.long, self._card.resample
        label = labels.column if isinstance(labels, cards.LabelColumn) else ""
        needed = dict.fromkeys(cards.listed(columns.time), "time column")
        needed |= dict.fromkeys(long.model_dump().values() if long else self._sensors, "column")
        if label and (self._needs_labels(run) or label in run.frames[0]):
            needed[label] = "label column"
        before = len(self.issues)
        for frame in run.frames:
            if fault := formats.header_fault([*frame.columns], needed):
                self._report(fault, frame.attrs["name"], frame.attrs.get("header"))
        if len(self.issues) == before and not any(map(len, run.frames)):
            self._report("it has no rows", run.frames[0].attrs["name"])
        if len(self.issues) > before:
            return
        frame = pd.concat([one[[*needed]] for one in run.frames]) if run.frames[1:] else run.frames[0]
        run.frames, run.places = (), frame.index  # frees memory: keep the rows only once
        time = self._times(frame)
        if time is None and columns.time:
            return
        if isinstance(labels, cards.LabelColumn) and label in needed:
            run.labels = labels_of_cells(frame[label], labels, self.issues)
        elif isinstance(labels, cards.LabelFile):
            self._read_label_file(run, labels, len(frame))
        bins = None
        if grid is not None and time is not None:
            try:
                bins = times.grid_rows(time, grid.every, held=long is not None and grid.by == "last")
            except ValueError as error:
                self.issues += row_issues(frame.index, np.array([np.argmax(np.diff(time)) + 1]), str(error))
                return
            rows = np.arange(bins[-1] + 1)
            time, run.places = time[0] + rows * grid.every, frame.index[np.searchsorted(bins, rows)]
            if run.labels is not None:  # anomalous if any row of a bin is; empty bins repeat the row before
                groups = pd.Series(run.labels.astype(float)).groupby(bins)
                held = groups.last().reindex(range(len(rows))).ffill()
                run.labels = groups.max().reindex(held.index).fillna(held).to_numpy() > 0
        run.time, run.values = time, self._values(run, frame, bins)
        if events is not None and isinstance(labels, cards.LabelIntervals):
            step = grid.every if grid else 0.0
            run.labels, run.causes = label_rows(events, labels.unit, run.id, len(run.values), time, step)

    def _times(self, frame: pd.DataFrame) -> FloatArray | None:
        """Return the times of the rows; None if there are none, or after an issue (invalid or decreasing times)."""
        columns = self._card.columns
        names, forms = cards.listed(columns.time), cards.listed(columns.time_format)
        if not names:
            return None if columns.period is None else np.arange(len(frame), dtype=np.float64) * columns.period
        text, before, cells = f"column {', '.join(names)!r}: ", len(self.issues), times.joined(frame, names)
        time, _ = times.fitting_times(cells, forms)
        wrong = np.flatnonzero(~np.isfinite(time))
        texts = [text + times.time_fault(cell, forms) for cell in cells.iloc[wrong[:SHOWN]]]
        self.issues += row_issues(frame.index, wrong, texts)
        text += "the time is before that of the row above; sort the rows by time (if a clock was set back, in UTC)"
        self.issues += row_issues(frame.index, np.flatnonzero(np.diff(time) < 0) + 1, text)
        return time if len(self.issues) == before else None

    def _values(self, run: Run, frame: pd.DataFrame, bins: IntArray | None) -> FloatArray:
        """Return the sensors' values [n_rows, n_sensors], resampled and with gaps filled if the card says so."""
        long, gaps, form = self._card.long, self._card.gaps, self._card.file_format(run.part)
        values = np.empty((len(run.places), len(self._sensors)))
        if long is not None:
            names = frame[long.name].astype(str).str.strip().reset_index(drop=True)
            rows_of = names.groupby(names).indices
            fault = f"column {long.name!r}: expected a sensor's name, found none"
            self.issues += row_issues(frame.index, np.flatnonzero(names == ""), fault)
        last: tuple[object, ...] = ()
        for i, sensor in enumerate(self._sensors):
            rows = np.asarray(rows_of.get(sensor, []), dtype=np.int64) if long else slice(None)
            cells, states = frame[long.value if long else sensor], formats.states_of(form, sensor)
            if (key := (cells.name, *states.items())) != last:  # the sensors of a long table share a column
                last, converted = key, formats.numbers_of(cells, form, states)
            cells, (numbers, wrong) = cells.iloc[rows], (one[rows] for one in converted)
            if wrong.any():
                bad, numbers = np.flatnonzero(wrong), np.where(wrong, 0.0, numbers)
                declared = f" or one of the states {first_of([*map(repr, states)], 10)}" if states else ""
                advice = "set decimal if the decimal mark differs; see also files.missing and columns.ignore"
                found = [f"found {str(cell).strip()[:40]!r}; {advice}" for cell in cells.iloc[bad[:SHOWN]]]
                text = f"column {sensor!r}: expected a finite number{declared}, "
                self.issues += row_issues(cells.index, bad, [text + one for one in found])
            if bins is not None:
                laid = pd.Series(numbers).groupby(bins[rows]).agg(form.resample_by).reindex(range(len(values)))
                held = long is not None and form.resample_by == "last"
                numbers = (laid.ffill() if held else laid).to_numpy(np.float64)
            absent = np.isnan(numbers)
            if absent.any() and gaps.policy != "cut":
                advice = "set gaps.policy"
                if gaps.policy == "forward-fill":
                    numbers = np.asarray(pd.Series(numbers).ffill(limit=gaps.at_most), dtype=np.float64)
                    advice = "no earlier value" + f" within {gaps.at_most} rows (gaps.at_most)" * bool(gaps.at_most)
                    self._n_filled += int(absent.sum())
                text = f"column {sensor!r}: a value is missing; {advice}, or ignore the column"
                self.issues += row_issues(run.places, np.flatnonzero(np.isnan(numbers)), text)
            values[:, i] = numbers
        return values

    def _read_label_file(self, run: Run, labels: cards.LabelFile, n_rows: int) -> None:
        name = labels.file.replace("{id}", run.id)
        path = self._beside(name, self._folder)
        if path is None:
            if self._needs_labels(run):
                self._report(f"there is no such file in {self._folder}; it holds the labels of {run.id!r}", name)
            return
        self._read.append(path)
        frame, _ = read_labels(self._card, labels, path, name, self.issues)
        if frame is None:
            return
        frame.columns = [*map(str, frame.columns)]
        column = labels.column or (frame.columns[0] if frame.shape[1] == 1 else "labels.column")
        fault = formats.header_fault([*frame.columns], {column: "label column"})
        if fault or len(frame) != n_rows:
            self._report(fault or f"expected {n_rows} labels, one for each row, found {len(frame)}", name)
        else:
            run.labels = labels_of_cells(frame[column], labels, self.issues)

    def _beside(self, name: str, folder: Path) -> Path | None:
        """Return the path of a file that a card names; None if there is no such file below the folder."""
        path = folder / name
        inside = ".." not in PurePosixPath(name).parts and path.resolve().is_relative_to(folder.resolve())
        return path if inside and path.is_file() else None

    def _divided(self, runs: Sequence[Run]) -> list[Run]:
        """Return the training recordings, then the test recordings in the order of their part."""
        whole, parts, gaps = list[Run](), list[Run](), self._card.gaps
        at_least = (gaps.at_least or 2) if gaps.policy == "cut" else 1
        for run in runs:
            border, both = self._border(run), len(run.roles) > 1
            for role, start, stop in (("train", 0, border), ("test", border, len(run.values))):
                if start < stop and (role == "train" or not run.trains):
                    whole.append(run.cut(start, stop, f"{run.id}/{role}" if both else run.id, role))
        for part in whole:  # cut the recording at rows with missing values
            complete = np.asarray(~np.isnan(part.values).any(axis=1))
            pieces = [rows for rows in mask_runs(complete) if rows[1] - rows[0] >= at_least]
            cut = [part.cut(*rows, f"{part.id}/{number}", *part.roles) for number, rows in enumerate(pieces, start=1)]
            parts += [part] if complete.all() else cut
        n_rows, n_kept = (sum(len(part.values) for part in some) for some in (whole, parts))
        marked, kept = (sum(part.labels.sum() for part in some if part.labels is not None) for some in (whole, parts))
        if n_kept < n_rows:
            self._notes.append(
                f"{n_rows - n_kept} rows ({1 - n_kept / n_rows:.2%}) with missing values, or in pieces of fewer than "
                f"{at_least} rows, are left out, as its card says; {marked - kept} of them are anomalous"
            )
        for part in parts:
            if part.trains and part.labels is not None:
                text = f'this row of {part.id!r} trains, but is labelled anomalous; set rows = "before first event"'
                self.issues += row_issues(part.places, np.flatnonzero(part.labels), text)
        return sorted(parts, key=lambda part: (not part.trains, part.roles.get("test", 0)))

    def _needs_labels(self, run: Run) -> bool:
        return not run.trains or self._card.train.rows == cards.BEFORE_FIRST_EVENT

    def _border(self, run: Run) -> int:
        """Return the number of training rows of a recording."""
        n_rows, rows, name = len(run.values), self._card.train.rows, str(run.places[0][0])
        if "train" not in run.roles or rows == "all":
            return n_rows if run.trains else 0
        if rows == cards.BEFORE_FIRST_EVENT:
            if run.labels is not None and run.labels.any():
                return int(np.argmax(run.labels))
            self._notes.append(f"no event in {run.id!r}: all of its rows train")
            return n_rows
        number = str(rows)
        if isinstance(rows, re.Pattern):
            number = found[1] if (found := rows.match(name)) else ""
        border = int(number) if number.isdecimal() and len(number) < 16 else 0
        if not 0 < border < n_rows:
            self._report(f"train.rows: expected 1 to {n_rows - 1} of the file's {n_rows} rows, found {number!r}", name)
        return min(border, n_rows)

    def _groups(self, table: str, runs: Sequence[Run]) -> dict[str, str]:
        """Return the session or entity of each recording."""
        declared: dict[str, list[str]] = getattr(self._card, table)
        found: dict[str, str] = {}
        for group, patterns in declared.items():
            lost = [one for one in patterns if not any(run.is_called(one) for run in runs)]
            faults = [f"no recording matches {one!r}" for one in lost]
            members = [run for run in runs if run.is_called(*patterns)]
            faults += [f"recording {run.id!r} also belongs to {found[run.id]!r}" for run in members if run.id in found]
            if table == "entities" and not faults and not any(run.trains for run in members):
                faults.append("it has no training row")
            for fault in faults:
                self._report(f"{table}.{group}: {fault}", line=line_of(self._text, (table, group)))
            found |= {run.id: group for run in members}
        return found

    def _described(self) -> tuple[str, Prior | None]:
        """Read the description and the prior from files below the card's folder."""
        description, prior, beside = "", None, self._path.parent
        for key, name in self._card.model_dump(include={"description", "prior"}, exclude_none=True).items():
            try:
                path = self._beside(name, beside) or beside / "no such file"
                if key == "description":
                    description = read_text(path, _LONGEST_DESCRIPTION)
                else:
                    prior = Prior.load(path, origin=self._card.name)
                    prior.check(self._sensors)
            except (OSError, UnicodeDecodeError, DataError, UsageError) as error:
                self._report(f"{key}: {error}", name)
        return description, prior


def as_counted(text: str) -> tuple[tuple[int, int, str], ...]:
    """Return a key that sorts "d2.csv" before "d10.csv"."""
    parts = re.findall(r"\d+|\D+", text)
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts)
