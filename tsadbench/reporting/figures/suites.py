"""A ranking over several data sets as a figure: mean ranks, and which row is better than which."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from matplotlib.colors import LinearSegmentedColormap

from tsadbench.analysis.significance.inference import LEAST_FOR_TESTS
from tsadbench.reporting.figures.style import BLUE, GREY, GRID, INK, PAPER, VERMILLION, own_axes, page, plain, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tsadbench.analysis.significance.ranking import Ranking

_LINE = 0.19
_WIN_RATES = LinearSegmentedColormap.from_list("win rates", [VERMILLION, "white", BLUE])


def draw(ranking: Ranking, file: Path) -> None:
    """Write a ranking over several data sets as a figure: `mean_ranks` beside `win_rates`, a line a row.

    A critical-difference diagram would join nearly all rows: over few data sets many mean ranks are within Nemenyi's
    critical difference. Win rates compare two rows whatever the others do. A UsageError if the file cannot be written.
    """
    frame, pairs = ranking.frame, ranking.win_rates
    labels = frame["detector"]
    rates = pairs.pivot(index="first", columns="second", values="rate").reindex(index=labels, columns=labels)
    decided = (pairs["datasets"] >= LEAST_FOR_TESTS) & ~((pairs["rate_low"] <= 0.5) & (pairs["rate_high"] >= 0.5))
    firm = pairs.assign(firm=decided).pivot(index="first", columns="second", values="firm")
    firm = firm.reindex(index=labels, columns=labels).fillna(False).astype(bool)
    rates, firm = rates.fillna(1.0 - rates.T), firm | firm.T
    side = _LINE * len(frame)
    with style(), page(file, side + 4.6, side + 1.9, salt=ranking.title) as figure:
        left, right = figure.subplots(1, 2, sharey=True, width_ratios=[2.4, max(side, 1.0)])
        mean_ranks(frame, left)
        win_rates(rates, firm, right)
        figure.suptitle(ranking.title, fontsize=9, parse_math=False)


def mean_ranks(frame: pd.DataFrame, ax: Axes | None = None, links: Mapping[str, str] | None = None) -> Axes:
    """Draw each row's mean rank with its 90 % interval, in the order of the frame; floors are grey squares.

    A band behind them spans the mean ranks of the floors but for the two that know nothing, ``random`` and
    ``all-positive``. Rows that lack data sets are hollow.

    Parameters
    ----------
    frame
        A row each: detector, floor, complete, rank, rank_low, rank_high, as in ``rank.csv``.
    ax
        Where to draw; by default in a new figure.
    links
        Where a name leads to in an SVG, by detector.
    """
    ax = own_axes(ax, 4.8, 1.0 + _LINE * len(frame))
    floor = frame["floor"].astype(bool)
    named = frame[floor & ~frame["detector"].isin(["random", "all-positive"])]["rank"].dropna()
    if len(named):
        ax.axvspan(named.min(), named.max(), color=GREY, alpha=0.13, linewidth=0, zorder=0, gid="floors")
    places = np.arange(len(frame))
    for rows, colour, marker in ((~floor, BLUE, "o"), (floor, GREY, "s")):
        at, shown = places[rows], frame[rows]
        ax.hlines(at, shown["rank_low"], shown["rank_high"], colors=colour, linewidth=1.2)
        faces = [colour if complete else PAPER for complete in shown["complete"].astype(bool)]
        ax.scatter(shown["rank"], at, s=18, c=faces, edgecolors=colour, marker=marker, zorder=3)
    ax.set_yticks(places, [plain(label, 40) for label in frame["detector"]])
    for text, label, is_floor in zip(ax.get_yticklabels(), frame["detector"], floor, strict=True):
        text.set_color(GREY if is_floor else INK)
        if links and label in links:
            text.set_url(links[label])
    ax.set_ylim(len(frame) - 0.5, -0.5)
    ax.tick_params(left=False)
    ax.spines["left"].set_visible(False)
    ax.set_xlabel("mean rank, 90 % interval")
    ax.grid(axis="x")
    return ax


def win_rates(rates: pd.DataFrame, firm: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw in which share of the data sets each row is better than each other one; a dot where that is firm.

    Parameters
    ----------
    rates
        [n_rows, n_rows], of rows over columns; NaN if not compared.
    firm
        [n_rows, n_rows], whether six data sets or more were compared and the 90 % interval does not hold one half.
    ax
        Where to draw; by default in a new figure.
    """
    ax = own_axes(ax, 6.0, 6.0)
    shown = ax.imshow(rates.to_numpy(), cmap=_WIN_RATES, vmin=0.0, vmax=1.0, aspect="auto", interpolation="none")
    ax.set_facecolor(GRID)  # what is not compared
    rows, columns = np.nonzero(firm.to_numpy())
    ax.scatter(columns, rows, s=5.0, color=INK, linewidths=0.0)
    ax.set_xticks(range(len(rates)), [plain(str(label), 24) for label in rates.columns], rotation=90)
    ax.tick_params(left=False, bottom=False)
    ax.set_title("share of the data sets on which the row is better than the column", fontsize=8)
    bar = ax.figure.colorbar(shown, ax=ax, shrink=0.6, pad=0.02)
    bar.set_label(f"dot: {LEAST_FOR_TESTS} data sets or more, and the 90 % interval does not hold one half")
    return ax
