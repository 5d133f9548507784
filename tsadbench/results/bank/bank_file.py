"""What a file of the score bank holds: the scores of one trial, float32, and its record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tsadbench.errors import StoreError
from tsadbench.execution.record import Record
from tsadbench.utils.arrays import Float32Array, FloatArray

# Several times the largest file of the committed tables (docs/bank.md).
MOST_FILE_BYTES = 2**24
MOST_ROWS = 10**8
ROLES = ("train", "calibration", "test")


@dataclass(frozen=True, slots=True, eq=False)
class BankFile:
    """What a file of the bank holds.

    Parameters
    ----------
    record
        The trial's record: metrics and thresholds are those of the scores before they were rounded to float32.
    scores
        By ``<role>/<episode>/<recording>`` as in a run store, [n_rows] each, NaN for rows without a score.
    """

    record: Record
    scores: Mapping[str, FloatArray]

    @property
    def n_rows(self) -> int:
        """Number of rows of all arrays."""
        return sum(map(len, self.scores.values()))

    @property
    def n_recordings(self) -> int:
        """Number of scored test recordings."""
        return sum(name.startswith("test/") for name in self.scores)


def single_precision(scores: Mapping[str, FloatArray]) -> dict[str, Float32Array]:
    """Return a trial's scores as the bank keeps them; arrays of a run store that are no scores are left out.

    Raises
    ------
    StoreError
        If a score is beyond what float32 can hold, or rounding makes different scores of one sign 0.
    """
    rounded = {}
    for name, values in scores.items():
        if name.partition("/")[0] not in ROLES:
            continue
        with np.errstate(over="ignore", under="ignore"):
            kept = values.astype(np.float32)
        if np.isinf(kept).any():
            raise StoreError(f"scores {name}: some are beyond 3.4e38, which float32 cannot hold")
        if ((kept == 0) & (values != 0)).any():
            raise StoreError(f"scores {name}: some are so near to 0 that float32 cannot tell them from it")
        rounded[name] = kept
    return rounded
