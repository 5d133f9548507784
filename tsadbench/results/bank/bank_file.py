"""What a file of the score bank holds: the scores of one trial, float32, and its record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from tsadbench.errors import StoreError
from tsadbench.execution.record import Record
from tsadbench.utils.arrays import Float32Array, FloatArray
from tsadbench.utils.parameters import JsonValue

# Several times the largest file of the committed tables (docs/bank.md).
MOST_FILE_BYTES = 2**24
MOST_ROWS = 10**8
ROLES = ("train", "calibration", "test")
# Of a manifest, what the trial's identity and the judge are made of.
_LASTING = ("versions", "adapted", "imported", "priors", "code_hash", "data_hash", "episodes_hash", "labels_hash")


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


def lasting(record: Record) -> Record:
    """Return a trial's record without what another run of the same trial would have otherwise.

    That is what the machine added (seconds, memory, platform, command, times), what was drawn for this run alone (the
    order of its recordings, the rows of its replay audit), and how the user asked for it. Whether its box was sealed
    stays, as does its trust: tables say so.
    """
    manifest: dict[str, JsonValue] = {name: record.manifest[name] for name in _LASTING if name in record.manifest}
    if isinstance(versions := manifest.get("versions"), dict):
        # Python's own is no part of the scoring identity.
        manifest["versions"] = {name: version for name, version in versions.items() if name != "python"}
    return replace(
        record,
        fit_seconds=None,
        score_seconds=None,
        fit_cpu_seconds=None,
        score_cpu_seconds=None,
        peak_memory_mib=None,
        replay=None,
        stands_for="",
        manifest=manifest,
    )


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
