"""A comparison as a figure: two detectors' differences, several detectors' mean ranks, or each one's sessions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
import pandas as pd

from tsadbench.analysis.significance.compare import Comparison
from tsadbench.analysis.significance.inference import ALPHA, LEAST_FOR_DIAGRAM
from tsadbench.leaderboard.formatting import number
from tsadbench.reporting.figures.style import BLUE, ORANGE, VERMILLION, looks, page, plain
from tsadbench.utils.extras import extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FIRST, _SECOND, _TIE = BLUE, VERMILLION, "#7f7f7f"
_EQUAL, _INTERVAL = "#d9d9d9", ORANGE


def draw(comparison: Comparison, file: Path) -> None:
    """Write a comparison as a figure.

    `draw_differences` of two detectors; of several, `draw_ranks`, or `draw_sessions` if they are too few for ranks. A
    MissingExtraError if scikit-posthocs is not installed, for mean ranks. A UsageError if the file cannot be written.
    """
    units = comparison.inference.units
    two, few = len(comparison.inference.pairs) == 1, len(units) < LEAST_FOR_DIAGRAM
    n_lines = len(units) if two else len(units.columns)
    with (
        mpl.rc_context({"font.size": 9}),
        page(file, 8, 1.6 + 0.2 * n_lines, salt=comparison.tables[0].title) as figure,
    ):
        axes = figure.subplots()
        if two:
            draw_differences(axes, comparison)
            figure.legend(loc="outside lower center", ncols=3, fontsize=7, frameon=False)
        elif few:
            draw_sessions(axes, comparison)
            figure.legend(loc="outside lower center", ncols=5, fontsize=7, frameon=False)
        else:
            draw_ranks(axes, comparison)


def draw_differences(axes: Axes, comparison: Comparison) -> None:
    """Draw two detectors' difference on each unit, smallest first, with its mean and the interval of that."""
    pair = comparison.inference.pairs.iloc[0]
    units, rope = comparison.inference.units, comparison.rope
    differences = (units[pair.first] - units[pair.second]).to_numpy()
    order = np.argsort(differences, kind="stable")
    colours = [_TIE if abs(value) <= rope else _FIRST if value > 0 else _SECOND for value in differences[order]]
    places = np.arange(len(order))
    axes.axvspan(-rope, rope, color=_EQUAL, label=f"practically equal: within {number(rope, 2)}")
    axes.axvline(0.0, color="black", linewidth=0.8)
    axes.hlines(places, 0.0, differences[order], color=colours, linewidth=1.0)
    axes.scatter(differences[order], places, color=colours, s=16, zorder=3)
    axes.axvline(pair.mean_difference, color="black", linestyle="--", linewidth=1.0, label="mean")
    if comparison.inference.tested:
        axes.axvspan(pair.low, pair.high, color=_INTERVAL, alpha=0.3, linewidth=0.0, label="95 % interval of the mean")
    axes.set_yticks(places, [units.index[i] for i in order], fontsize=7, parse_math=False)
    axes.set_xlabel(f"{comparison.metric.title}: {pair.first} - {pair.second}", parse_math=False)
    axes.set_title(comparison.subject, fontsize=9, parse_math=False)
    axes.margins(y=0.02)
    axes.spines[["top", "right"]].set_visible(False)


def draw_sessions(axes: Axes, comparison: Comparison) -> None:
    """Draw each detector's value in each session, and its mean; the best mean on top."""
    units = comparison.inference.units
    means = units.to_numpy().mean(axis=0)
    order = np.argsort(means if comparison.metric.better != "lower" else -means, kind="stable")
    places = np.arange(len(order))
    for unit, values, look in zip(units.index, units.to_numpy()[:, order], looks([False] * len(units)), strict=True):
        axes.scatter(values, places, color=look.colour, marker=look.marker, s=20, label=plain(unit))
    axes.scatter(means[order], places, color="black", marker="|", s=120, label="mean")
    axes.set_yticks(places, [units.columns[i] for i in order], fontsize=7, parse_math=False)
    axes.set_xlabel(comparison.metric.title, parse_math=False)
    axes.set_title(f"{comparison.subject}: by session", fontsize=9, parse_math=False)
    axes.margins(y=0.1)
    axes.spines[["top", "right"]].set_visible(False)


def draw_ranks(axes: Axes, comparison: Comparison) -> None:
    """Draw a critical-difference diagram: mean ranks, with a bar over detectors that Holm's p-values do not tell apart.

    A MissingExtraError if scikit-posthocs is not installed.
    """
    n = len(comparison.inference.units)
    with extra("a critical-difference diagram", "stats"):
        from scikit_posthocs import critical_difference_diagram
    critical_difference_diagram(
        comparison.inference.mean_ranks.to_dict(),
        _p_values(comparison),
        alpha=ALPHA,
        ax=axes,
        label_fmt_left="{label} ({rank:.2f})",
        label_fmt_right="({rank:.2f}) {label}",
        label_props={"parse_math": False},
        elbow_props={"color": "black", "linewidth": 0.8},
        marker_props={"s": 16},
        # A bar may pass over a detector that it does not join: dots say which it does.
        crossbar_props={"marker": "o", "markersize": 4},
    )
    joined = f"joined where p after Holm is at least {number(ALPHA, 2)}"
    title = f"{comparison.subject}: mean rank over {n} sessions; {joined}"
    axes.set_title(title, fontsize=9, parse_math=False)


def _p_values(comparison: Comparison) -> pd.DataFrame:
    """Return Holm's p-values of each two detectors, [n_detectors, n_detectors]."""
    labels = list(comparison.inference.units.columns)
    values = pd.DataFrame(1.0, index=labels, columns=labels)
    for first, second, p in comparison.inference.pairs[["first", "second", "p_holm"]].to_numpy():
        values.loc[first, second] = values.loc[second, first] = p
    return values
