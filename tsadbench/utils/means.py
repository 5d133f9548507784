"""Means of figures of which some are undefined."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean


def mean_defined(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values that are not None; None if there are no others."""
    defined = [value for value in values if value is not None]
    return fmean(defined) if defined else None
