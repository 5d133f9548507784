"""Scores as an order of rows: a row without a score ranks lowest."""

from __future__ import annotations

import numpy as np

from tsadbench.utils.arrays import FloatArray


def comparable(scores: FloatArray) -> FloatArray:
    """Return scores with NaN replaced by one value below all others, so that rows without a score rank lowest.

    Parameters
    ----------
    scores
        [n_rows], not infinite.

    Returns
    -------
    ndarray
        [n_rows]; all other scores unchanged.

    Examples
    --------
    >>> comparable(np.array([2.0, np.nan, 1.0])).argsort().tolist()
    [1, 2, 0]
    """
    missing = np.isnan(scores)
    present = scores[~missing]
    lowest = present.min() if present.size else 0.0
    # The next float below: `lowest - 1` equals `lowest` from 2**53 on, and scikit-learn rejects -inf.
    return np.where(missing, np.nextafter(lowest, -np.inf), scores)
