"""Missing values of a recording: an error, filled forward, or a cut."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tsadbench.base.file_format import FileFormat
from tsadbench.datasets.cards.contents import Contents
from tsadbench.datasets.reading.missing import CarryForward
from tsadbench.utils.issues import Issue


def fill_gaps(
    contents: Contents, sensors: Sequence[str], file_format: FileFormat, *, cut: bool
) -> tuple[int, list[Issue]]:
    """Fill missing values in place, as the format says.

    Parameters
    ----------
    contents, sensors
        The rows, and the names of their columns.
    file_format
        Says whether missing values may be filled.
    cut
        Whether a recording is cut where values are missing: nothing is filled then.

    Returns
    -------
    tuple
        How many values are filled; those that may not be missing.
    """
    values, issues = contents.values, list[Issue]()
    empty = np.isnan(values).all(axis=0) if len(values) else np.zeros(len(sensors), dtype=np.bool_)
    for sensor in map(int, np.flatnonzero(empty)):
        text = f"column {sensors[sensor]!r}: it has no value at all; put the column under ignore"
        issues.append(contents.place(0).issue(text, f"missing {sensors[sensor]}", len(values)))
        values[:, sensor] = 0.0
    if cut:
        return 0, issues
    carry = CarryForward(file_format, len(sensors))
    for gap in carry.fill(values):
        text = f"column {sensors[gap.sensor]!r}: {gap.text}"
        issues.append(contents.place(gap.row).issue(text, f"missing {sensors[gap.sensor]}", gap.count))
    return carry.n_filled, issues


def complete_stretches(contents: Contents, start: int, stop: int) -> list[tuple[int, int]]:
    """Return the first row of each longest stretch of rows without missing values, and the row after its last one."""
    missing = np.isnan(contents.values[start:stop]).any(axis=1)
    borders = np.flatnonzero(np.diff(np.concatenate([[True], missing, [True]]))) + start
    return [(int(first), int(after)) for first, after in zip(borders[::2], borders[1::2], strict=True)]
