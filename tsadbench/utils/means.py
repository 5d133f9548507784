"""Means of figures of which some are undefined."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean


def mean_defined(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values that are defined; None if none is.

    Examples
    --------
    >>> mean_defined([1.0, None, 2.0]), mean_defined([None])
    (1.5, None)
    """
    defined = [value for value in values if value is not None]
    return fmean(defined) if defined else None
