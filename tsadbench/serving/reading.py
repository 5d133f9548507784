"""Reads rows of sensor values for a model, from a file or a stream, like the files of a card."""

from __future__ import annotations

import codecs
import glob
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from select import select

import numpy as np
import pandas as pd

from tsadbench.base.file_format import FileFormat
from tsadbench.datasets import formats
from tsadbench.datasets.arrays import ARRAYS
from tsadbench.datasets.card import Card, WrittenAs
from tsadbench.datasets.reader import CardReader
from tsadbench.datasets.times import fitting_times, joined
from tsadbench.errors import DataError, UsageError
from tsadbench.serving.model import ModelCard
from tsadbench.utils.arrays import FloatArray, IntArray
from tsadbench.utils.issues import Issue, raise_if_any
from tsadbench.utils.text import first_of

# A new recording begins after this many consecutive rows without a score.
BREAK = 10
_BYTES_AT_ONCE = 2**20


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Some rows of an input."""

    values: FloatArray  # [n_rows, n_sensors], in the order of the model's sensors
    seconds: FloatArray | None  # [n_rows] since 1970, or since the first row if only a period is known
    # Columns `time`, or `row` numbers from 0, and `reason`: why a row cannot be scored; empty if it can.
    places: pd.DataFrame

    @staticmethod
    def joined(parts: Sequence[Rows]) -> Rows:
        """Join batches of rows."""
        seconds = [part.seconds for part in parts if part.seconds is not None]
        return Rows(
            np.concatenate([part.values for part in parts]),
            np.concatenate(seconds) if seconds else None,
            pd.concat([part.places for part in parts], ignore_index=True),
        )


class RowReader:
    """Reads the rows of one input, called ``name`` in messages; ``note`` receives remarks on its columns.

    A row with a broken cell, or an empty one that the format does not allow to be filled, gets a reason and counts as
    if it were not there: values are carried over it. After `BREAK` such rows in a row, times may start again. Time
    columns that differ from the model's are required.
    """

    def __init__(self, name: str, form: FileFormat, card: ModelCard, note: Callable[[str], None]) -> None:
        self._name, self._form, self._card, self._note = name, form, card, note
        self._columns: list[str] = []  # the names in the header, once it is read
        self._has_time = False
        self._n_lines = self._n_rows = self._n_broken = 0
        self._time_forms = form.time_formats
        self._last_time = -np.inf
        self._carried: pd.DataFrame | None = None  # earlier rows, to fill missing values

    def read(self, source: Path | int) -> Iterator[Rows]:
        """Yield the rows of a file, or of an open descriptor as they arrive; a DataError if that is impossible."""
        if self._form.resample_every is not None:
            if isinstance(source, int):
                raise UsageError("the model was fitted on resampled rows, so it cannot score a stream: score files")
            yield _resampled(source, self._form, self._card.sensors)
            return
        if isinstance(source, Path) and source.suffix.lower() in ARRAYS:
            yield self._table(source)
            return
        for lines in _lines(source, self._form.encoding):
            yield from self._cells(lines)
        if not self._columns:
            raise DataError(f"{self._name}: expected a header above the rows, found none")

    def _cells(self, lines: Sequence[str]) -> Iterator[Rows]:
        """Yield the rows of the next lines, skipping empty lines."""
        form, rows, numbers, faults = self._form, list[list[str]](), list[int](), dict[int, str]()
        for line in lines:
            self._n_lines += 1
            cells = formats.split(line, form.separator)
            if not self._columns:
                names = formats.names_of(cells, form)
                if formats.is_header(self._n_lines, names, form, self._card.sensors):
                    self._match(names)
                    self._first_line = self._n_lines + 1 + form.units_line
                elif self._n_lines >= (formats.SEARCHED_LINES if form.header_line == "search" else form.header_line):
                    raise DataError(f"{self._name}: expected a header by line {self._n_lines}, found none")
            elif self._n_lines >= self._first_line and line.strip():
                if len(cells) != len(self._columns):
                    faults[len(rows)] = f"{len(cells) or 'an open quote, 0'} cells, expected {len(self._columns)}"
                    cells = [""] * len(self._columns)
                rows.append(cells)
                numbers.append(self._n_lines)
        if rows:
            yield self._rows(pd.DataFrame(rows, columns=self._columns, dtype=object), faults, numbers)

    def _table(self, path: Path) -> Rows:
        """Return the rows of a Parquet file, or of an array, whose columns may have no names."""
        issues = list[Issue]()
        tables = formats.read_files({str(path): path}, lambda _: self._form, issues)
        raise_if_any(str(path), issues)
        arrays, sensors = tables[str(path)], list(self._card.sensors)
        if len(arrays) != 1:
            raise DataError(f"{path}: expected one array, found {list(arrays)[:10]}; save one array per file")
        frame = next(iter(arrays.values()))
        if isinstance(frame.columns, pd.RangeIndex) and frame.shape[1] == len(sensors):
            frame = frame.set_axis(sensors, axis=1)  # in the model's order
        self._match([*map(str, frame.columns)])
        return self._rows(frame, {})

    def _match(self, names: list[str]) -> None:
        """Check that the columns are those that the model needs; note differences from its training files."""
        form, sensors = self._form, self._card.sensors
        times = [name for name in form.time if name in names or form.time != self._card.layout.time]
        if fault := formats.header_fault(names, dict.fromkeys(times, "time column") | dict.fromkeys(sensors, "sensor")):
            raise DataError(f"{self._name}: {fault} (see --separator, --decimal, --time and --time-format)")
        self._columns, self._has_time = names, bool(form.time) and len(times) == len(form.time)
        if form.time and not self._has_time:
            self._note(f"it has no time column {first_of([*map(repr, form.time)])}; its rows are numbered")
        used = (*sensors, *form.time)
        if unused := [name for name in names if name and name not in used and not formats.matches(name, form.unused)]:
            self._note(f"ignored columns unknown to the model: {first_of([*map(repr, unused)])}")

    def _rows(self, frame: pd.DataFrame, faults: dict[int, str], lines: Sequence[int] = ()) -> Rows:
        """Return the next rows; ``faults`` are known so far, ``lines`` are line numbers, if any."""
        form, n_rows = self._form, len(frame)
        numbers = np.arange(self._n_rows, self._n_rows + n_rows)
        self._n_rows += n_rows
        values = np.empty((n_rows, len(self._card.sensors)))
        for i, sensor in enumerate(self._card.sensors):
            cells = frame[sensor]
            values[:, i], wrong = formats.numbers_of(cells, form, formats.states_of(form, sensor))
            for row in np.flatnonzero(wrong).tolist():
                faults.setdefault(row, f"no number of {sensor!r}: {str(cells.iloc[row]).strip()[:40]!r}")
        seconds = self._seconds(frame, faults) if self._has_time else None
        if seconds is None and form.period is not None:
            seconds = np.asarray(numbers * form.period, dtype=np.float64)
        self._settle(values, seconds, faults)
        for row in np.flatnonzero(np.isnan(values).any(axis=1)).tolist():
            absent = np.flatnonzero(np.isnan(values[row]))
            faults.setdefault(row, f"no value of {first_of([repr(self._card.sensors[i]) for i in absent])}")
        if lines:
            faults = {row: f"line {lines[row]}: {fault}" for row, fault in faults.items()}
        return Rows(values, seconds, _places(numbers, seconds if self._has_time else None, faults))

    def _seconds(self, frame: pd.DataFrame, faults: dict[int, str]) -> FloatArray:
        """Return times in the format that fits most rows; the first rows with times decide for the rest."""
        cells = joined(frame, self._form.time)
        seconds, best = fitting_times(cells, self._time_forms)
        if np.isfinite(seconds).any():
            self._time_forms = (best,)
        for row in np.flatnonzero(~np.isfinite(seconds)).tolist():
            faults.setdefault(row, f"no time written as {best}: {str(cells.iloc[row]).strip()[:40]!r}")
        return seconds

    def _settle(self, values: FloatArray, seconds: FloatArray | None, faults: dict[int, str]) -> None:
        """Find rows with decreasing times, and fill missing values of other rows in place where allowed."""
        sound, filled = [], self._form.fill == "forward-fill"
        for row in range(len(values)):
            if seconds is not None and seconds[row] < self._last_time:
                faults.setdefault(row, "its time precedes that of an earlier row")
            if row in faults or (not filled and np.isnan(values[row]).any()):
                self._n_broken += 1
                self._last_time = -np.inf if self._n_broken >= BREAK else self._last_time
            else:
                self._n_broken = 0
                self._last_time = -np.inf if seconds is None else seconds[row]
                sound.append(row)
        if filled and sound:
            values[sound] = self._filled(pd.DataFrame(values[sound]))

    def _filled(self, rows: pd.DataFrame) -> FloatArray:
        """Return rows with missing values filled by earlier values, as far as the format allows."""
        most = self._form.fill_at_most
        whole = pd.concat([self._carried, rows])  # concat drops None
        filled = whole.ffill(limit=most)
        self._carried = filled.tail(1) if most is None else whole.tail(most)
        return np.asarray(filled.tail(len(rows)).to_numpy())


def _lines(source: Path | int, encoding: str) -> Iterator[list[str]]:
    """Yield lists of complete lines as they arrive. Undecodable bytes affect only their cell."""
    decoder = io.IncrementalNewlineDecoder(
        codecs.getincrementaldecoder(formats.codec(encoding))("replace"), translate=True
    )
    rest = ""
    with open(source, "rb", buffering=0, closefd=isinstance(source, Path)) as file:
        # An interrupt just before a read would otherwise wait for the next row.
        while (data := file.read(_BYTES_AT_ONCE) if select([file], [], [], 1.0)[0] else None) != b"":
            if data:
                *lines, rest = (rest + decoder.decode(data)).split("\n")
                yield lines
    yield (rest + decoder.decode(b"", final=True)).split("\n")


def _places(numbers: IntArray, seconds: FloatArray | None, faults: Mapping[int, str]) -> pd.DataFrame:
    where = (
        {"row": numbers}
        if seconds is None
        else {"time": pd.to_datetime(np.round(seconds * 1e6), unit="us", errors="coerce")}
    )
    return pd.DataFrame({**where, "reason": [faults.get(row, "") for row in range(len(numbers))]})


def _resampled(path: Path, form: FileFormat, sensors: Sequence[str]) -> Rows:
    """Return the rows of a file on its format's grid, like the reader of cards."""
    fill = {"policy": form.fill} | ({"at_most": form.fill_at_most} if form.fill_at_most else {})
    card = {
        "schema": 1,
        "name": "new",
        "files": {key: getattr(form, key) for key in WrittenAs.model_fields} | {"missing": [*form.missing]},
        "train": {"files": [glob.escape(path.name)]},
        "columns": {"sensors": [*sensors], "time_format": [*form.time_formats]}
        | ({"time": [*form.time]} if form.time else {"period": form.period}),
        "long": None if form.long is None else dict(zip(("name", "value"), form.long, strict=True)),
        "resample": {"every": form.resample_every, "by": form.resample_by},
        "gaps": fill,
        "states": {pattern: dict(codes) for pattern, codes in form.states},
    }
    reader = CardReader(Card.model_validate(card), "", path, path.parent, [])
    loaded = reader.read()
    raise_if_any(str(path), reader.issues)
    assert loaded is not None
    recording = loaded.dataset.train[0]
    places = _places(np.arange(recording.n_rows), recording.time if form.time else None, {})
    return Rows(recording.values, recording.time, places)
