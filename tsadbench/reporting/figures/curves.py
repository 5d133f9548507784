"""ROC and precision-recall curves of detectors on a split, with the point at which each of them works."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from matplotlib.lines import Line2D
from sklearn.metrics import precision_recall_curve, roc_curve

from tsadbench.base.scores import comparable
from tsadbench.errors import UsageError
from tsadbench.leaderboard.ranking import Summary
from tsadbench.reporting.figures.rows import FitRows, about, by_label, fits_of
from tsadbench.reporting.figures.style import GREY, Look, looks, own_axes, plain
from tsadbench.results.trial_result import TrialResult
from tsadbench.utils.arrays import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Points: TypeAlias = tuple[FloatArray, FloatArray]

# Where curves of several fits or seeds are averaged.
_GRID = np.linspace(0.0, 1.0, 501)


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of curve: its points for the rows of one fit, their heights at some x, the point at the threshold."""

    metric: str
    title: str
    x: str
    y: str
    points: Callable[[FitRows], Points]
    heights: Callable[[Points, FloatArray], FloatArray]
    working_point: Callable[[Sequence[FitRows]], tuple[float, float]]
    drawstyle: str


def roc(results: Sequence[TrialResult], split: str = "overall", *, axes: Axes | None = None) -> Axes:
    """Draw receiver operating characteristics: recall against the share of normal rows flagged.

    A line is the mean over seeds, its band reaches from the lowest to the highest; floors are dashed; a marker a seed
    stands where its threshold works. Where a protocol fits more than once, a curve is the mean over its fits, as the
    protocol's AUROC is.

    Parameters
    ----------
    results
        Of one data set and protocol, one or more seeds a detector.
    split
        The rows.
    axes
        Where to; by default those of a new figure.

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
    rows = fits_of(results[0], split)
    share = sum(one.anomalous.sum() for one in rows) / sum(len(one.anomalous) for one in rows)
    drawn.axhline(share, color=GREY, linewidth=0.7, linestyle=":", zorder=1, label="_chance")
    return drawn


def _draw(results: Sequence[TrialResult], split: str, axes: Axes, kind: _Kind) -> Axes:
    labels = by_label(results)
    all_looks = looks([of_label[0].record.floor for of_label in labels.values()])
    names = []
    for (label, of_label), look in zip(labels.items(), all_looks, strict=True):
        fits = [fits_of(result, split) for result in of_label]
        metric = Summary.of(one.record.splits[split].metrics.get(kind.metric) for one in of_label).text(3)
        names.append(f"{metric}  {plain(label)}")
        _draw_detector(axes, [_judged(one, split) for one in fits], names[-1], look, kind)
        for one in fits:
            axes.plot(
                *kind.working_point(one),
                look.marker,
                color=look.colour,
                markersize=5,
                markeredgecolor="white",
                markeredgewidth=0.6,
                zorder=4,
                clip_on=False,
                label="_threshold",
            )
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


def _averaged(result: TrialResult, split: str) -> str:
    n = len(fits_of(result, split))
    return f"\nlines: the mean of {n} fits' curves" if n > 1 else ""


def _legend(names: Sequence[str], all_looks: Sequence[Look]) -> list[Line2D]:
    """Return a line with its marker for each detector, and one that says what the markers are."""
    lines = [
        Line2D([], [], color=look.colour, linestyle=look.dashes, marker=look.marker, markersize=5.0, label=name)
        for name, look in zip(names, all_looks, strict=True)
    ]
    marker = Line2D([], [], linestyle="none", marker="o", markersize=5.0, color="0.5", label="a seed, at its threshold")
    for line in (*lines, marker):
        line.set(markeredgecolor="white", markeredgewidth=0.6)
    return [*lines, marker]


def _draw_detector(axes: Axes, seeds: Sequence[Sequence[FitRows]], name: str, look: Look, kind: _Kind) -> None:
    curves = [[kind.points(fit) for fit in fits] for fits in seeds]
    if len(curves) == 1 and len(curves[0]) == 1:
        x, y = curves[0][0]
        axes.plot(x, y, color=look.colour, linestyle=look.dashes, drawstyle=kind.drawstyle, label=name, zorder=3)
        return
    heights = np.array([np.mean([kind.heights(points, _GRID) for points in fits], axis=0) for fits in curves])
    axes.plot(_GRID, heights.mean(axis=0), color=look.colour, linestyle=look.dashes, label=name, zorder=3)
    if len(heights) > 1:
        low, high = heights.min(axis=0), heights.max(axis=0)
        axes.fill_between(_GRID, low, high, color=look.colour, alpha=0.16, linewidth=0, zorder=2)


def _judged(fits: Sequence[FitRows], split: str) -> list[FitRows]:
    """Return the fits whose rows are of both classes: the others have no curve."""
    both = [fit for fit in fits if fit.anomalous.any() and not fit.anomalous.all()]
    if not both:
        n = sum(len(fit.anomalous) for fit in fits)
        anomalous = sum(int(fit.anomalous.sum()) for fit in fits)
        raise UsageError(
            f"split {split!r} has {anomalous:,} anomalous rows among {n:,} evaluated ones: a curve needs rows of both "
            f"classes; choose another split"
        )
    return both


def _roc_points(rows: FitRows) -> Points:
    false_alarms, recall, _ = roc_curve(rows.anomalous, comparable(rows.scores), drop_intermediate=False)
    return false_alarms, recall


def _precision_points(rows: FitRows) -> Points:
    precision, recall, _ = precision_recall_curve(rows.anomalous, comparable(rows.scores))
    return recall[::-1], precision[::-1]


def _steps(points: Points, x: FloatArray) -> FloatArray:
    """Return the precision at which a recall is first reached."""
    recall, precision = points
    heights: FloatArray = precision[np.searchsorted(recall, x, side="left")]
    return heights


def _between(points: Points, x: FloatArray) -> FloatArray:
    heights: FloatArray = np.interp(x, *points)
    return heights


def _counts(fits: Sequence[FitRows]) -> tuple[int, int, int, int]:
    """Return rightly and wrongly flagged rows, anomalous and normal ones."""
    flagged = np.concatenate([fit.flagged for fit in fits])
    anomalous = np.concatenate([fit.anomalous for fit in fits])
    hits = int((flagged & anomalous).sum())
    return hits, int(flagged.sum()) - hits, int(anomalous.sum()), int((~anomalous).sum())


def _roc_at_threshold(fits: Sequence[FitRows]) -> tuple[float, float]:
    hits, false_alarms, anomalous, normal = _counts(fits)
    return false_alarms / normal, hits / anomalous


def _precision_at_threshold(fits: Sequence[FitRows]) -> tuple[float, float]:
    hits, false_alarms, anomalous, _ = _counts(fits)
    return hits / anomalous, hits / (hits + false_alarms) if hits + false_alarms else 0.0


_ROC = _Kind(
    "auroc", "AUROC", "share of normal rows flagged", "recall", _roc_points, _between, _roc_at_threshold, "default"
)
_PRECISION_RECALL = _Kind(
    "auprc", "AUPRC", "recall", "precision", _precision_points, _steps, _precision_at_threshold, "steps-pre"
)
