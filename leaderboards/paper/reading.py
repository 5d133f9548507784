"""What the tables say when they are read honestly: thresholds that flag everything, floors, ranks, costs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from scipy.stats import kendalltau

from tsadbench.api import number, table_lines

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


def flagged_table(rows: Rows, splits: Sequence[str], labels: Sequence[str]) -> str:
    """Return the share of flagged rows and the MCC of each detector on each split, as Markdown."""
    titles = [f"{split} {what}" for split in splits for what in ("flagged", "MCC")]
    lines = []
    for label in labels:
        cells = [
            number(_value(row, metric), 3) if row is not None and row.ok else "-"
            for row in (rows.get((label, split)) for split in splits)
            for metric in ("flagged", "mcc")
        ]
        lines.append([f"`{label}`", *cells])
    return "\n".join(table_lines(["detector", *titles], lines))


def above_floors(rows: Rows, split: str, labels: Sequence[str]) -> str:
    """Return, as Markdown, which of the floor metrics each detector beats the best floor in."""
    lines = [
        [f"`{row.detector}`", *("no" if one in (row.below_floor or ()) else "**yes**" for one in FLOOR_METRICS)]
        for row in of_split(rows, split, labels)
    ]
    return "\n".join(table_lines(["detector", "AUROC", "AUPRC", "MCC"], lines))


def best_floors(rows: Rows, split: str) -> dict[str, tuple[str, float]]:
    """Return for each floor metric the best floor and its value."""
    floors = [row for (_, row_split), row in rows.items() if row_split == split and row.floor and row.ok]
    return {
        metric: (best.detector, _value(best, metric))
        for metric in FLOOR_METRICS
        if (best := max(floors, key=lambda row: _value(row, metric), default=None)) is not None
    }


def rank_changes(published: Rows, strict: Rows, split: str, labels: Sequence[str]) -> tuple[str, float] | None:
    """Return ranks by AUPRC under both protocols as Markdown, and Kendall's tau; None for fewer than two detectors."""
    both = [label for label in labels if all(of_split(rows, split, [label]) for rows in (published, strict))]
    if len(both) < 2:
        return None
    values = [{label: _value(rows[label, split], "auprc") for label in both} for rows in (published, strict)]
    ranks = [
        {label: rank for rank, label in enumerate(sorted(auprc, key=auprc.__getitem__, reverse=True), start=1)}
        for auprc in values
    ]
    lines = [
        [f"`{label}`", *(str(rank[label]) for rank in ranks), *(number(auprc[label], 4) for auprc in values)]
        for label in ranks[0]
    ]
    header = ["detector", "published", "strict", "AUPRC published", "AUPRC strict"]
    tau = kendalltau(*(list(auprc.values()) for auprc in values)).statistic
    return "\n".join(table_lines(header, lines)), float(tau)


def costs_table(rows: Rows, split: str, labels: Sequence[str]) -> str:
    """Return the wall-clock and CPU seconds of fitting and scoring per seed of each row, as Markdown."""
    lines = []
    for row in of_split(rows, split, labels):
        wall = [seconds for record in row.records for seconds in (record.fit_seconds, record.score_seconds)]
        cpu = [seconds for record in row.records for seconds in (record.fit_cpu_seconds, record.score_cpu_seconds)]
        known = None not in (*wall, *cpu)
        seconds = [f"{sum(one or 0 for one in both) / len(row.records):.1f}" if known else "-" for both in (wall, cpu)]
        shared = row.records[0].manifest.get("fit_shared_with") or []
        names = ", ".join(f"`{label}`" for label in shared) if isinstance(shared, list) else ""
        lines.append([f"`{row.detector}`", *seconds, str(len(row.seeds)), names or "-"])
    return "\n".join(table_lines(["detector", "wall clock, s", "CPU, s", "seeds", "fit shared with"], lines))


def _value(row: Any, metric: str) -> float:
    value = float(getattr(row, f"{metric}_mean", math.nan))
    return -math.inf if math.isnan(value) else value
