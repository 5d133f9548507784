"""Draws which detectors differ: pairwise differences, critical differences, values by session, mean ranks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tsadbench.analysis.significance.inference import ALPHA, LEAST_FOR_DIAGRAM
from tsadbench.reporting.figures.style import (
    BLUE,
    GREY,
    GRID,
    INK,
    ORANGE,
    PAPER,
    VERMILLION,
    looks,
    own_axes,
    page,
    plain,
    style,
)
from tsadbench.utils.extras import extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tsadbench.analysis.significance import Result
    from tsadbench.analysis.significance.compare import Comparison

_LINE = 0.19  # inches


def draw(comparison: Comparison, file: Path) -> None:
    """Write the figure of a comparison (`comparison_figure`). Raises a UsageError if the file cannot be written."""
    units = comparison.units
    n_lines = len(units) if units.shape[1] == 2 else units.shape[1]
    with style(), page(file, 8, 1.6 + 0.2 * n_lines, salt=comparison.subject) as figure:
        ax = comparison_figure(comparison, figure.subplots())
        if ax.get_legend_handles_labels()[0]:
            figure.legend(loc="outside lower center", ncols=5)


def draw_ranking(ranking: Result, file: Path) -> None:
    """Write a ranking over several data sets as a figure: `mean_ranks`. A UsageError if the file cannot be written."""
    title, frame = ranking.frames[0].title, ranking.to_frame().dropna(subset="rank")
    with style(), page(file, 4.8, _LINE * len(frame) + 1.2, salt=title) as figure:
        mean_ranks(frame, figure.subplots())
        figure.suptitle(title, fontsize=9, parse_math=False)


def comparison_figure(comparison: Comparison, ax: Axes) -> Axes:
    """Draw a comparison: the differences of two detectors, or the mean ranks of several.

    With few sessions, each session is drawn instead of mean ranks. Mean ranks raise a MissingExtraError without
    scikit-posthocs.
    """
    units, pairs = comparison.units, comparison.pairs
    lower = comparison.metric.better == "lower"
    ax.set_title(comparison.subject, parse_math=False)
    ax.set_xlabel(comparison.metric.title, parse_math=False)
    if units.shape[1] == 2:
        return differences(units, ax, rope=comparison.rope, interval=tuple(pairs[["low", "high"]].iloc[0]))
    if len(units) < LEAST_FOR_DIAGRAM:
        return sessions(units, ax, lower=lower)
    values = pd.DataFrame(1.0, index=units.columns, columns=units.columns)
    for first, second, p in zip(pairs["first"], pairs["second"], pairs["p_holm"], strict=True):
        values.loc[first, second] = values.loc[second, first] = p
    critical_differences(units.rank(axis=1, ascending=lower).mean(), values, ax)
    ax.set_title(f"{comparison.subject}: mean rank over {len(units)} sessions", parse_math=False)
    return ax


def differences(
    units: pd.DataFrame,
    ax: Axes | None = None,
    *,
    rope: float = 0.0,
    interval: tuple[float, float] = (np.nan, np.nan),
) -> Axes:
    """Draw the difference of two detectors on each unit, smallest first, with the mean and its interval.

    ``units`` has a column per detector; differences up to ``rope`` are practically equal.
    """
    ax = own_axes(ax)
    first, second = units.columns
    found = (units[first] - units[second]).sort_values(kind="stable")
    colours = [GREY if abs(value) <= rope else BLUE if value > 0 else VERMILLION for value in found]
    places = np.arange(len(found))
    ax.axvspan(-rope, rope, color=GRID, zorder=0, label=f"practically equal: within {rope:g}")
    ax.axvline(0.0, color=INK, linewidth=0.8)
    ax.hlines(places, 0.0, found, color=colours, linewidth=1.0)
    ax.scatter(found, places, color=colours, s=16, zorder=3)
    ax.axvline(found.mean(), color=INK, linestyle="--", linewidth=1.0, label="mean")
    if not pd.isna(interval[0]):
        ax.axvspan(*interval, color=ORANGE, alpha=0.3, linewidth=0.0, zorder=0, label="95 % interval of the mean")
    ax.set_yticks(places, [plain(str(unit)) for unit in found.index])
    ax.set_xlabel(f"{ax.get_xlabel()}: {first} - {second}".removeprefix(": "), parse_math=False)
    ax.margins(y=0.02)
    return ax


def sessions(units: pd.DataFrame, ax: Axes | None = None, *, lower: bool = False) -> Axes:
    """Draw each detector's value in each session, and its mean; the best mean on top.

    Up to twelve sessions have a colour and a marker each; more sessions could not be distinguished and share one.
    ``units`` is [n_sessions, n_detectors]; ``lower`` says that lower values are better.
    """
    ax = own_axes(ax)
    order = units.mean().sort_values(ascending=not lower, kind="stable").index
    places = np.arange(len(order))
    few = len(units) <= 12
    for (unit, values), look in zip(units[order].iterrows(), looks([False] * len(units)), strict=True):
        name, colour, marker = (plain(str(unit)), look.colour, look.marker) if few else ("_session", BLUE, "o")
        ax.scatter(values, places, color=colour, marker=marker, s=20, label=name, alpha=1.0 if few else 0.6)
    ax.scatter(units[order].mean(), places, color=INK, marker="|", s=120, label="mean")
    ax.set_yticks(places, [plain(str(name)) for name in order])
    ax.grid(axis="x")
    ax.margins(y=0.1)
    return ax


def critical_differences(ranks: pd.Series[float], p_values: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw a critical-difference diagram: mean ranks, with bars over detectors that do not differ significantly.

    ``p_values``, [n_detectors, n_detectors], are corrected for all pairs. Raises a MissingExtraError if scikit-posthocs
    is not installed.
    """
    with extra("a critical-difference diagram", "stats"):
        from scikit_posthocs import critical_difference_diagram
    ax = own_axes(ax)
    look: dict[str, Any] = {"label_fmt_left": "{label} ({rank:.2f})", "label_fmt_right": "({rank:.2f}) {label}"}
    look |= {"label_props": {"parse_math": False}, "elbow_props": {"color": INK, "linewidth": 0.8}}
    # A bar may pass over a detector that it does not join: dots mark those that it joins.
    look |= {"marker_props": {"s": 16}, "crossbar_props": {"marker": "o", "markersize": 4}}
    critical_difference_diagram(ranks.to_dict(), p_values, alpha=ALPHA, ax=ax, **look)
    ax.set_xlabel(f"mean rank; joined where p after Holm is at least {ALPHA:g}")
    return ax


def mean_ranks(frame: pd.DataFrame, ax: Axes | None = None, links: Mapping[str, str] | None = None) -> Axes:
    """Draw each row's mean rank with its 90 % interval, in the order of the frame; floors are grey squares.

    A band spans the mean ranks of the floors, except ``random`` and ``all-positive``. The frame has the columns of
    ``rank.csv``; ``links`` maps names to their link targets in an SVG.
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
        ax.scatter(shown["rank"], at, s=18, color=colour, edgecolors=PAPER, linewidths=0.4, marker=marker, zorder=3)
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
