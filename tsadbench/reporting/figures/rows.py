"""What several figures need to know about results: their detectors, a title, a suitable axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tsadbench.errors import UsageError
from tsadbench.results.trial_result import TrialResult
from tsadbench.utils.arrays import FloatArray
from tsadbench.utils.grouping import grouped

# If the largest scores exceed the smallest by this factor, a linear axis shows nothing but the largest.
_ORDERS = 20.0
# A logarithmic axis is used only if this share of the scores is positive.
_MOSTLY = 0.9


def by_label(results: Sequence[TrialResult]) -> dict[str, tuple[TrialResult, ...]]:
    """Return the results of each detector, in the order of its first."""
    if not results:
        raise UsageError("expected at least one result, found none: there is nothing to draw")
    return grouped(results, lambda result: result.record.label)


def about(result: TrialResult, split: str) -> str:
    """Return a figure's title: the data and their size."""
    record = result.record
    judged = record.splits.get(split)
    rows = f" · {judged.n_rows:,} rows" if judged else ""
    share = f", {judged.n_anomalous / judged.n_rows:.1%} anomalous" if judged and judged.n_rows else ""
    return f"{record.dataset} · {split} · protocol {record.rules}{rows}{share}"


def spans_orders(scores: FloatArray, threshold: float) -> bool:
    """Return whether scores, [n], and their threshold call for a logarithmic axis, which cuts those not positive."""
    positive = scores[scores > 0]
    if threshold <= 0 or len(positive) < 2 or len(positive) < _MOSTLY * len(scores):
        return False
    low, high = np.quantile(positive, [0.05, 0.999])
    return bool(max(high, threshold) > _ORDERS * min(low, threshold))
