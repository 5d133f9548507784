"""Training rows that also occur in a test recording."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tsadbench.base import BoolArray, Recording, mask_runs, shared_rows


def without_shared_rows(train: Sequence[Recording], test: Sequence[Recording]) -> tuple[Recording, ...]:
    """Return the training recordings without the rows that a test recording also has, cut at the gaps.

    Rows are equal if their time and all their values are equal. A row without time equals no other: a system at rest
    repeats its values, and would lose all its rows.

    Returns
    -------
    tuple
        In the order of ``train``. A recording that loses nothing is the same object; a piece of one is named after
        its rows, "plant[0:120]".
    """
    numbers = shared_rows([*train, *test], untimed="distinct")
    # Rows that only training recordings share have numbers as well: the test's decide.
    in_test = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *numbers[len(train) :]]))
    in_test = in_test[in_test >= 0]
    return tuple(
        piece
        for recording, rows in zip(train, numbers, strict=False)
        for piece in _pieces(recording, np.isin(rows, in_test))
    )


def _pieces(recording: Recording, shared: BoolArray) -> list[Recording]:
    if not shared.any():
        return [recording]
    return [recording.rows(start, stop, id=f"{recording.id}[{start}:{stop}]") for start, stop in mask_runs(~shared)]
