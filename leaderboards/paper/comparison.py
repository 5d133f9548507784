"""Our rows next to the paper's: difference and verdict for every cell."""

from __future__ import annotations

import math

import pandas as pd
from paper import PRINTED, Table, mean_std

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


def beside_paper(table: Table, ours: pd.DataFrame) -> pd.DataFrame:
    """Return a table's cells next to ours, a line each, split by split; ``ours`` is a `Leaderboard.frame`.

    The columns are those of the CSV file: method, detector, split, metric, ours_mean, ours_std, seeds (0 if we have no
    row), paper_mean, paper_std, difference (ours less the paper's) and verdict (a key of `MARKS`).
    """
    printed = PRINTED[PRINTED["table"] == table.key].drop(columns="table")
    if lost := {*printed["method"]} - {method for method, _ in table.methods}:
        raise ValueError(f"paper_tables.toml: table {table.key} lacks {sorted(lost)}")
    printed = printed.rename(columns={"mean": "paper_mean", "std": "paper_std"})
    splits, metrics = printed["split"].unique(), printed["metric"].unique()
    cells = pd.DataFrame(
        [(*names, split, metric) for split in splits for names in table.methods for metric in metrics],
        columns=["method", "detector", "split", "metric"],
    )
    rows = ours[ours["ok"]].assign(seeds=lambda ok: ok["seeds"].map(len))
    values = pd.concat(
        rows[["detector", "split", f"{metric}_mean", f"{metric}_std", "seeds"]]
        .set_axis(["detector", "split", "ours_mean", "ours_std", "seeds"], axis="columns")
        .assign(metric=metric)
        for metric in metrics
    )
    cells = cells.merge(values, "left").merge(printed, "left")
    cells["seeds"] = cells["seeds"].fillna(0).astype(int)
    cells["difference"] = cells["ours_mean"] - cells["paper_mean"]
    cells["verdict"] = [verdict(*one) for one in cells[["difference", "ours_std", "paper_std"]].to_numpy()]
    return cells


def verdict(difference: float, ours_std: float, paper_std: float) -> str | None:
    """Return a cell's verdict, a key of `MARKS`, or None without a difference; an unknown deviation counts as 0."""
    if math.isnan(difference):
        return None
    ours_std, paper_std = (0.0 if math.isnan(std) else std for std in (ours_std, paper_std))
    apart, pooled = abs(difference) - _PRECISION, math.sqrt((ours_std**2 + paper_std**2) / 2)
    if apart > 2 * pooled:
        return "within .02" if apart <= NEAR else "off"
    return "within 2 sd" if apart <= FAR else "not told apart"


def off(cells: pd.DataFrame) -> list[str]:
    """Return the labels of our rows with a cell that is off."""
    return cells.loc[cells["verdict"] == "off", "detector"].unique().tolist()


def to_markdown(cells: pd.DataFrame) -> str:
    """Return the table as Markdown: ours, the paper's in brackets, and a mark for the verdict."""
    header = ["split", "method", "ours", *(_TITLES[metric] for metric in cells["metric"].unique())]
    rows = (
        [split, method or "-", f"`{label}`", *map(_cell, row.itertuples())]
        for (split, method, label), row in cells.groupby(["split", "method", "detector"], sort=False)
    )
    return "\n".join(table_lines(header, rows)) + "\n"


def _cell(cell: tuple) -> str:
    if not cell.seeds:
        return "not run"
    ours = mean_std(cell.ours_mean, cell.ours_std)
    if pd.isna(cell.verdict):
        return ours
    return f"{ours} [{mean_std(cell.paper_mean, cell.paper_std)}] {MARKS[cell.verdict]}"
