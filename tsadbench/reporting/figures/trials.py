"""Draws a table's trials: a metric seed by seed and against cost. Also has helpers for all figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from tsadbench.errors import UsageError
from tsadbench.leaderboard import table
from tsadbench.leaderboard.board import Leaderboard
from tsadbench.leaderboard.frame import FLOOR_METRICS, METRIC
from tsadbench.reporting.figures.style import BLUE, GREY, GRID, INK, VERMILLION, blank, own_axes, own_figure, plain
from tsadbench.results.trial_result import TrialResult
from tsadbench.utils.arrays import FloatArray
from tsadbench.utils.grouping import grouped
from tsadbench.utils.parameters import require_known

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

_TITLES = {
    "prac_f1": "F1", "bf_f1": "best F1 (uses labels)", "precision": "precision", "recall": "recall",
    "flagged": "flagged rows", "far": "flagged normal rows", "mar": "missed rows", "fit_seconds": "seconds of a fit",
    "rows_per_second": "rows scored per second",
}  # fmt: skip
# The first columns of a frame of trials; all others are metrics.
_ABOUT = ("detector", "floor", "seed", "sound", "fit_seconds", "rows_per_second")
# Figures name every row up to this number.
_FEW = 12


def by_label(results: Sequence[TrialResult]) -> dict[str, tuple[TrialResult, ...]]:
    """Group results by detector, in the order of first results."""
    if not results:
        raise UsageError("expected at least one result, found none: there is nothing to draw")
    return grouped(results, lambda result: result.record.label)


def spans_orders(scores: FloatArray, threshold: float) -> bool:
    """Return whether scores [n] and their threshold need a logarithmic axis, which drops values up to 0."""
    positive = scores[scores > 0]
    if threshold <= 0 or len(positive) < 2 or len(positive) < 0.9 * len(scores):
        return False
    low, high = np.quantile(positive, [0.05, 0.999])
    return bool(max(high, threshold) > 20 * min(low, threshold))


def trial_frame(board: Leaderboard) -> pd.DataFrame:
    """Return the trials of one table with status "ok", in the order of its rows.

    Columns: detector, floor, seed, sound (whether its row may be ranked), fit_seconds, rows_per_second, and the metrics
    by name; ``attrs["lower"]`` names those of which lower values are better. Raises a UsageError if there are none.
    """
    place = {label: i for i, label in enumerate(board.frame["detector"])}
    trials = board.trials[(board.trials["status"] == "ok") & board.trials["detector"].isin(place)]
    if trials.empty:
        raise UsageError("expected at least one row whose trials are ok, found none: there is nothing to draw")
    trials = trials.assign(sound=trials["detector"].map(board.frame.set_index("detector")["sound"]))
    trials = trials.sort_values("detector", key=lambda labels: labels.map(place), kind="stable")
    metrics = [name for name in map(str, trials) if name.startswith(METRIC)]
    trials.attrs["lower"] = [one.name for one in table.metrics_of(board.frame) if one.better == "lower"]
    return trials[[*_ABOUT, *metrics]].rename(columns=lambda name: str(name).removeprefix(METRIC))


def metrics_of(trials: pd.DataFrame, names: Sequence[str] = ()) -> list[str]:
    """Return some metrics of a frame of trials, all by default. Raises a UsageError if one is missing."""
    known = [str(name) for name in trials.columns[len(_ABOUT) :]]
    require_known(names, known, "these trials have no metric")
    return list(names) or known


def draw_trials(
    kind: Literal["seeds", "speed"], trials: pd.DataFrame, metrics: Sequence[str] = (), figure: FigureBase | None = None
) -> list[Axes]:
    """Draw `seeds` of several metrics side by side, or `speed` with a row for each metric and a column for each cost.

    The default metrics are those compared with the floors; for ``speed``, AUPRC.
    """
    usual = [name for name in ("auprc", *FLOOR_METRICS) if name in trials] or metrics_of(trials)
    shown = metrics_of(trials, metrics or (sorted(set(usual)) if kind == "seeds" else usual[:1]))
    if kind == "seeds":
        figure = own_figure(figure, 1.7 + 2.1 * len(shown), 1.0 + 0.2 * trials["detector"].nunique())
        every: list[Axes] = figure.subplots(1, len(shown), sharey=True, squeeze=False)[0].tolist()
        return [seeds(trials, ax, name) for ax, name in zip(every, shown, strict=True)]
    figure = own_figure(figure, 8.4, 0.8 + 3.4 * len(shown))
    every = figure.subplots(len(shown), 2, squeeze=False, sharey="row").ravel().tolist()
    panels = [(name, cost) for name in shown for cost in ("fit_seconds", "rows_per_second")]
    return [speed(trials, ax, name, cost) for ax, (name, cost) in zip(every, panels, strict=True)]


def seeds(trials: pd.DataFrame, ax: Axes | None = None, metric: str = "auprc") -> Axes:
    """Draw one metric seed by seed, one line per detector, in the order of the frame (`trial_frame`).

    Dots are seeds, bars their means; floors are grey, and the best floor is a dashed line.
    """
    metrics_of(trials, [metric])
    of_each = list(trials.groupby("detector", sort=False))
    ax = own_axes(ax, 4.6, 0.8 + 0.2 * len(of_each))
    if trials[metric].isna().all():
        blank(ax, "undefined: the split has\nrows of one class")
        return ax
    for place, (_, rows) in enumerate(of_each):
        colour = GREY if rows["floor"].all() else BLUE
        ax.plot(rows[metric], [place] * len(rows), "o", color=colour, markersize=4, markeredgewidth=0, alpha=0.65)
        ax.plot([rows[metric].mean()], [place], "|", color=INK, markersize=9, markeredgewidth=1.3, zorder=4)
    floors = trials[trials["floor"] & trials["sound"]]
    if len(floors):
        means = floors.groupby("detector")[metric].mean()
        best = means.min() if metric in trials.attrs["lower"] else means.max()
        ax.axvline(best, color=VERMILLION, linestyle="--", linewidth=0.9, zorder=1, label="best floor")
    ax.set_yticks(range(len(of_each)), [plain(str(label)) for label, _ in of_each])
    ax.set_ylim(len(of_each) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.set_title(_TITLES.get(metric, metric.upper()))
    ax.grid(visible=True)
    return ax


def front(points: pd.DataFrame, cost: str) -> pd.DataFrame:
    """Return the Pareto front of ``quality`` and cost, cheapest first; more rows per second cost less."""
    order = points.assign(cost=points[cost] * (-1 if cost == "rows_per_second" else 1))
    order = order.sort_values(["cost", "quality"], ascending=[True, False])
    return order[order["quality"] > order["quality"].cummax().shift(fill_value=-np.inf)]


def speed(trials: pd.DataFrame, ax: Axes | None = None, metric: str = "auprc", cost: str = "fit_seconds") -> Axes:
    """Draw a metric against its cost on a logarithmic axis: one point per detector, the mean over its seeds.

    A line joins the Pareto front including floors (grey squares); a dotted line joins the front without floors.
    Unranked rows are hollow and on neither line. Up to twelve rows are all named; of more, only those on a line. The
    cost is "fit_seconds" or "rows_per_second".
    """
    metrics_of(trials, [metric])
    ax = own_axes(ax)
    groups = trials.groupby("detector", sort=False)
    points = groups[[metric, cost]].mean().join(groups[["floor", "sound"]].all())
    points["std"] = groups[metric].std().fillna(0.0)
    points["quality"] = points[metric] * (-1 if metric in trials.attrs["lower"] else 1)
    points = points.dropna(subset=[metric, cost]).query(f"{cost} > 0")
    if points.empty:
        blank(ax, "undefined, or not measured")
        return ax
    sound = points[points["sound"]]
    every, detectors = front(sound, cost), front(sound[~sound["floor"]], cost)
    where: Literal["post", "pre"] = "post" if cost == "fit_seconds" else "pre"
    for name, corners, colour, dashes in (
        ("front", every, VERMILLION, "-"),
        ("front of the detectors", detectors, BLUE, ":"),
    ):
        shown = corners.sort_values(cost)
        ax.step(shown[cost], shown[metric], where=where, color=colour, ls=dashes, lw=0.9, label=name, zorder=2)
    for label, row in points.iterrows():
        colour = GREY if row["floor"] else BLUE
        look: dict[str, Any] = {"fmt": "s" if row["floor"] else "o", "color": colour, "markersize": 4, "zorder": 3}
        look |= {"markerfacecolor": colour if row["sound"] else "none", "ecolor": GRID, "elinewidth": 0.8}
        at, name = (row[cost], row[metric]), plain(str(label))
        ax.errorbar(*at, yerr=row["std"], label=name, **look)
        if len(points) <= _FEW or label in every.index or label in detectors.index:
            ax.annotate(name, at, (4, 3), textcoords="offset points", fontsize=6)
    ax.set_xscale("log")
    ax.margins(x=0.15, y=0.1)
    ax.set_xlabel(_TITLES[cost])
    ax.set_ylabel(_TITLES.get(metric, metric.upper()))
    ax.grid(visible=True)
    return ax
