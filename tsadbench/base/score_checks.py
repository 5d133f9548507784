"""Validation of scores: when a detector returns them, and again when they leave the box."""

from __future__ import annotations

import numpy as np

from tsadbench.errors import ContractError
from tsadbench.utils.arrays import BoolArray, FloatArray


def checked_scores(scores: object, shape: tuple[int, ...], where: str) -> FloatArray:
    """Return scores [n_rows] or contributions [n_rows, n_sensors] as float64 if they keep the contract.

    Raises
    ------
    ContractError
        If dtype or shape is wrong, a value is infinite, or NaN stands between scored rows.
    """
    if not isinstance(scores, np.ndarray) or scores.dtype.kind not in "fiu":
        found = scores.dtype if isinstance(scores, np.ndarray) else type(scores).__name__
        raise ContractError(f"{where}: expected an array {list(shape)} of floats, found {found}")
    if scores.shape != shape:
        column = scores.shape == (*shape, 1) or scores.shape == (1, *shape)
        hint = ": return scores.ravel()" if column and len(shape) == 1 else ""
        raise ContractError(f"{where}: expected shape {list(shape)}, found {list(scores.shape)}{hint}")
    scores = scores.astype(np.float64, copy=False)
    by_row = scores.reshape(len(scores), -1)
    infinite = _any_in_row(np.isinf(by_row))
    if infinite.any():
        raise ContractError(f"{where}: scores must not be infinite, row {int(infinite.argmax())} is")
    missing = _any_in_row(np.isnan(by_row))
    present = np.flatnonzero(~missing)
    if len(present) and missing[present[0] : present[-1]].any():
        row = int(present[0] + missing[present[0] :].argmax())
        raise ContractError(
            f"{where}: NaN is allowed as one leading and one trailing run of a recording, row {row} is NaN "
            f"between scored rows"
        )
    return scores


def _any_in_row(mask: BoolArray) -> BoolArray:
    return np.asarray(mask.any(axis=1), dtype=np.bool_)
