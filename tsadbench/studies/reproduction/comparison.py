"""Our rows against the paper's: difference and verdict for every cell."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tsadbench.leaderboard.ranking import Row, Summary
from tsadbench.studies.reproduction.paper import Method, Table, published
from tsadbench.utils.markdown import number, table_lines

Verdict: TypeAlias = Literal["within 2 sd", "within .02", "off"]

# As near as .02 is near enough, whatever the spread over seeds.
NEAR = 0.02
# The paper prints four decimals.
_PRECISION = 5e-5
_TITLES = {
    "precision": "Precision",
    "recall": "Recall",
    "prac_f1": "Prac-F1",
    "mcc": "MCC",
    "auroc": "AUROC",
    "auprc": "AUPRC",
    "bf_f1": "BF-F1",
}


@dataclass(frozen=True, slots=True)
class Cell:
    """One metric of one row on one split.

    Parameters
    ----------
    metric
        Its name.
    ours
        Over our seeds; None where the row is missing or failed.
    paper
        None for a row that is ours alone.
    """

    metric: str
    ours: Summary | None
    paper: Summary | None

    @property
    def difference(self) -> float | None:
        """Ours less the paper's."""
        if self.ours is None or self.paper is None or self.ours.mean is None or self.paper.mean is None:
            return None
        return self.ours.mean - self.paper.mean

    @property
    def verdict(self) -> Verdict | None:
        """How far ours is from the paper's: within two pooled standard deviations, within .02, or off."""
        if self.difference is None or self.ours is None or self.paper is None:
            return None
        if abs(self.difference) <= 2 * pooled(self.ours, self.paper) + _PRECISION:
            return "within 2 sd"
        return "within .02" if abs(self.difference) <= NEAR + _PRECISION else "off"


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """One of our rows beside the paper's, on one split.

    Parameters
    ----------
    method, split
        Which.
    row
        Ours; None where it was not run.
    cells
        One a metric, in the table's order.
    """

    method: Method
    split: str
    row: Row | None
    cells: tuple[Cell, ...]

    @property
    def off(self) -> tuple[Cell, ...]:
        """The cells that are off."""
        return tuple(cell for cell in self.cells if cell.verdict == "off")


def pooled(one: Summary, other: Summary) -> float:
    """Return the pooled standard deviation; one that is unknown (a single run) counts as 0."""
    deviations = [summary.std or 0.0 for summary in (one, other)]
    return math.sqrt(sum(deviation**2 for deviation in deviations) / 2)


def compare(table: Table, rows: Mapping[tuple[str, str], Row]) -> list[ComparedRow]:
    """Return the table's rows, split by split.

    Parameters
    ----------
    table
        The paper's.
    rows
        Ours, by label and split.
    """
    return [
        _compared(table, method, split, rows.get((method.label, split)))
        for split in table.splits()
        for method in table.methods
    ]


def _compared(table: Table, method: Method, split: str, row: Row | None) -> ComparedRow:
    ok = row is not None and row.ok
    cells = tuple(
        Cell(
            metric,
            row.metrics.get(metric) if ok and row is not None else None,
            published(table.key).get((method.name, split, metric)),
        )
        for metric in table.metrics()
    )
    return ComparedRow(method, split, row, cells)


def to_csv(compared: Sequence[ComparedRow]) -> str:
    """Return one line a cell, full precision, empty where there is no value."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    columns = ["method", "detector", "split", "metric", "ours_mean", "ours_std", "seeds", "paper_mean", "paper_std"]
    writer.writerow([*columns, "difference", "verdict"])
    for one in compared:
        for cell in one.cells:
            ours, paper = cell.ours or Summary(None, None), cell.paper or Summary(None, None)
            seeds = len(one.row.seeds) if one.row is not None else 0
            values = [ours.mean, ours.std, seeds, paper.mean, paper.std, cell.difference, cell.verdict]
            writer.writerow(
                [one.method.name, one.method.label, one.split, cell.metric]
                + ["" if value is None else value for value in values]
            )
    return text.getvalue()


def to_markdown(table: Table, compared: Sequence[ComparedRow]) -> str:
    """Return the table as Markdown: ours, the paper's in brackets, the difference, and a mark for the verdict."""
    header = ["split", "method", "ours", *(_TITLES.get(metric, metric) for metric in table.metrics())]
    rows = [
        [one.split, one.method.name or "-", f"`{one.method.label}`", *(_cell(cell) for cell in one.cells)]
        for one in compared
    ]
    return "\n".join(table_lines(header, rows)) + "\n"


def _cell(cell: Cell) -> str:
    if cell.ours is None:
        return "not run"
    ours = cell.ours.text()
    if cell.paper is None or cell.difference is None:
        return ours
    mark = {"within 2 sd": "=", "within .02": "≈", "off": "✗"}[cell.verdict or "off"]
    return f"{ours} [{cell.paper.text()}] {number(cell.difference, 4, signed=True)} {mark}"
