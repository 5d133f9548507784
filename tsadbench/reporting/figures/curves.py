"""ROC and precision-recall curves of detectors on a split, with their operating points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D

from tsadbench.analysis.curves import (
    GRID,
    Curve,
    CurveKind,
    FitRows,
    curve_of,
    fits_of,
    mean_curve,
    operating_point,
)
from tsadbench.errors import UsageError
from tsadbench.leaderboard.render import number
from tsadbench.reporting.figures.style import GREY, PAPER, Look, looks, own_axes, plain
from tsadbench.reporting.figures.trials import by_label
from tsadbench.results.trial_result import TrialResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def roc(results: Sequence[TrialResult], ax: Axes | None = None, split: str = "overall") -> Axes:
    """Draw receiver operating characteristics: recall against the share of normal rows flagged.

    Lines are means over seeds, bands their range; floors are dashed; markers show each seed's operating point. If a
    protocol fits more than once, curves are means over its fits, like the protocol's AUROC.

    The results come from one data set and protocol, with one or more seeds per detector. Raises a UsageError if there
    are none, or the split's evaluated rows have only one class.
    """
    ax = _draw(results, own_axes(ax), split, "roc")
    ax.plot([0, 1], [0, 1], color=GREY, linewidth=0.7, linestyle=":", zorder=1, label="_chance")
    ax.set(xlabel="share of normal rows flagged", ylabel="recall")
    return ax


def precision_recall(results: Sequence[TrialResult], ax: Axes | None = None, split: str = "overall") -> Axes:
    """Draw precision against recall in steps, since nothing lies between two thresholds; otherwise like `roc`."""
    ax = _draw(results, own_axes(ax), split, "precision_recall")
    chance = np.mean([fit.anomalous.mean() for fit in fits_of(results[0], split) if fit.both_classes])
    ax.axhline(chance, color=GREY, linewidth=0.7, linestyle=":", zorder=1, label="_chance")
    ax.set(xlabel="recall", ylabel="precision")
    return ax


def _draw(results: Sequence[TrialResult], ax: Axes, split: str, kind: CurveKind) -> Axes:
    labels = by_label(results)
    all_looks = looks([of_label[0].record.floor for of_label in labels.values()])
    metric, title = ("auroc", "AUROC") if kind == "roc" else ("auprc", "AUPRC")
    handles = []
    for (label, of_label), look in zip(labels.items(), all_looks, strict=True):
        seeds = [fits_of(result, split) for result in of_label]
        curves = [mean_curve([curve_of(fit, kind) for fit in _judged(fits, split)]) for fits in seeds]
        found = pd.Series([one.record.splits[split].metrics.get(metric) for one in of_label], dtype=np.float64)
        spread = f" ± {number(found.std(), 3)}" if found.count() > 1 else ""
        name = f"{number(found.mean(), 3)}{spread}  {plain(label)}"
        _line(ax, curves, name, look)
        of_entities = bool(of_label[0].record.splits[split].entities)
        for fits in seeds:
            rate, recall, precision = operating_point(fits, of_entities=of_entities)
            x, y = (rate, recall) if kind == "roc" else (recall, precision)
            # Precision is undefined without a flagged row.
            ax.plot(x or 0.0, y or 0.0, clip_on=False, label="_threshold", zorder=4, **_marker(look))
        handles.append(Line2D([], [], linestyle=look.dashes, label=name, **_marker(look)))
    handles.append(Line2D([], [], linestyle="none", label="a seed, at its threshold", **_marker(Look(GREY, "o", "-"))))
    ax.set(xlim=(0, 1), ylim=(0, 1), box_aspect=1, anchor="W")
    record, judged = results[0].record, results[0].record.splits[split]
    anomalous = f"{judged.n_anomalous / judged.n_rows:.1%}" if judged.n_rows else "none"
    about = f"{judged.n_rows:,} rows, {anomalous} anomalous"
    ax.set_title(f"{record.dataset} · {split} · protocol {record.rules} · {about}")
    ax.grid(visible=True)
    n_fits = len(fits_of(results[0], split))
    averaged = f"\nlines: the mean of {n_fits} fits' curves" if n_fits > 1 else ""
    heading = f"{title}, mean ± deviation over seeds{averaged}"
    ax.legend(handles=handles, title=heading, loc="upper left", bbox_to_anchor=(1.01, 1.01), alignment="left")
    return ax


def _marker(look: Look) -> dict[str, Any]:
    return {"color": look.colour, "marker": look.marker, "ms": 5.0, "mec": PAPER, "mew": 0.6}


def _line(ax: Axes, curves: Sequence[Curve], name: str, look: Look) -> None:
    """Draw one seed's curve as a line, or the mean of several with a band."""
    mean = mean_curve(curves)
    if len(curves) > 1:
        heights = [curve.heights(GRID) for curve in curves]
        low, high = np.min(heights, axis=0), np.max(heights, axis=0)
        ax.fill_between(GRID, low, high, color=look.colour, alpha=0.16, lw=0, zorder=2)
    # On a grid, steps and lines look the same.
    drawstyle = "steps-pre" if mean.steps and mean.x is not GRID else "default"
    ax.plot(mean.x, mean.y, color=look.colour, linestyle=look.dashes, drawstyle=drawstyle, label=name, zorder=3)


def _judged(fits: Sequence[FitRows], split: str) -> list[FitRows]:
    """Return the fits with rows of both classes; other fits have no curve."""
    both = [fit for fit in fits if fit.both_classes]
    if not both:
        n = sum(len(fit.anomalous) for fit in fits)
        anomalous = sum(int(fit.anomalous.sum()) for fit in fits)
        raise UsageError(
            f"split {split!r} has {anomalous:,} anomalous rows among {n:,} evaluated ones: a curve needs rows of both "
            f"classes; choose another split"
        )
    return both
