"""Origin of a threshold: the tail that Peaks-over-Threshold fitted to normal scores, and how well it fits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.lines import Line2D
from scipy.stats import genpareto

from tsadbench.analysis.curves import Tail, tail_of
from tsadbench.reporting.figures.rows import by_label
from tsadbench.reporting.figures.style import BLUE, GREEN, GREY, VERMILLION, blank, own_figure, plain
from tsadbench.results.trial_result import TrialResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

_WHY_NO_TAIL = {
    "fixed": "a floor's own threshold:\nno tail was fitted",
    "degenerate": "no {calibration} score lies above\nthe initial threshold: the largest one\nis the threshold",
    "quantile": "too few distinct excesses:\nan empirical quantile is the threshold",
}


def threshold(
    results: Sequence[TrialResult], recording: str | None = None, *, figure: FigureBase | None = None
) -> list[list[Axes]]:
    """Draw the diagnostics of Peaks-over-Threshold, three panels per detector: excesses, quantiles, return levels.

    - The excesses over the initial threshold as a histogram, the fitted generalised Pareto density over it.
    - Their quantiles against the fitted ones: on the diagonal if the tail fits.
    - The score that normal rows exceed once in so many rows; the threshold is that of 1/q rows.

    Parameters
    ----------
    results
        Of one data set and protocol; of several seeds of a detector the first is shown.
    recording
        A test recording, if the protocol fits once for each; by default the first one's fit is shown.
    figure
        Where to draw; by default a new one.

    Returns
    -------
    list of lists of Axes
        Three per detector.

    Raises
    ------
    UsageError
        If there is no result or no such recording.
    """
    shown = [of_label[0] for of_label in by_label(results).values()]
    figure = own_figure(figure, 7.4, 0.4 + 2.05 * len(shown))
    parts = figure.subfigures(len(shown), 1, squeeze=False)[:, 0].tolist()
    drawn = [_draw(result, recording, part) for result, part in zip(shown, parts, strict=True)]
    parts[-1].legend(handles=_legend(), loc="outside lower center", ncols=5)
    return drawn


def _draw(result: TrialResult, recording: str | None, figure: FigureBase) -> list[Axes]:
    name = next(iter(result.recordings)) if recording is None else recording
    episode = result.recording(name).episode
    tail = tail_of(result, episode)
    axes: list[Axes] = figure.subplots(1, 3).tolist()
    several = f", fit of {plain(episode)}" if len(result.record.thresholds) > 1 else ""
    title = f"{plain(result.record.label)}, seed {result.record.seed}{several}: {_status(tail)}"
    figure.suptitle(title, x=0.01, ha="left", fontsize="medium")
    _excesses(tail, axes[0])
    _quantiles(tail, axes[1])
    _return_levels(tail, axes[2])
    return axes


def _status(tail: Tail) -> str:
    threshold = tail.threshold
    if threshold.method == "fixed":
        return f"threshold {threshold.value:.4g}, fixed"
    fit = "" if threshold.gamma is None else f", shape {threshold.gamma:.2f}, scale {threshold.sigma:.3g}"
    return (
        f"threshold {threshold.value:.4g}, {threshold.status}; {threshold.excesses:,} of {threshold.n:,} "
        f"{tail.calibration} scores above {threshold.t:.4g} (level {threshold.level:.2f}){fit}"
    )


def _excesses(tail: Tail, axes: Axes) -> None:
    axes.set_title("excesses")
    excesses = tail.excesses
    if not len(excesses):
        blank(axes, _WHY_NO_TAIL[tail.threshold.status].format(calibration=tail.calibration))
        return
    start = tail.threshold.t or 0.0
    bins = int(np.clip(2 * np.sqrt(len(excesses)), 8, 40))
    axes.hist(start + excesses, bins=bins, density=True, facecolor=(BLUE, 0.35), edgecolor=BLUE, linewidth=0.5)
    if tail.fitted is not None:
        x = np.linspace(0, max(excesses[-1], tail.threshold.value - start) * 1.02, 300)
        axes.plot(start + x, genpareto.pdf(x, *tail.fitted), color=VERMILLION)
    axes.axvline(start, color=GREY, linestyle=":", linewidth=0.9)
    axes.axvline(tail.threshold.value, color="black", linestyle="--", linewidth=0.9)
    axes.set(xlabel="score", ylabel="density")


def _quantiles(tail: Tail, axes: Axes) -> None:
    axes.set_title("quantiles")
    if tail.fitted is None:
        blank(axes, _WHY_NO_TAIL[tail.threshold.status].format(calibration=tail.calibration))
        return
    excesses, expected = tail.excesses, genpareto.ppf(tail.positions, *tail.fitted)
    axes.plot(expected, excesses, "o", color=BLUE, markersize=2.2, markeredgewidth=0)
    largest = float(max(expected[-1], excesses[-1]))
    axes.plot([0, largest], [0, largest], color=VERMILLION, linewidth=0.9, zorder=1)
    axes.set(xlabel="of the fitted tail", ylabel="of the excesses")


def _return_levels(tail: Tail, axes: Axes) -> None:
    axes.set_title("return levels")
    threshold = tail.threshold
    if threshold.t is None or threshold.q is None or not len(tail.scores):
        blank(axes, _WHY_NO_TAIL[threshold.status].format(calibration=tail.calibration))
        return
    n = len(tail.scores)
    top = np.sort(tail.scores)[-max(len(tail.excesses), min(n, 30)) :]
    # The largest of n scores is exceeded about once in 2n rows, the next once in 2n/3.
    period = n / (np.arange(len(top), 0, -1) - 0.5)
    axes.plot(period, top, "o", color=BLUE, markersize=2.2, markeredgewidth=0)
    if tail.fitted is not None:
        rows = np.geomspace(1 / tail.share, max(3 / threshold.q, period[-1]), 200)
        axes.plot(rows, threshold.t + genpareto.ppf(1 - 1 / (rows * tail.share), *tail.fitted), color=VERMILLION)
    axes.plot(1 / threshold.q, threshold.value, "*", color=GREEN, markersize=9, markeredgecolor="white", zorder=4)
    axes.axhline(threshold.value, color="black", linestyle="--", linewidth=0.9)
    axes.set_xscale("log")
    axes.set(xlabel="rows that exceed it once", ylabel="score")


def _legend() -> list[Line2D]:
    return [
        Line2D([], [], color=BLUE, linestyle="none", marker="o", markersize=3.0, label="scores of normal rows"),
        Line2D([], [], color=VERMILLION, label="fitted tail"),
        Line2D([], [], color=GREY, linestyle=":", linewidth=0.9, label="initial threshold"),
        Line2D([], [], color="black", linestyle="--", linewidth=0.9, label="threshold"),
        Line2D([], [], color=GREEN, linestyle="none", marker="*", markersize=8, label="threshold, at 1/q rows"),
    ]
