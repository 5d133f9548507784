"""One figure per table: our values and the paper's, with their spreads."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from paper import Table

_SHOWN = {"auroc": "AUROC", "auprc": "AUPRC", "prac_f1": "Prac-F1"}
# Colour-blind readers can distinguish blue and orange; the markers differ as well.
_SERIES = (
    ("ours", -0.13, "#0072b2", "o", "ours, mean and standard deviation over seeds"),
    ("paper", 0.13, "#d55e00", "D", "the paper's"),
)


def draw(table: Table, cells: pd.DataFrame, file: Path) -> None:
    """Draw AUROC, AUPRC and Prac-F1 of every row of a table, ours and the paper's, as SVG."""
    splits = cells["split"].unique()
    with mpl.rc_context({"font.size": 9, "svg.fonttype": "none", "svg.hashsalt": table.key}):
        figure = Figure(figsize=(10, 1.2 + 0.32 * len(table.methods) * len(splits)), layout="constrained")
        grid = figure.subplots(len(splits), len(_SHOWN), squeeze=False, sharey=True)
        for axes_of_split, split in zip(grid, splits, strict=True):
            for axes, (metric, title) in zip(axes_of_split, _SHOWN.items(), strict=True):
                _draw_metric(axes, cells[(cells["split"] == split) & (cells["metric"] == metric)])
                axes.set_title(f"{split}: {title}", fontsize=9)
        handles, names = grid[0][0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=2, frameon=False)
        file.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(file, metadata={"Date": None})


def _draw_metric(axes: Axes, cells: pd.DataFrame) -> None:
    for height, cell in enumerate(cells.to_dict("records")):
        for whose, shift, colour, marker, name in _SERIES:
            mean, std = cell[f"{whose}_mean"], cell[f"{whose}_std"]
            if pd.notna(mean):
                axes.errorbar(
                    mean, height + shift, xerr=0.0 if pd.isna(std) else std, fmt=marker, color=colour, markersize=4,
                    capsize=2, label=name if height == 0 else "",
                )  # fmt: skip
    axes.set_yticks(range(len(cells)), cells["detector"].tolist())
    axes.set_ylim(len(cells) - 0.4, -0.6)
    axes.grid(axis="x", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
