"""The SKAB repository's own leaderboard beside ours: the page ``docs/skab-leaderboard.md``."""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files

from tsadbench.leaderboard.ranking import Row
from tsadbench.studies.reproduction.reading import Rows
from tsadbench.utils.markdown import number, table_lines

_METRICS = ("f1", "far", "mar")


@cache
def repository_rows() -> tuple[dict[str, str], ...]:
    """Return the repository's leaderboard, best F1 first.

    ``detector`` is our label, ``name`` theirs; ``f1``, ``far`` and ``mar`` are shares, as published there; ``fault`` is
    what was found to be wrong in how they were computed.
    """
    text = (files(__package__) / "skab_repository.csv").read_text(encoding="utf-8")
    return tuple(csv.DictReader(text.splitlines()))


def repository_page(rows: Rows) -> str:
    """Return the page as Markdown.

    Parameters
    ----------
    rows
        Ours under the protocol `skab`, by label and split, including floors.
    """
    header = ["detector", *(f"{metric.upper()}, {whose}" for metric in _METRICS for whose in ("theirs", "ours"))]
    table = []
    for theirs in repository_rows():
        ours = rows.get((theirs["detector"], "overall"))
        cells = [
            cell
            for metric in _METRICS
            for cell in (number(float(theirs[metric]), 4 if metric != "f1" else 2), _mean_std(ours, metric))
        ]
        table.append([f"`{theirs['detector']}`", *cells, _mean_std(ours, "auroc")])
    in_repository = {theirs["detector"] for theirs in repository_rows()}
    for (label, split), row in rows.items():
        if split == "overall" and label not in in_repository and row.ok:
            cells = [cell for metric in _METRICS for cell in ("-", _mean_std(row, metric))]
            mark = " (floor)" if row.floor else ""
            table.append([f"`{label}`{mark}", *cells, _mean_std(row, "auroc")])
    faults = [f"- **{theirs['name']}**: {theirs['fault']}" for theirs in repository_rows()]
    template = (files(__package__) / "repository.md").read_text(encoding="utf-8")
    return template.format(
        flag_all=_mean_std(rows.get(("all-positive", "overall")), "f1"),
        table="\n".join(table_lines([*header, "AUROC, ours"], table)),
        faults="\n".join(faults),
    )


def _mean_std(row: Row | None, metric: str) -> str:
    return "-" if row is None or metric not in row.metrics else row.metrics[metric].text()
