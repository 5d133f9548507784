"""What else the rows say: thresholds that flag everything, floors, and ranks under two protocols."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from scipy.stats import kendalltau

from tsadbench.api import table_lines

Rows = Mapping[tuple[str, str], Any]  # rows of `Leaderboard.frame` by label and split

FLOOR_METRICS = ("auroc", "auprc", "mcc")
# A threshold that flags a larger share of a split's rows flags practically everything.
_EVERYTHING = 0.999


def of_split(rows: Rows, split: str, labels: Sequence[str]) -> list[Any]:
    """Return the rows of these labels on a split, if they are ok."""
    return [row for label in labels if (row := rows.get((label, split))) is not None and row.ok]


def flags_everything(rows: Rows, split: str, labels: Sequence[str]) -> list[str]:
    """Return the labels whose thresholds flag practically all rows of a split, on average over seeds."""
    return [row.detector for row in of_split(rows, split, labels) if _value(row, "flagged") > _EVERYTHING]


def above_floors(rows: Rows, split: str, labels: Sequence[str]) -> str:
    """Return, as Markdown, the detectors that beat the best floor in any of the floor metrics."""
    verdicts = {
        row.detector: ["no" if one in (row.below_floor or ()) else "**yes**" for one in FLOOR_METRICS]
        for row in of_split(rows, split, labels)
    }
    lines = ([f"`{label}`", *cells] for label, cells in verdicts.items() if "**yes**" in cells)
    return "\n".join(table_lines(["detector", "AUROC", "AUPRC", "MCC"], lines))


def best_floors(rows: Rows, split: str) -> dict[str, tuple[str, float]]:
    """Return for each floor metric the best floor and its value."""
    floors = [row for (_, row_split), row in rows.items() if row_split == split and row.floor and row.ok]
    return {
        metric: (best.detector, _value(best, metric))
        for metric in FLOOR_METRICS
        if (best := max(floors, key=lambda row: _value(row, metric), default=None)) is not None
    }


def rank_agreement(published: Rows, strict: Rows, split: str, labels: Sequence[str]) -> float:
    """Return Kendall's tau between the orders by AUPRC under both protocols."""
    both = [label for label in labels if all(of_split(rows, split, [label]) for rows in (published, strict))]
    orders = ([_value(rows[label, split], "auprc") for label in both] for rows in (published, strict))
    return float(kendalltau(*orders)[0])


def _value(row: Any, metric: str) -> float:
    value = float(getattr(row, f"{metric}_mean", math.nan))
    return -math.inf if math.isnan(value) else value
