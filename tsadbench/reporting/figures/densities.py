"""Distributions of the scores of training, normal and anomalous rows, with the threshold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import PercentFormatter, StrMethodFormatter

from tsadbench.analysis.curves import fits_of, score_groups
from tsadbench.errors import UsageError
from tsadbench.reporting.figures.rows import about, by_label, spans_orders
from tsadbench.reporting.figures.style import BLUE, VERMILLION, blank, own_axes, own_figure, plain
from tsadbench.results.trial_result import TrialResult
from tsadbench.utils.arrays import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

_BINS = 60
_COLUMNS = 2
_GROUPS = (("training", "0.55"), ("normal test rows", BLUE), ("anomalous test rows", VERMILLION))


def densities(
    results: Sequence[TrialResult], split: str = "overall", *, figure: FigureBase | None = None
) -> list[Axes]:
    """Draw the score densities of every detector, one panel each (`density`).

    Parameters
    ----------
    results
        Of one data set and protocol; of several seeds of a detector the first is shown.
    split
        The test rows.
    figure
        Where to draw; by default a new one.

    Returns
    -------
    list of Axes
        One per detector.
    """
    shown = [of_label[0] for of_label in by_label(results).values()]
    columns = min(_COLUMNS, len(shown))
    rows = -(-len(shown) // columns)
    figure = own_figure(figure, 3.6 * columns, 0.8 + 1.55 * rows)
    every: list[Axes] = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for axes in every[len(shown) :]:
        axes.remove()
    for result, axes in zip(shown, every, strict=False):
        density(result, split, axes=axes)
    figure.suptitle(about(shown[0], split), x=0.01, ha="left", fontsize="medium")
    threshold = Line2D([], [], color="black", linestyle="--", linewidth=0.9, label="threshold")
    patches = [Patch(color=colour, alpha=0.6, linewidth=0, label=name) for name, colour in _GROUPS]
    figure.legend(handles=[*patches, threshold], loc="outside lower center", ncols=4)
    return every[: len(shown)]


def density(result: TrialResult, split: str = "overall", *, axes: Axes | None = None) -> Axes:
    """Draw a detector's scores as three histograms: shares of the training, normal and anomalous rows.

    The group `training` are the rows that set the threshold, the test rows those that the protocol evaluates. The axis
    is logarithmic if scores span orders of magnitude. If a protocol fits more than once, scores are divided by their
    fit's threshold, as they share no scale. A UsageError if there is no such split, or none of its evaluated rows has
    a score.
    """
    axes = own_axes(axes)
    axes.set_title(f"{plain(result.record.label, 40)}, seed {result.record.seed}", fontsize=7.2)
    groups = score_groups(result, split)
    if groups is None:
        blank(axes, "scores of several fits share no scale,\nas a threshold is not positive")
        return axes
    if not len(groups.normal) + len(groups.anomalous):
        raise UsageError(f"none of the evaluated rows of split {split!r} has a score: there is nothing to draw")
    threshold = groups.threshold
    logarithmic = spans_orders(groups.pooled, threshold)
    edges = _edges(groups.pooled, threshold, logarithmic=logarithmic)
    for (name, colour), scores in zip(_GROUPS, (groups.training, groups.normal, groups.anomalous), strict=True):
        if len(scores):
            axes.hist(
                np.clip(scores, edges[0], edges[-1]),
                bins=edges.tolist(),
                weights=np.full(len(scores), 1 / len(scores)),
                histtype="stepfilled",
                facecolor=(colour, 0.35),
                edgecolor=colour,
                linewidth=0.9,
                label=name,
            )
    axes.axvline(threshold, color="black", linestyle="--", linewidth=0.9, label="threshold")
    if logarithmic:
        axes.set_xscale("log")
    else:
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.set_xlim(edges[0], edges[-1])
    axes.set_xlabel("score / its fit's threshold" if groups.relative else "score")
    axes.set_ylabel("share of rows")
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_title(f"{axes.get_title('left')}\n{_flagged(result, split)}", fontsize=7.2)
    return axes


def _edges(scores: FloatArray, threshold: float, *, logarithmic: bool) -> FloatArray:
    """Return the edges of the bins; the outermost bins count the outermost thousandths as well."""
    if logarithmic:
        positive = scores[scores > 0]
        low, high = np.quantile(positive, [0.001, 0.999])
        return np.geomspace(min(low, threshold) / 1.2, max(high, threshold) * 1.2, _BINS + 1)
    low, high = (float(edge) for edge in np.quantile(scores, [0.001, 0.999]))
    low, high = min(low, threshold), max(high, threshold)
    margin = 0.03 * (high - low) or 0.5 * max(abs(low), 1.0)
    return np.linspace(low - margin, high + margin, _BINS + 1)


def _flagged(result: TrialResult, split: str) -> str:
    """Return the shares of the normal and of the anomalous rows above the threshold, in words."""
    fits = fits_of(result, split)
    flagged = np.concatenate([fit.flagged for fit in fits])
    anomalous = np.concatenate([fit.anomalous for fit in fits])
    parts = [
        f"{flagged[rows].mean():.1%} of {name}"
        for name, rows in (("normal", ~anomalous), ("anomalous", anomalous))
        if rows.any()
    ]
    return f"flags {' and '.join(parts)} rows"
