"""The rows of one recording as numbers, and where each of them stands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from tsadbench.utils.arrays import BoolArray, FloatArray
from tsadbench.utils.issues import Issue


class Place(NamedTuple):
    """Where a row stands: the file's name for messages, the line (None if it has no lines), and the row in the file."""

    file: str
    line: int | None
    row: int

    def issue(self, text: str, kind: str | None = None, count: int = 1) -> Issue:
        """Return what is wrong with the row."""
        where = f" (row {self.row}, counted from 0)" if self.line is None else ""
        return Issue(self.file, f"{text}{where}", self.line, kind, count)


@dataclass(frozen=True, slots=True, eq=False)
class Contents:
    """The rows of one recording.

    Parameters
    ----------
    values
        [n_rows, n_sensors], NaN if a value is missing, otherwise finite.
    time
        [n_rows] seconds since 1970, or since the first row if a period is given; None without either.
    labels
        [n_rows], True where anomalous; None if the file has no labels.
    place
        Where a row of these, counted from 0, stands.
    issues
        What is wrong with the rows.
    """

    values: FloatArray
    time: FloatArray | None
    labels: BoolArray | None
    place: Callable[[int], Place]
    issues: tuple[Issue, ...]
