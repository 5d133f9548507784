"""A ranking over several data sets as a figure: mean ranks, and which row is better than which."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.colors import LinearSegmentedColormap

from tsadbench.analysis.significance.inference import LEAST_FOR_TESTS
from tsadbench.analysis.significance.ranking import Ranking
from tsadbench.reporting.figures.style import BLACK, BLUE, GREY, VERMILLION, page, plain, style
from tsadbench.utils.arrays import BoolArray, FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LINE = 0.19
_WIN_RATES = LinearSegmentedColormap.from_list("win rates", [VERMILLION, "white", BLUE])
_FIRM = 5.0


def draw(ranking: Ranking, file: Path) -> None:
    """Write a ranking over several data sets as a figure: `draw_ranks` beside `draw_wins`, a line a row.

    A critical-difference diagram would join nearly all rows: over few data sets many mean ranks are within Nemenyi's
    critical difference. Win rates compare two rows whatever the others do. A UsageError if the file cannot be written.
    """
    side = _LINE * len(ranking.frame)
    with style(), page(file, side + 4.6, side + 1.9, salt=ranking.title) as figure:
        left, right = figure.subplots(1, 2, sharey=True, width_ratios=[2.4, max(side, 1.0)])
        draw_ranks(left, ranking)
        draw_wins(right, ranking)
        figure.suptitle(ranking.title, fontsize=9, parse_math=False)


def draw_ranks(axes: Axes, ranking: Ranking) -> None:
    """Draw each row's mean rank with its 90 % interval, the best on top; floors are grey."""
    shown = ranking.frame[ranking.frame["rank"].notna()]
    colours = list(np.where(shown["floor"], GREY, BLUE))
    axes.hlines(shown.index, shown["rank_low"], shown["rank_high"], colors=colours, linewidth=1.2)
    axes.scatter(shown["rank"], shown.index, s=16, c=colours, zorder=3)
    floors = np.where(ranking.frame["floor"], " (floor)", "")
    labels = [plain(label, 40) for label in ranking.frame["detector"] + floors]
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.tick_params(left=False)
    axes.set_xlabel("mean rank, 90 % interval")
    axes.grid(axis="x")


def draw_wins(axes: Axes, ranking: Ranking) -> None:
    """Draw in which share of the data sets each row is better than each other one; a dot where that is firm.

    Firm is a share over six data sets or more (`LEAST_FOR_TESTS`: fewer may agree by chance) whose 90 % interval
    does not hold one half.
    """
    rates, firm = win_rates(ranking)
    shown = axes.imshow(rates, cmap=_WIN_RATES, vmin=0.0, vmax=1.0, aspect="auto", interpolation="none")
    axes.set_facecolor("0.85")  # what is not compared
    rows, columns = np.nonzero(firm)
    axes.scatter(columns, rows, s=_FIRM, color=BLACK, linewidths=0.0)
    labels = [plain(label, 24) for label in ranking.frame["detector"]]
    axes.set_xticks(range(len(labels)), labels, rotation=90)
    axes.tick_params(left=False, bottom=False)
    axes.set_title("share of the data sets on which the row is better than the column", fontsize=8)
    bar = axes.figure.colorbar(shown, ax=axes, shrink=0.6, pad=0.02)
    bar.set_label(f"dot: {LEAST_FOR_TESTS} data sets or more, and the 90 % interval does not hold one half")


def win_rates(ranking: Ranking) -> tuple[FloatArray, BoolArray]:
    """Return win rates of rows over columns, [n_rows, n_rows], NaN if not compared; and whether each is firm."""
    place = {label: i for i, label in enumerate(ranking.frame["detector"])}
    pairs = ranking.win_rates
    i, j = pairs["first"].map(place).to_numpy(), pairs["second"].map(place).to_numpy()
    rates = np.full((len(place), len(place)), np.nan)
    rates[i, j], rates[j, i] = pairs["rate"], 1.0 - pairs["rate"]
    firm = np.zeros(rates.shape, dtype=np.bool_)
    open_ = (pairs["rate_low"] <= 0.5) & (pairs["rate_high"] >= 0.5)
    firm[i, j] = firm[j, i] = (pairs["datasets"] >= LEAST_FOR_TESTS) & ~open_
    return rates, firm
