"""The SKAB repository's own leaderboard next to ours: the page ``docs/skab-leaderboard.md``."""

from __future__ import annotations

import csv
from typing import Any

from paper import HERE, summary_of

from tsadbench.api import number, table_lines

_METRICS = ("f1", "far", "mar")


def repository_page(rows: dict[tuple[str, str], Any]) -> str:
    """Return the page as Markdown: ours under the protocol `skab`, by label and split, including floors.

    In ``skab_repository.csv``, ``detector`` is our label, ``name`` theirs; ``f1``, ``far`` and ``mar`` are shares, as
    published there; ``fault`` is what was found to be wrong in how they were computed.
    """
    with (HERE / "skab_repository.csv").open(encoding="utf-8") as file:
        theirs = list(csv.DictReader(file))
    header = ["detector", *(f"{metric.upper()}, {whose}" for metric in _METRICS for whose in ("theirs", "ours"))]
    table = []
    for one in theirs:
        ours = rows.get((one["detector"], "overall"))
        cells = [
            cell
            for metric in _METRICS
            for cell in (number(float(one[metric]), 4 if metric != "f1" else 2), _mean_std(ours, metric))
        ]
        table.append([f"`{one['detector']}`", *cells, _mean_std(ours, "auroc")])
    return (
        (HERE / "repository.md")
        .read_text(encoding="utf-8")
        .format(
            flag_all=_mean_std(rows.get(("all-positive", "overall")), "f1"),
            table="\n".join(table_lines([*header, "AUROC, ours"], table)),
            faults="\n".join(f"- **{one['name']}**: {one['fault']}" for one in theirs),
        )
    )


def _mean_std(row: Any, metric: str) -> str:
    return "-" if row is None else summary_of(row, metric).text()
