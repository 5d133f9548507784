"""An audit of a data set as a figure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl

from tsadbench.analysis.audit import Audit
from tsadbench.reporting.figures.style import BLUE, VERMILLION, page

# Colours end here, in standard deviations: one sensor far off would leave all others white.
_FAR = 10.0

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_audit(audit: Audit, file: Path) -> None:
    """Write a figure: where the anomalies of each test recording are, what predicts them, how far sensors have moved.

    A UsageError if the ending is another, or the file cannot be written.
    """
    height = max(4.0, 0.16 * sum(facts.role == "test" for facts in audit.recordings) + 1.5)
    with mpl.rc_context({"font.size": 9}), page(file, 11, height, salt=audit.dataset) as figure:
        anomalies, predictors, shifts = figure.subplots(1, 3, width_ratios=(2, 1, 1.4))
        _draw_anomalies(anomalies, audit)
        _draw_predictors(predictors, audit)
        _draw_shifts(shifts, audit)
        figure.suptitle(f"Audit of {audit.dataset}")


def _draw_anomalies(axes: Axes, audit: Audit) -> None:
    test = [facts for facts in audit.recordings if facts.role == "test"]
    for position, facts in enumerate(test):
        axes.barh(position, facts.n_rows, color="#d9d9d9", height=0.8)
        spans = [(start, stop - start) for start, stop in facts.events]
        # Edges keep an event of a few rows in sight.
        axes.broken_barh(spans, (position - 0.4, 0.8), facecolors=VERMILLION, edgecolors=VERMILLION, linewidths=0.6)
    axes.set_yticks(range(len(test)), [facts.id for facts in test], fontsize=6)
    axes.invert_yaxis()
    axes.set_title("Test recordings and their events")
    axes.set_xlabel("row")


def _draw_predictors(axes: Axes, audit: Audit) -> None:
    auroc = {predictor.name: predictor.auroc for predictor in audit.predictors if predictor.auroc is not None}
    axes.barh(list(auroc), list(auroc.values()), color=BLUE)
    for predictor in audit.predictors:
        of_each = [one.auroc for one in predictor.entities.values() if one.auroc is not None]
        axes.plot(of_each, [predictor.name] * len(of_each), "o", color="black", markersize=2.5)
    axes.axvline(0.5, color="black", linewidth=0.8)
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.set_title("AUROC of what knows\nnothing of faults")


def _draw_shifts(axes: Axes, audit: Audit) -> None:
    splits = list(dict.fromkeys(shift.entity or shift.split for shift in audit.shifts))
    sensors = list(dict.fromkeys(shift.sensor for shift in audit.shifts))
    z = {(shift.entity or shift.split, shift.sensor): shift.z for shift in audit.shifts}
    values = [[z.get((split, sensor)) or 0.0 for split in splits] for sensor in sensors]
    furthest = max((abs(value) for row in values for value in row), default=1.0) or 1.0
    limit = min(furthest, _FAR)
    if not values:
        axes.set_axis_off()
        return
    image = axes.imshow(values, cmap="PuOr", vmin=-limit, vmax=limit, aspect="auto")
    axes.set_xticks(range(len(splits)), splits, rotation=90, fontsize=6)
    axes.set_yticks(range(len(sensors)), sensors, fontsize=6)
    axes.set_title("Median z-score of\nnormal test rows")
    axes.figure.colorbar(image, ax=axes, extend="both" if furthest > limit else "neither")
