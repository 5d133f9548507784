"""The SKAB repository's own leaderboard beside ours: the page ``docs/skab-leaderboard.md``."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from tsadbench.leaderboard.ranking import Row
from tsadbench.studies.reproduction.reading import Rows
from tsadbench.utils.markdown import number, table_lines

_METRICS = ("f1", "far", "mar")


@dataclass(frozen=True, slots=True)
class RepositoryRow:
    """A row of the repository's leaderboard.

    Parameters
    ----------
    label, name
        Our detector, and its name in the repository.
    f1, far, mar
        As published there; shares, not percent.
    fault
        What was found to be wrong in how the values were computed.
    """

    label: str
    name: str
    f1: float
    far: float
    mar: float
    fault: str


@cache
def repository_rows() -> tuple[RepositoryRow, ...]:
    """Return the repository's leaderboard, best F1 first."""
    text = (files(__package__) / "skab_repository.csv").read_text(encoding="utf-8")
    return tuple(
        RepositoryRow(
            line["detector"], line["name"], float(line["f1"]), float(line["far"]), float(line["mar"]), line["fault"]
        )
        for line in csv.DictReader(text.splitlines())
    )


def repository_page(rows: Rows) -> str:
    """Return the page as Markdown.

    Parameters
    ----------
    rows
        Ours under the protocol `skab`, by label and split, including floors.
    """
    floor = rows.get(("all-positive", "overall"))
    lines = [
        "# The SKAB repository's leaderboard beside ours",
        "",
        "Written by `tsadbench reproduce`, not by hand. Protocol `skab`: each of the 34 files trains a detector on its "
        "first 400 rows and is tested on the rest, 23,801 rows, 12,771 of them anomalous; counts are pooled over the "
        "files. Ours are mean(std) over seeds, with the threshold by Peaks-over-Threshold on the training scores; the "
        "repository sets each method's threshold by a factor of its own that no validation set explains.",
        "",
        f"Flagging every row has F1 {_mean_std(floor, 'f1')}: what is below that has shown nothing by F1.",
        "",
        "`other/2` is anomalous from row 104 on: 296 of the 400 rows that it trains on. It is in all these figures, "
        "theirs and ours.",
        "",
    ]
    header = ["detector", *(f"{metric.upper()}, {whose}" for metric in _METRICS for whose in ("theirs", "ours"))]
    table = []
    for theirs in repository_rows():
        ours = rows.get((theirs.label, "overall"))
        cells = [
            cell
            for metric in _METRICS
            for cell in (number(getattr(theirs, metric), 4 if metric != "f1" else 2), _mean_std(ours, metric))
        ]
        table.append([f"`{theirs.label}`", *cells, _mean_std(ours, "auroc")])
    known = {theirs.label for theirs in repository_rows()}
    for (label, split), row in rows.items():
        if split == "overall" and label not in known and row.ok:
            cells = [cell for metric in _METRICS for cell in ("-", _mean_std(row, metric))]
            mark = " (floor)" if row.floor else ""
            table.append([f"`{label}`{mark}", *cells, _mean_std(row, "auroc")])
    lines += table_lines([*header, "AUROC, ours"], table)
    lines += ["", "What was found to be wrong in how the repository's figures came about:", ""]
    lines += [f"- **{theirs.name}**: {theirs.fault}" for theirs in repository_rows()]
    return "\n".join(lines) + "\n"


def _mean_std(row: Row | None, metric: str) -> str:
    return "-" if row is None or metric not in row.metrics else row.metrics[metric].text()
