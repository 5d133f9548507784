"""The contract of scores, their comparison, trailing means, and the worst case for missing scores."""

from __future__ import annotations

import numpy as np

from tsadbench.errors import ContractError
from tsadbench.utils.arrays import BoolArray, FloatArray

# Single-precision sums depend on the batch size. For all detectors that ship, scores of a part of a recording differ
# from those of the whole by at most 1e-6 of the spread. 100 times as much leaves room for deeper networks, and still
# detects changes of a score by a thousandth.
_OF_SPREAD = 1e-4
# As a share of the score: single precision has seven digits.
_OF_SIZE = 1e-6


def checked_scores(scores: object, shape: tuple[int, ...], where: str) -> FloatArray:
    """Return scores [n_rows] or contributions [n_rows, n_sensors] as float64.

    Raises a ContractError if dtype or shape is wrong, a value is infinite, or NaN occurs between scored rows.
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
    infinite: BoolArray = np.asarray(np.isinf(by_row).any(axis=1))
    if infinite.any():
        raise ContractError(f"{where}: scores must not be infinite, row {int(infinite.argmax())} is")
    missing: BoolArray = np.asarray(np.isnan(by_row).any(axis=1))
    present = np.flatnonzero(~missing)
    if len(present) and missing[present[0] : present[-1]].any():
        row = int(present[0] + missing[present[0] :].argmax())
        raise ContractError(
            f"{where}: NaN is allowed as one leading and one trailing run of a recording, row {row} is NaN "
            f"between scored rows"
        )
    return scores


def worst_case(scores: FloatArray, anomalous: BoolArray) -> FloatArray:
    """Replace missing scores by the worst rank: above all others if the row is normal, else below.

    Scores [n_rows] are NaN if missing, and not infinite; ``anomalous`` is the truth. Other scores stay unchanged. No
    threshold may flag the lowest scores: see `flagged_rows`.

    Examples
    --------
    >>> worst_case(np.array([2.0, np.nan, 1.0, np.nan]), np.array([True, True, False, False])).argsort().tolist()
    [1, 2, 0, 3]
    """
    missing = np.isnan(scores)
    if not missing.any():
        return scores
    present = scores[~missing]
    lowest, highest = (present.min(), present.max()) if present.size else (0.0, 0.0)
    # The next floats: `lowest - 1` equals `lowest` from 2**53 on, and scikit-learn rejects infinite scores.
    worst = np.where(anomalous, np.nextafter(lowest, -np.inf), np.nextafter(highest, np.inf))
    return np.where(missing, worst, scores)


def flagged_rows(scores: FloatArray, anomalous: BoolArray, limits: FloatArray | float) -> BoolArray:
    """Return which rows count as flagged, [n_rows]: scores above their limit, and normal rows without a score.

    Anomalous rows without a score are not flagged at any threshold. Parameters as for `worst_case`.

    Examples
    --------
    >>> flagged_rows(np.array([2.0, np.nan, np.nan]), np.array([True, True, False]), 1.0).tolist()
    [True, False, True]
    """
    flagged: BoolArray = (scores > limits) | (np.isnan(scores) & ~anomalous)
    return flagged


def trailing_mean(values: FloatArray, rows: int) -> FloatArray:
    """Return the mean of each value and the ``rows - 1`` values before it; at the start, of fewer values.

    Values [n_rows, ...] belong to one recording; NaN is ignored, and stays NaN.

    Examples
    --------
    >>> trailing_mean(np.array([np.nan, 2.0, 4.0, 9.0]), 2)
    array([nan, 2. , 3. , 6.5])
    """
    # Each sum starts from zero, because a running sum keeps the rounding error of extreme values.
    present = ~np.isnan(values)
    total, count = np.zeros_like(values), np.zeros(values.shape)
    for shift in range(min(rows, len(values))):
        earlier = slice(0, len(values) - shift)
        total[shift:] += np.where(present[earlier], values[earlier], 0.0)
        count[shift:] += present[earlier]
    return np.where(present, total / np.maximum(count, 1.0), np.nan)


def difference(
    found: FloatArray, expected: FloatArray, *, exact: bool = False, whole: FloatArray | None = None
) -> tuple[int | None, float]:
    """Return the first row in which two arrays of scores differ (or None), and the largest difference.

    A row with a score in only one array differs infinitely. Unless ``exact``, rounding is tolerated: 1e-4 of the
    score's distance from the median plus the spread, and 1e-6 of the score. ``whole`` are scores of the same detector
    that determine the median and the spread; None: the expected scores.
    """
    apart = np.abs(found - expected)
    missing = np.isnan(found) != np.isnan(expected)
    apart = np.where(missing, np.inf, np.where(np.isnan(apart), 0.0, apart))
    of_all = expected if whole is None else whole
    present = of_all[np.isfinite(of_all)]
    allowed = np.zeros_like(apart)
    if len(present) and not exact:
        median = np.median(present)
        spread = np.median(np.abs(present - median))
        typical = np.median(np.abs(present[present != 0.0])) if present.any() else 0.0
        # The last term is for scores at zero, which rounding may raise slightly.
        allowed = _OF_SPREAD * (np.abs(expected - median) + spread) + _OF_SIZE * (np.abs(expected) + 0.1 * typical)
    rows = np.flatnonzero(apart > np.where(np.isnan(allowed), 0.0, allowed))
    return (int(rows[0]) if len(rows) else None), float(apart.max(initial=0.0))
