"""Strict reading of CSV files: every cell is what it has to be, or one message says which is not and what to do.

A good file is read at C speed; only where that fails are its lines searched for the fault (`csv_faults`).
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tsadbench.datasets.csv_faults import header_fault, row_fault
from tsadbench.datasets.csv_layout import Layout
from tsadbench.errors import DataError
from tsadbench.utils.arrays import BoolArray, FloatArray

# numpy takes some of them for white space and would read on.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """What a CSV file holds.

    Parameters
    ----------
    values
        [n_rows, n_sensors], finite, in the layout's order of sensors.
    time
        [n_rows] seconds since 1970, strictly increasing; None where the layout has no time.
    labels
        [n_rows], True where anomalous; None where the layout has no label.
    sha256
        Checksum of the bytes that were read, in hexadecimal digits.
    """

    values: FloatArray
    time: FloatArray | None
    labels: BoolArray | None
    sha256: str


def read_csv(path: Path, layout: Layout) -> Table:
    """Read a CSV file, UTF-8, with one header line; line ends may be LF, CRLF or CR.

    Parameters
    ----------
    path
        The file.
    layout
        What it must look like.

    Raises
    ------
    DataError
        If the file cannot be read or is not what the layout says. The message names the file, the first
        offending line (the header is line 1) and its column, and tells how many more there are.
    """
    content = _content(path)
    lines = _lines(path, content)
    header = lines[0].split(layout.separator)
    fault = header_fault(path, lines, layout)
    if fault is not None:
        raise fault
    table = _parse(lines, header, layout, hashlib.sha256(content).hexdigest())
    if table is None:
        raise row_fault(path, lines, layout)
    return table


def _content(path: Path) -> bytes:
    if path.is_dir():
        raise DataError(f"{path}: expected a file, found a folder; put the CSV file in its place")
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise DataError(f"{path}: there is no such file; check the path, or fetch the data set again") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); check its permissions") from error
    if not content.strip():
        raise DataError(f"{path}: the file is empty ({len(content)} bytes); fetch or copy it again")
    return content


def _lines(path: Path, content: bytes) -> list[str]:
    try:
        text = content.decode("utf-8-sig")  # a byte order mark, which spreadsheets write, is no part of the header
    except UnicodeDecodeError as error:
        line = _with_lf(content[: error.start].decode("latin-1")).count("\n") + 1
        byte = f"0x{content[error.start]:02x}"
        raise DataError(f"{path}, line {line}: expected UTF-8, found the byte {byte}; convert the file") from error
    text = _with_lf(text)
    control = _CONTROL.search(text)
    if control is not None:
        line = text.count("\n", 0, control.start()) + 1
        raise DataError(
            f"{path}, line {line}: found the control character {control[0]!r}; "
            "the file seems to be damaged: fetch or copy it again"
        )
    return text.removesuffix("\n").split("\n")


def _with_lf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _parse(lines: list[str], header: list[str], layout: Layout, sha256: str) -> Table | None:
    """Return what the lines hold, or None if any of them is not as it must be."""
    if any(line.count(layout.separator) != len(header) - 1 for line in lines):
        return None
    try:
        numbers = np.loadtxt(
            lines[1:],
            delimiter=layout.separator,
            usecols=[header.index(column) for column in layout.numbers],
            comments=None,
            ndmin=2,
        )
    except ValueError:
        return None
    values, labels = numbers, None
    if layout.label is not None:
        values, labels = numbers[:, :-1], numbers[:, -1]
    time = None
    if layout.time is not None:
        place = header.index(layout.time)
        time = layout.seconds([line.split(layout.separator, place + 1)[place] for line in lines[1:]])
    if not _sound(values, time, labels):
        return None
    return Table(values=values, time=time, labels=None if labels is None else labels == 1, sha256=sha256)


def _sound(values: FloatArray, time: FloatArray | None, labels: FloatArray | None) -> bool:
    return bool(
        np.isfinite(values).all()
        and (labels is None or np.isin(labels, (0.0, 1.0)).all())
        and (time is None or (np.isfinite(time).all() and (np.diff(time) > 0).all()))
    )
