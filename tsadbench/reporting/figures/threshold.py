"""Draws a threshold: the scores around it, and the tail that Peaks-over-Threshold fitted to normal scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import PercentFormatter, StrMethodFormatter
from scipy.stats import genpareto

from tsadbench.analysis.curves import fits_of, operating_point, score_groups
from tsadbench.base.protocol import Threshold
from tsadbench.errors import UsageError
from tsadbench.reporting.figures.style import BLUE, GREEN, GREY, INK, PAPER, VERMILLION, blank, own_figure, plain
from tsadbench.reporting.figures.trials import by_label, spans_orders
from tsadbench.results.trial_result import TrialResult
from tsadbench.utils.arrays import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

_BINS = 60
_GROUPS = (
    ("threshold's normal rows", GREY),
    ("normal test rows", BLUE),
    ("anomalous test rows", VERMILLION),
)


def threshold(
    results: Sequence[TrialResult],
    figure: FigureBase | None = None,
    split: str = "overall",
    recording: str | None = None,
) -> list[list[Axes]]:
    """Draw the distribution of scores and the fit of the threshold's tail, two panels per detector.

    - The scores of normal and of anomalous rows, with the threshold.
    - The score that normal rows exceed once in n rows, against n; the threshold is the score at 1/q rows.

    The results come from one data set and protocol; of several seeds, the first is shown. If the protocol fits each
    recording, the tail belongs to the fit of ``recording``, by default the first. Returns two axes per detector. A
    UsageError if there is no result, or no such recording or split.
    """
    shown = [of_label[0] for of_label in by_label(results).values()]
    figure = own_figure(figure, 7.4, 0.5 + 2.1 * len(shown))
    parts = figure.subfigures(len(shown), 1, squeeze=False)[:, 0].tolist()
    drawn = []
    for result, part in zip(shown, parts, strict=True):
        episode = result.recording(next(iter(result.recordings)) if recording is None else recording).episode
        (found,) = (fit.threshold for fit in result.record.thresholds if fit.episode == episode)
        axes: list[Axes] = part.subplots(1, 2, width_ratios=(1.5, 1)).tolist()
        several = f", fit of {plain(episode)}" if len(result.record.thresholds) > 1 else ""
        status = _status(found, result.calibrated_on(episode))
        title = f"{plain(result.record.label)}, seed {result.record.seed}{several}: {status}"
        part.suptitle(title, x=0.01, ha="left", fontsize="medium")
        density(result, axes[0], split)
        return_levels(found, result.calibration_scores(episode), axes[1])
        drawn.append(axes)
    legends = [ax.get_legend_handles_labels() for axes in drawn for ax in axes]
    named = {name: one for legend in legends for one, name in zip(*legend, strict=True)}
    parts[-1].legend(named.values(), named.keys(), loc="outside lower center", ncols=4)
    return drawn


def density(result: TrialResult, ax: Axes, split: str = "overall") -> Axes:
    """Draw a detector's scores as three histograms (shares of each group's rows) with the threshold.

    The groups are the normal rows that set the threshold, and the split's evaluated normal and anomalous rows. The axis
    is logarithmic if scores span orders of magnitude. If a protocol fits more than once, scores are divided by their
    fit's threshold. Raises a UsageError if there is no such split, or it has no evaluated row with a score.
    """
    groups = score_groups(result, split)
    rates = zip(("normal", "anomalous"), operating_point(fits_of(result, split)), strict=False)
    said = " and ".join(f"{share:.1%} of {name}" for name, share in rates if share is not None)
    ax.set_title(f"flags {said} rows", fontsize=7.2)
    if groups is None:
        blank(ax, "scores share no scale: a threshold\nmoves, or is not positive")
        return ax
    if not len(groups.normal) + len(groups.anomalous):
        raise UsageError(f"none of the evaluated rows of split {split!r} has a score: there is nothing to draw")
    pooled = np.concatenate(groups[:3])
    logarithmic = spans_orders(pooled, groups.threshold)
    edges = _edges(pooled, groups.threshold, logarithmic=logarithmic)
    for (name, colour), scores in zip(_GROUPS, (groups.training, groups.normal, groups.anomalous), strict=True):
        if len(scores):
            shares = np.full(len(scores), 1 / len(scores))
            look: dict[str, Any] = {"facecolor": (colour, 0.35), "edgecolor": colour, "linewidth": 0.9, "label": name}
            clipped = np.clip(scores, edges[0], edges[-1])
            ax.hist(clipped, edges.tolist(), weights=shares, histtype="stepfilled", **look)
    ax.axvline(groups.threshold, color=INK, linestyle="--", linewidth=0.9, label="threshold")
    if logarithmic:
        ax.set_xscale("log")
    else:
        ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    ax.set(xlim=(edges[0], edges[-1]), xlabel="score / its fit's threshold" if groups.relative else "score")
    ax.set_ylabel("share of rows")
    ax.yaxis.set_major_formatter(PercentFormatter(1.0))
    return ax


def _edges(scores: FloatArray, threshold: float, *, logarithmic: bool) -> FloatArray:
    """Return the bin edges; the outermost bins also count the outermost thousandths."""
    low, high = np.quantile(scores[scores > 0] if logarithmic else scores, [0.001, 0.999])
    low, high = float(min(low, threshold)), float(max(high, threshold))
    if logarithmic:
        return np.geomspace(low / 1.2, high * 1.2, _BINS + 1)
    margin = 0.03 * (high - low) or 0.5 * max(abs(low), 1.0)
    return np.linspace(low - margin, high + margin, _BINS + 1)


def _status(found: Threshold, calibration: str) -> str:
    if found.method == "fixed":
        return f"threshold {found.value:.4g}, fixed"
    fit = "" if found.gamma is None else f", shape {found.gamma:.2f}, scale {found.sigma:.3g}"
    return (
        f"threshold {found.value:.4g}, {found.status}; {found.excesses:,} of {found.n:,} "
        f"{calibration} scores above {found.t:.4g} (level {found.level:.2f}){fit}"
    )


def return_levels(found: Threshold, scores: FloatArray, ax: Axes) -> Axes:
    """Draw the largest of the n scores that set a threshold, and the fitted tail, by their return period in rows."""
    ax.set_title("return levels")
    n = len(scores)
    if found.t is None or found.q is None or not n:
        blank(ax, "a floor's own threshold:\nno tail was fitted")
        return ax
    n_excesses = int(np.count_nonzero(scores > found.t))
    top = np.sort(scores)[-max(n_excesses, min(n, 30)) :]
    # The largest of n scores is exceeded about once in 2n rows, the next once in 2n/3.
    period = n / (np.arange(len(top), 0, -1) - 0.5)
    ax.plot(period, top, "o", color=BLUE, markersize=2.2, markeredgewidth=0, label="largest normal scores")
    if found.gamma is not None and found.sigma is not None:
        share = n_excesses / n
        rows = np.geomspace(1 / share, max(3 / found.q, period[-1]), 200)
        levels = found.t + genpareto.ppf(1 - 1 / (rows * share), found.gamma, 0.0, found.sigma)
        ax.plot(rows, levels, color=VERMILLION, label="fitted tail")
    ax.plot(
        1 / found.q,
        found.value,
        "*",
        color=GREEN,
        markersize=9,
        markeredgecolor=PAPER,
        zorder=4,
        label="threshold, at 1/q rows",
    )
    ax.axhline(found.value, color=INK, linestyle="--", linewidth=0.9)
    ax.axhline(found.t, color=GREY, linestyle=":", linewidth=0.9, label="initial threshold")
    ax.set_xscale("log")
    ax.set(xlabel="rows that exceed it once", ylabel="score")
    return ax
