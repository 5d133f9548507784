"""ROC and precision-recall curves of detectors on a split, with their operating points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.lines import Line2D

from tsadbench.analysis.curves import (
    GRID,
    Curve,
    CurveKind,
    FitRows,
    OperatingPoint,
    chance_level,
    curve_of,
    fits_of,
    mean_curve,
    operating_point,
)
from tsadbench.errors import UsageError
from tsadbench.leaderboard.ranking import Summary
from tsadbench.reporting.figures.rows import about, by_label
from tsadbench.reporting.figures.style import GREY, Look, looks, own_axes, plain
from tsadbench.results.trial_result import TrialResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of curve: the metric that is its area, and what a figure calls its axes."""

    curve: CurveKind
    metric: str
    title: str
    x: str
    y: str


_ROC = _Kind("roc", "auroc", "AUROC", "share of normal rows flagged", "recall")
_PRECISION_RECALL = _Kind("precision_recall", "auprc", "AUPRC", "recall", "precision")


def roc(results: Sequence[TrialResult], split: str = "overall", *, axes: Axes | None = None) -> Axes:
    """Draw receiver operating characteristics: recall against the share of normal rows flagged.

    A line is the mean over seeds, its band reaches from the lowest to the highest; floors are dashed; one marker per
    seed shows its operating point. If a protocol fits more than once, a curve is the mean over its fits, as the
    protocol's AUROC is.

    Parameters
    ----------
    results
        Of one data set and protocol, one or more seeds per detector.
    split
        The rows.
    axes
        Where to draw; by default in a new figure.

    Returns
    -------
    Axes
        The axes.

    Raises
    ------
    UsageError
        If there is no result, or the split's evaluated rows are of one class.
    """
    drawn = _draw(results, split, own_axes(axes), _ROC)
    drawn.plot([0, 1], [0, 1], color=GREY, linewidth=0.7, linestyle=":", zorder=1, label="_chance")
    return drawn


def precision_recall(results: Sequence[TrialResult], split: str = "overall", *, axes: Axes | None = None) -> Axes:
    """Draw precision against recall, in steps, since nothing lies between two thresholds; all else as `roc`."""
    drawn = _draw(results, split, own_axes(axes), _PRECISION_RECALL)
    drawn.axhline(
        chance_level(fits_of(results[0], split)), color=GREY, linewidth=0.7, linestyle=":", zorder=1, label="_chance"
    )
    return drawn


def _draw(results: Sequence[TrialResult], split: str, axes: Axes, kind: _Kind) -> Axes:
    labels = by_label(results)
    all_looks = looks([of_label[0].record.floor for of_label in labels.values()])
    names = []
    for of_label, look in zip(labels.values(), all_looks, strict=True):
        seeds = [fits_of(result, split) for result in of_label]
        metric = Summary.of(result.record.splits[split].metrics.get(kind.metric) for result in of_label).text(3)
        names.append(f"{metric}  {plain(of_label[0].record.label)}")
        curves = [mean_curve([curve_of(fit, kind.curve) for fit in _judged(fits, split)]) for fits in seeds]
        _draw_detector(axes, curves, names[-1], look)
        of_entities = bool(of_label[0].record.splits[split].entities)
        for fits in seeds:
            _mark(axes, operating_point(fits, of_entities=of_entities), look, kind)
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel=kind.x, ylabel=kind.y, box_aspect=1)
    axes.set_title(about(results[0], split))
    axes.set_anchor("W")
    axes.grid(visible=True)
    axes.legend(
        handles=_legend(names, all_looks),
        title=f"{kind.title}, mean(std) over seeds{_averaged(results[0], split)}",
        loc="upper left",
        bbox_to_anchor=(1.01, 1.01),
        alignment="left",
        handlelength=2.6,
    )
    return axes


def _mark(axes: Axes, point: OperatingPoint, look: Look, kind: _Kind) -> None:
    x, y = (point.false_alarm_rate, point.recall) if kind is _ROC else (point.recall, point.precision)
    axes.plot(
        x or 0.0,
        y or 0.0,  # precision is undefined without a flagged row
        look.marker,
        color=look.colour,
        markersize=5,
        markeredgecolor="white",
        markeredgewidth=0.6,
        zorder=4,
        clip_on=False,
        label="_threshold",
    )


def _averaged(result: TrialResult, split: str) -> str:
    n = len(fits_of(result, split))
    return f"\nlines: the mean of {n} fits' curves" if n > 1 else ""


def _legend(names: Sequence[str], all_looks: Sequence[Look]) -> list[Line2D]:
    """Return a line with its marker for each detector, and an entry that explains the markers."""
    lines = [
        Line2D([], [], color=look.colour, linestyle=look.dashes, marker=look.marker, markersize=5.0, label=name)
        for name, look in zip(names, all_looks, strict=True)
    ]
    marker = Line2D([], [], linestyle="none", marker="o", markersize=5.0, color="0.5", label="a seed, at its threshold")
    for line in (*lines, marker):
        line.set(markeredgecolor="white", markeredgewidth=0.6)
    return [*lines, marker]


def _draw_detector(axes: Axes, curves: Sequence[Curve], name: str, look: Look) -> None:
    """Draw one curve per seed as a line, or their mean with a band."""
    colour, drawstyle = look.colour, "default"
    if len(curves) == 1:
        x, y = curves[0].x, curves[0].y
        if curves[0].steps and x is not GRID:  # on a grid, steps and lines are the same to the eye
            drawstyle = "steps-pre"
    else:
        heights = np.array([curve.heights(GRID) for curve in curves])
        x, y = GRID, heights.mean(axis=0)
        axes.fill_between(x, heights.min(axis=0), heights.max(axis=0), color=colour, alpha=0.16, linewidth=0, zorder=2)
    axes.plot(x, y, color=colour, linestyle=look.dashes, drawstyle=drawstyle, label=name, zorder=3)


def _judged(fits: Sequence[FitRows], split: str) -> list[FitRows]:
    """Return the fits whose rows are of both classes: the others have no curve."""
    both = [fit for fit in fits if fit.both_classes]
    if not both:
        n = sum(len(fit.anomalous) for fit in fits)
        anomalous = sum(int(fit.anomalous.sum()) for fit in fits)
        raise UsageError(
            f"split {split!r} has {anomalous:,} anomalous rows among {n:,} evaluated ones: a curve needs rows of both "
            f"classes; choose another split"
        )
    return both
