"""Guess which files of a folder hold the labels of others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import PurePosixPath

import numpy as np
import pandas as pd

from tsadbench.datasets.cards.choice import LABEL
from tsadbench.datasets.cards.look import Look, values_in
from tsadbench.datasets.reading.cells import canonical
from tsadbench.datasets.reading.csv import CsvFile
from tsadbench.utils.toml import toml_value

_INTERVALS = {"recording", "start", "end"}


def guess_labels(looks: Sequence[Look]) -> tuple[list[str], list[Look]]:
    """Return what a card says of labels in files of their own, and those files.

    Parameters
    ----------
    looks
        All files. Those whose labels are found get them.

    Returns
    -------
    tuple
        The lines of ``[labels]``, empty if no file seems to hold labels of others; the files that do.
    """
    if any(look.of_role("label") for look in looks if look.n_sensors > 1):
        return [], []
    for look in looks:
        if set(look.table.header) >= _INTERVALS and isinstance(look.table, CsvFile):
            unit = _take_intervals(look, looks)
            return ["[labels]", f"intervals = {toml_value(look.file.name)}", f'unit = "{unit}"'], [look]
    found = [
        (pattern, look, other) for other in looks if _holds_labels(other) for pattern, look in _named(other, looks)
    ]
    if not found:
        return [], []
    chosen = Counter(pattern for pattern, _, _ in found).most_common(1)[0][0]
    pairs = [(look, other) for pattern, look, other in found if pattern == chosen]
    for look, other in pairs:
        first = look.table.n_rows - other.table.n_rows  # 1 if a label has been taken for the column's name
        below = {value: row + first for value, row in values_in(other.table, 0).items()}
        look.labels = below | ({canonical(other.table.header[0]): 0} if first else {})
    return ["[labels]", f"file = {toml_value(chosen)}"], [other for _, other in pairs]


def _holds_labels(look: Look) -> bool:
    return len(look.table.header) == 1 and bool(LABEL.search(look.file.name))


def _named(other: Look, looks: Sequence[Look]) -> list[tuple[str, Look]]:
    """Return the recording that a file of labels is called after, with the pattern of its name."""
    name, best = PurePosixPath(other.file.name), list[tuple[int, str, Look]]()
    for look in looks:
        id_ = str(PurePosixPath(look.file.name).with_suffix(""))
        own = PurePosixPath(id_).name
        missing = look.table.n_rows - other.table.n_rows
        if look is other or len(look.table.header) < 2 or missing not in (0, 1):
            continue
        if id_ in other.file.name:
            best.append((len(id_), other.file.name.replace(id_, "{id}", 1), look))
        elif own == name.stem:
            best.append((len(own), name.with_name("{name}" + name.suffix).as_posix(), look))
    return [max(best, key=lambda found: found[0])[1:]] if best else []


def _take_intervals(intervals: Look, looks: Sequence[Look]) -> str:
    """Give recordings the labels that intervals tell; return the unit of these."""
    header = intervals.table.header
    rows = pd.concat(list(intervals.table.chunks([header.index("recording"), header.index("start")])))
    names, starts = rows[header.index("recording")].astype(str), rows[header.index("start")]
    if not pd.api.types.is_integer_dtype(starts.dtype):
        return "time"
    for look in looks:
        own = starts[names == str(PurePosixPath(look.file.name).with_suffix(""))]
        if len(own):
            look.labels = {"0": 0, "1": int(np.min(own))}
    return "rows"
