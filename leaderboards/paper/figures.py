"""One figure per table: our values and the paper's, with their spreads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from comparison import ComparedRow
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from paper import Table

_SHOWN = {"auroc": "AUROC", "auprc": "AUPRC", "prac_f1": "Prac-F1"}
# Colour-blind readers can distinguish blue and orange; the markers differ as well.
_SERIES = (
    ("ours", -0.13, "#0072b2", "o", "ours, mean and standard deviation over seeds"),
    ("paper", 0.13, "#d55e00", "D", "the paper's"),
)


def draw(table: Table, compared: Sequence[ComparedRow], file: Path) -> None:
    """Draw AUROC, AUPRC and Prac-F1 of every row of a table, ours and the paper's, as SVG."""
    splits = table.splits()
    with mpl.rc_context({"font.size": 9, "svg.fonttype": "none", "svg.hashsalt": table.key}):
        figure = Figure(figsize=(10, 1.2 + 0.32 * len(table.methods) * len(splits)), layout="constrained")
        grid = figure.subplots(len(splits), len(_SHOWN), squeeze=False, sharey=True)
        for axes_of_split, split in zip(grid, splits, strict=True):
            rows = [row for row in compared if row.split == split]
            for axes, (metric, title) in zip(axes_of_split, _SHOWN.items(), strict=True):
                _draw_metric(axes, rows, metric)
                axes.set_title(f"{split}: {title}", fontsize=9)
        handles, names = grid[0][0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=2, frameon=False)
        file.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(file, metadata={"Date": None})


def _draw_metric(axes: Axes, rows: Sequence[ComparedRow], metric: str) -> None:
    for height, row in enumerate(rows):
        cell = next(cell for cell in row.cells if cell.metric == metric)
        for whose, shift, colour, marker, name in _SERIES:
            summary = getattr(cell, whose)
            if summary is not None and summary.mean is not None:
                axes.errorbar(
                    summary.mean, height + shift, xerr=summary.std or 0.0, fmt=marker, color=colour, markersize=4,
                    capsize=2, label=name if height == 0 else "",
                )  # fmt: skip
    axes.set_yticks(range(len(rows)), [row.method.label for row in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.grid(axis="x", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
