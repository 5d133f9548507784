"""What a missing score counts as: the worst case, so that silence never pays."""

from __future__ import annotations

import numpy as np

from tsadbench.utils.arrays import BoolArray, FloatArray


def worst_case(scores: FloatArray, anomalous: BoolArray) -> FloatArray:
    """Return scores in which every missing one has the worst rank: above all others if the row is normal, else below.

    Parameters
    ----------
    scores
        [n_rows], NaN if missing; not infinite.
    anomalous
        [n_rows] the truth.

    Returns
    -------
    ndarray
        [n_rows], finite; all other scores unchanged. No threshold may flag the lowest ones: see `flagged_rows`.

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


def flagged_rows(scores: FloatArray, anomalous: BoolArray, threshold: float) -> BoolArray:
    """Return which rows count as flagged, [n_rows]: scores above the threshold, and normal rows without a score.

    Anomalous rows without a score are not flagged at any threshold. Parameters as for `worst_case`.

    Examples
    --------
    >>> flagged_rows(np.array([2.0, np.nan, np.nan]), np.array([True, True, False]), threshold=1.0).tolist()
    [True, False, True]
    """
    flagged: BoolArray = (scores > threshold) | (np.isnan(scores) & ~anomalous)
    return flagged
