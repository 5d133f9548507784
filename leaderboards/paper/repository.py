"""The SKAB repository's own leaderboard next to ours: the page ``docs/skab-leaderboard.md``."""

from __future__ import annotations

import pandas as pd
from paper import HERE, mean_std

from tsadbench.api import number, table_lines

_METRICS = ("f1", "far", "mar")


def repository_page(ours: pd.DataFrame) -> str:
    """Return the page as Markdown; our rows under the protocol `skab` are a `Leaderboard.frame`.

    In ``skab_repository.csv``, ``detector`` is our label, ``name`` theirs; ``f1``, ``far`` and ``mar`` are shares, as
    published there; ``fault`` is what was found to be wrong in how they were computed.
    """
    rows = ours[ours["split"] == "overall"].set_index("detector")

    def shown(label: str, metric: str) -> str:
        return mean_std(*rows.loc[label, [f"{metric}_mean", f"{metric}_std"]]) if label in rows.index else "-"

    theirs = pd.read_csv(HERE / "skab_repository.csv").to_dict("records")
    header = ["detector", *(f"{metric.upper()}, {whose}" for metric in _METRICS for whose in ("theirs", "ours"))]
    table = []
    for one in theirs:
        label, cells = one["detector"], list[str]()
        for metric in _METRICS:
            cells += [number(one[metric], 4 if metric != "f1" else 2), shown(label, metric)]
        table.append([f"`{label}`", *cells, shown(label, "auroc")])
    return (
        (HERE / "repository.md")
        .read_text(encoding="utf-8")
        .format(
            flag_all=shown("all-positive", "f1"),
            table="\n".join(table_lines([*header, "AUROC, ours"], table)),
            faults="\n".join(f"- **{one['name']}**: {one['fault']}" for one in theirs),
        )
    )
