"""Remove training rows that also occur in the test, and hold out rows for the threshold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tsadbench.base import BoolArray, Recording, mask_runs, shared_rows

GAP = 100  # rows between the two parts, because neighbouring rows resemble each other
ONE_PART_IN = 5


def without_shared_rows(train: Sequence[Recording], test: Sequence[Recording]) -> tuple[Recording, ...]:
    """Return the training recordings without the rows that a test recording also has, cut at the gaps.

    Rows are equal if their time and all their values are. A row without time equals no other: a system at rest repeats
    its values, and would lose all its rows.
    """
    numbers = shared_rows([*train, *test], untimed="distinct")
    # Rows that only training recordings share have numbers as well: the test's decide.
    in_test = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *numbers[len(train) :]]))
    in_test = in_test[in_test >= 0]
    return _kept(train, [~np.isin(rows, in_test) for rows in numbers[: len(train)]])


def held_out(recordings: Sequence[Recording]) -> tuple[tuple[Recording, ...], tuple[Recording, ...]]:
    """Return the rows to be trained on, and those of the last fifth; the 100 rows between them are in neither.

    We hold out the last fifth of all rows, not of each recording: that needs one gap instead of many, keeps short
    recordings whole, and tests the threshold on recordings that the detector has not seen at all.
    """
    ends = np.cumsum([recording.n_rows for recording in recordings])
    first = ends[-1] - ends[-1] // ONE_PART_IN
    numbers = np.split(np.arange(ends[-1]), ends[:-1])
    trained, last = [rows < first - GAP for rows in numbers], [rows >= first for rows in numbers]
    return _kept(recordings, trained), _kept(recordings, last)


def _kept(recordings: Sequence[Recording], keep: Sequence[BoolArray]) -> tuple[Recording, ...]:
    """Return the runs of rows to keep. A part of a recording is named after its rows, "plant[0:120]"."""
    return tuple(
        one if stop - start == one.n_rows else one.rows(start, stop, id=f"{one.id}[{start}:{stop}]")
        for one, rows in zip(recordings, keep, strict=True)
        for start, stop in mask_runs(rows)
    )
