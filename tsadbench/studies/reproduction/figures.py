"""One figure per table: our values and the paper's, with their spreads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tsadbench.leaderboard.ranking import Summary
from tsadbench.studies.reproduction.comparison import ComparedRow
from tsadbench.studies.reproduction.paper import Table
from tsadbench.utils.extras import extra

with extra("figures", "report"):
    import matplotlib as mpl
    from matplotlib.axes import Axes

    from tsadbench.reporting.figures.style import page

# Colour-blind readers can distinguish blue and orange; the markers differ as well.
_OURS, _PAPER = "#0072b2", "#d55e00"
_SHOWN = ("auroc", "auprc", "prac_f1")
_TITLES = {"auroc": "AUROC", "auprc": "AUPRC", "prac_f1": "Prac-F1"}


def draw(table: Table, compared: Sequence[ComparedRow], file: Path) -> None:
    """Draw a figure of a table: AUROC, AUPRC and Prac-F1 of every row, ours beside the paper's.

    Parameters
    ----------
    table, compared
        The paper's table, and its rows beside ours.
    file
        An SVG.
    """
    splits = table.splits()
    height = 1.2 + 0.32 * len(table.methods) * len(splits)
    with mpl.rc_context({"font.size": 9}), page(file, 10, height, salt=table.key) as figure:
        grid = figure.subplots(len(splits), len(_SHOWN), squeeze=False, sharey=True)
        for axes_of_split, split in zip(grid, splits, strict=True):
            rows = [row for row in compared if row.split == split]
            for axes, metric in zip(axes_of_split, _SHOWN, strict=True):
                _draw_metric(axes, rows, metric)
                axes.set_title(f"{split}: {_TITLES[metric]}", fontsize=9)
        handles, names = grid[0][0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=2, frameon=False)


def _draw_metric(axes: Axes, rows: Sequence[ComparedRow], metric: str) -> None:
    for height, row in enumerate(rows):
        cell = next(cell for cell in row.cells if cell.metric == metric)
        for summary, shift, colour, marker, name in (
            (cell.ours, -0.13, _OURS, "o", "ours, mean and standard deviation over seeds"),
            (cell.paper, 0.13, _PAPER, "D", "the paper's"),
        ):
            _draw_point(axes, summary, height + shift, colour, marker, name if height == 0 else "")
    axes.set_yticks(range(len(rows)), [row.method.label for row in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.grid(axis="x", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def _draw_point(axes: Axes, summary: Summary | None, height: float, colour: str, marker: str, name: str) -> None:
    if summary is None or summary.mean is None:
        return
    axes.errorbar(
        summary.mean, height, xerr=summary.std or 0.0, fmt=marker, color=colour, markersize=4, capsize=2, label=name
    )
