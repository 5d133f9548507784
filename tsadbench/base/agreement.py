"""When two computations of the same scores agree: equal but for rounding."""

from __future__ import annotations

import numpy as np

from tsadbench.utils.arrays import FloatArray

# Networks compute in single precision, and other numbers of windows at once are summed in another order. Of all that
# ships, no score of a part of a recording differs from that of the whole by more than 1e-6 of this size; a hundred
# times as much leaves room for deeper networks, and is a tenth of what a change of a score by a thousandth takes.
_OF_SPREAD = 1e-4
# Of the score itself: single precision has seven digits.
_OF_SIZE = 1e-6


def rounding(scores: FloatArray, whole: FloatArray | None = None) -> FloatArray:
    """Return for each score [n_rows] how far another computation of it may be away.

    Parameters
    ----------
    scores
        The scores.
    whole
        Scores of the same detector that show how they are spread; None: the same scores.

    Notes
    -----
    What counts is how far a score is from the median: adding a large number to all scores hides nothing.
    """
    of_all = scores if whole is None else whole
    present = of_all[np.isfinite(of_all)]
    if not len(present):
        return np.zeros_like(scores)
    median = float(np.median(present))
    spread = float(np.median(np.abs(present - median)))
    sizes = np.abs(present[present != 0.0])
    typical = float(np.median(sizes)) if len(sizes) else 0.0
    # The last term is for scores at zero, which rounding may leave a little above it.
    allowed = _OF_SPREAD * (np.abs(scores - median) + spread) + _OF_SIZE * (np.abs(scores) + 0.1 * typical)
    return np.where(np.isnan(allowed), 0.0, allowed)


def difference(
    found: FloatArray, expected: FloatArray, *, exact: bool = False, whole: FloatArray | None = None
) -> tuple[int | None, float]:
    """Return the first row in which two arrays of scores differ (None if none does), and the largest difference.

    Parameters
    ----------
    found, expected
        Scores [n_rows]. A row that is scored in one and not in the other differs infinitely.
    exact
        Whether rounding counts too.
    whole
        As for `rounding`, whose differences do not count.
    """
    apart = np.abs(found - expected)
    missing = np.isnan(found) != np.isnan(expected)
    apart = np.where(missing, np.inf, np.where(np.isnan(apart), 0.0, apart))
    rows = np.flatnonzero(apart > (0.0 if exact else rounding(expected, whole)))
    return (int(rows[0]) if len(rows) else None), float(apart.max(initial=0.0))
