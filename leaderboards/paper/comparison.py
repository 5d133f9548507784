"""Our rows against the paper's: difference and verdict for every cell."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from paper import Method, Summary, Table, published, summary_of

from tsadbench.api import table_lines

# A difference up to .02 is near enough, whatever the spread over seeds; above .05 a wide spread proves no agreement.
NEAR, FAR = 0.02, 0.05
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
MARKS = {"within 2 sd": "=", "within .02": "≈", "not told apart": "?", "off": "✗"}


class Cell(NamedTuple):
    """One metric of one row on one split: ours, None if the row is missing or failed, and the paper's, if it has it."""

    metric: str
    ours: Summary | None
    paper: Summary | None

    @property
    def difference(self) -> float | None:
        """Our mean minus the paper's."""
        if self.ours is None or self.paper is None or self.ours.mean is None or self.paper.mean is None:
            return None
        return self.ours.mean - self.paper.mean

    @property
    def verdict(self) -> str | None:
        """How far ours is from the paper's: a key of `MARKS`."""
        if self.difference is None or self.ours is None or self.paper is None:
            return None
        apart = abs(self.difference) - _PRECISION
        if apart > 2 * pooled(self.ours, self.paper):
            return "within .02" if apart <= NEAR else "off"
        return "within 2 sd" if apart <= FAR else "not told apart"


class ComparedRow(NamedTuple):
    """One of our rows and the paper's, on one split."""

    method: Method
    split: str
    ours: Any
    cells: tuple[Cell, ...]

    @property
    def off(self) -> tuple[Cell, ...]:
        """The cells that are off."""
        return tuple(cell for cell in self.cells if cell.verdict == "off")


def pooled(ours: Summary, paper: Summary) -> float:
    """Return the pooled standard deviation; one that is unknown (a single run) counts as 0."""
    return math.sqrt(((ours.std or 0.0) ** 2 + (paper.std or 0.0) ** 2) / 2)


def beside_paper(table: Table, rows: Mapping[tuple[str, str], Any]) -> list[ComparedRow]:
    """Return the table's rows paired with ours, split by split; ``rows`` are ours, by label and split."""
    paper, compared = published(table.key), []
    for split in table.splits():
        for method in table.methods:
            row = rows.get((method.label, split))
            ours = {one: summary_of(row, one) for one in table.metrics() if row is not None and row.ok}
            cells = (Cell(one, ours.get(one), paper.get((method.name, split, one))) for one in table.metrics())
            compared.append(ComparedRow(method, split, row, tuple(cells)))
    return compared


def to_csv(compared: Sequence[ComparedRow]) -> str:
    """Return one line per cell, full precision, empty if there is no value."""
    text, unknown = io.StringIO(), Summary(None, None)
    writer = csv.writer(text, lineterminator="\n")
    columns = ["method", "detector", "split", "metric", "ours_mean", "ours_std", "seeds", "paper_mean", "paper_std"]
    writer.writerow([*columns, "difference", "verdict"])
    for row in compared:
        n_seeds = len(row.ours.seeds) if row.ours is not None else 0
        for cell in row.cells:
            ours, paper = cell.ours or unknown, cell.paper or unknown
            values = [ours.mean, ours.std, n_seeds, paper.mean, paper.std, cell.difference, cell.verdict]
            writer.writerow([row.method.name, row.method.label, row.split, cell.metric, *values])
    return text.getvalue()


def to_markdown(table: Table, compared: Sequence[ComparedRow]) -> str:
    """Return the table as Markdown: ours, the paper's in brackets, and a mark for the verdict."""
    header = ["split", "method", "ours", *(_TITLES.get(metric, metric) for metric in table.metrics())]
    rows = (
        [row.split, row.method.name or "-", f"`{row.method.label}`", *(_cell(cell) for cell in row.cells)]
        for row in compared
    )
    return "\n".join(table_lines(header, rows)) + "\n"


def _cell(cell: Cell) -> str:
    if cell.ours is None:
        return "not run"
    if cell.paper is None or cell.difference is None:
        return cell.ours.text()
    mark = MARKS[cell.verdict or "off"]
    return f"{cell.ours.text()} [{cell.paper.text()}] {mark}"
