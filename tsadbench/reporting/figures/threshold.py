"""How a threshold was found: the tail that Peaks-over-Threshold fitted to the training scores, and whether it fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.lines import Line2D
from scipy.stats import genpareto

from tsadbench.base.protocol import Threshold
from tsadbench.reporting.figures.rows import by_label
from tsadbench.reporting.figures.style import BLUE, GREEN, GREY, VERMILLION, blank, own_figure, plain
from tsadbench.results.trial_result import TrialResult
from tsadbench.utils.arrays import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

_WHY_NO_TAIL = {
    "fixed": "a floor's own threshold:\nno tail was fitted",
    "degenerate": "no training score lies above\nthe initial threshold: the largest one\nis the threshold",
    "quantile": "too few distinct excesses:\nan empirical quantile is the threshold",
}


@dataclass(frozen=True, slots=True, eq=False)
class _Tail:
    """A threshold, the training scores that set it, and the fitted distribution of what lies above its start."""

    threshold: Threshold
    scores: FloatArray

    @property
    def excesses(self) -> FloatArray:
        """Scores above the initial threshold, less it, ascending."""
        start = self.threshold.t
        if start is None:
            return np.empty(0)
        return np.sort(self.scores[self.scores > start]) - start

    @property
    def fitted(self) -> tuple[float, float] | None:
        """Shape and scale of the generalised Pareto distribution; None where none was fitted."""
        gamma, sigma = self.threshold.gamma, self.threshold.sigma
        return None if gamma is None or sigma is None else (gamma, sigma)


def threshold(
    results: Sequence[TrialResult], recording: str | None = None, *, figure: FigureBase | None = None
) -> list[list[Axes]]:
    """Draw the diagnostics of Peaks-over-Threshold, three panels a detector: excesses, quantiles, return levels.

    - The excesses over the initial threshold as a histogram, the fitted generalised Pareto density over it.
    - Their quantiles against the fitted ones: on the diagonal where the tail fits.
    - The score that training rows exceed once in so many rows; the threshold is that of 1/q rows.

    Parameters
    ----------
    results
        Of one data set and protocol; of several seeds of a detector the first is shown.
    recording
        A test recording, where the protocol fits for each of them; by default the first one's fit.
    figure
        Where to; by default a new one.

    Returns
    -------
    list of lists of Axes
        Three a detector.

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
    (found,) = (one.threshold for one in result.record.thresholds if one.episode == episode)
    tail = _Tail(found, result.calibration_scores(episode))
    axes: list[Axes] = figure.subplots(1, 3).tolist()
    several = f", fit of {plain(episode)}" if len(result.record.thresholds) > 1 else ""
    title = f"{plain(result.record.label)}, seed {result.record.seed}{several}: {_status(found)}"
    figure.suptitle(title, x=0.01, ha="left", fontsize="medium")
    _excesses(tail, axes[0])
    _quantiles(tail, axes[1])
    _return_levels(tail, axes[2])
    return axes


def _status(found: Threshold) -> str:
    if found.method == "fixed":
        return f"threshold {found.value:.4g}, fixed"
    fit = "" if found.gamma is None else f", shape {found.gamma:.2f}, scale {found.sigma:.3g}"
    return (
        f"threshold {found.value:.4g}, {found.status}; {found.excesses:,} of {found.n:,} training scores above "
        f"{found.t:.4g} (level {found.level:.2f}){fit}"
    )


def _excesses(tail: _Tail, axes: Axes) -> None:
    axes.set_title("excesses")
    excesses = tail.excesses
    if not len(excesses):
        blank(axes, _WHY_NO_TAIL[tail.threshold.status])
        return
    start = tail.threshold.t or 0.0
    bins = int(np.clip(2 * np.sqrt(len(excesses)), 8, 40))
    axes.hist(start + excesses, bins=bins, density=True, facecolor=(BLUE, 0.35), edgecolor=BLUE, linewidth=0.5)
    if tail.fitted is not None:
        gamma, sigma = tail.fitted
        x = np.linspace(0, max(excesses[-1], tail.threshold.value - start) * 1.02, 300)
        axes.plot(start + x, genpareto.pdf(x, gamma, scale=sigma), color=VERMILLION)
    axes.axvline(start, color=GREY, linestyle=":", linewidth=0.9)
    axes.axvline(tail.threshold.value, color="black", linestyle="--", linewidth=0.9)
    axes.set(xlabel="score", ylabel="density")


def _quantiles(tail: _Tail, axes: Axes) -> None:
    axes.set_title("quantiles")
    if tail.fitted is None:
        blank(axes, _WHY_NO_TAIL[tail.threshold.status])
        return
    excesses = tail.excesses
    gamma, sigma = tail.fitted
    expected = genpareto.ppf((np.arange(len(excesses)) + 0.5) / len(excesses), gamma, scale=sigma)
    axes.plot(expected, excesses, "o", color=BLUE, markersize=2.2, markeredgewidth=0)
    largest = float(max(expected[-1], excesses[-1]))
    axes.plot([0, largest], [0, largest], color=VERMILLION, linewidth=0.9, zorder=1)
    axes.set(xlabel="of the fitted tail", ylabel="of the excesses")


def _return_levels(tail: _Tail, axes: Axes) -> None:
    axes.set_title("return levels")
    found = tail.threshold
    if found.t is None or found.q is None or not len(tail.scores):
        blank(axes, _WHY_NO_TAIL[found.status])
        return
    n = len(tail.scores)
    top = np.sort(tail.scores)[-max(len(tail.excesses), min(n, 30)) :]
    # The largest of n scores is exceeded about once in 2n rows, the next once in 2n/3.
    period = n / (np.arange(len(top), 0, -1) - 0.5)
    axes.plot(period, top, "o", color=BLUE, markersize=2.2, markeredgewidth=0)
    if tail.fitted is not None:
        gamma, sigma = tail.fitted
        share_above = len(tail.excesses) / n
        rows = np.geomspace(1 / share_above, max(3 / found.q, period[-1]), 200)
        levels = found.t + genpareto.ppf(1 - 1 / (rows * share_above), gamma, scale=sigma)
        axes.plot(rows, levels, color=VERMILLION)
    axes.plot(1 / found.q, found.value, "*", color=GREEN, markersize=9, markeredgecolor="white", zorder=4)
    axes.axhline(found.value, color="black", linestyle="--", linewidth=0.9)
    axes.set_xscale("log")
    axes.set(xlabel="rows that exceed it once", ylabel="score")


def _legend() -> list[Line2D]:
    return [
        Line2D([], [], color=BLUE, linestyle="none", marker="o", markersize=3.0, label="training scores"),
        Line2D([], [], color=VERMILLION, label="fitted tail"),
        Line2D([], [], color=GREY, linestyle=":", linewidth=0.9, label="initial threshold"),
        Line2D([], [], color="black", linestyle="--", linewidth=0.9, label="threshold"),
        Line2D([], [], color=GREEN, linestyle="none", marker="*", markersize=8, label="threshold, at 1/q rows"),
    ]
