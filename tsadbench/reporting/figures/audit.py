"""An audit of a data set as a figure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl

from tsadbench.analysis.audit import Audit
from tsadbench.base.dataset import LabelledDataset
from tsadbench.reporting.figures.style import BLUE, VERMILLION, page
from tsadbench.utils.arrays import mask_runs

# Colours end here, in standard deviations: one sensor far off would leave all others white.
_FAR = 10.0

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def draw_audit(data: LabelledDataset, audit: Audit, file: Path) -> None:
    """Write a figure: where the anomalies of each test recording are, what predicts them, how far sensors have moved.

    A UsageError if the ending is another, or the file cannot be written.
    """
    height = max(4.0, 0.16 * len(data.dataset.test) + 1.5)
    tables = {table.title.partition(" (")[0]: table.frame for table in audit.tables}
    with mpl.rc_context({"font.size": 9}), page(file, 11, height, salt=audit.dataset) as figure:
        anomalies, predictors, shifts = figure.subplots(1, 3, width_ratios=(2, 1, 1.4))
        _draw_anomalies(anomalies, data)
        if (ranked := tables.get("What predicts the label")) is not None:
            _draw_predictors(predictors, ranked, tables.get("AUROC by entity"))
        _draw_shifts(shifts, tables.get("Normal test rows against training rows"))
        figure.suptitle(f"Audit of {audit.dataset}")


def _draw_anomalies(axes: Axes, data: LabelledDataset) -> None:
    test = data.dataset.test
    for position, recording in enumerate(test):
        axes.barh(position, recording.n_rows, color="#d9d9d9", height=0.8)
        events = mask_runs(data.labels.rows[recording.id]) if recording.id in data.labels.rows else []
        spans = [(start, stop - start) for start, stop in events]
        # Edges keep an event of a few rows in sight.
        axes.broken_barh(spans, (position - 0.4, 0.8), facecolors=VERMILLION, edgecolors=VERMILLION, linewidths=0.6)
    axes.set_yticks(range(len(test)), [recording.id for recording in test], fontsize=6)
    axes.invert_yaxis()
    axes.set_title("Test recordings and their events")
    axes.set_xlabel("row")


def _draw_predictors(axes: Axes, ranked: pd.DataFrame, of_entities: pd.DataFrame | None) -> None:
    known = ranked.dropna(subset="AUROC")
    axes.barh(list(known["predictor"]), list(known["AUROC"]), color=BLUE)
    if of_entities is not None:
        for name in known["predictor"]:
            of_each = of_entities[name].dropna()
            axes.plot(of_each, [name] * len(of_each), "o", color="black", markersize=2.5)
    axes.axvline(0.5, color="black", linewidth=0.8)
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.set_title("AUROC of what knows\nnothing of faults")


def _draw_shifts(axes: Axes, shifts: pd.DataFrame | None) -> None:
    if shifts is None:
        axes.set_axis_off()
        return
    z = shifts.sort_index().set_index(["sensor", "where"])["z"].unstack(sort=False).fillna(0.0)
    furthest = float(z.abs().to_numpy().max()) or 1.0
    limit = min(furthest, _FAR)
    image = axes.imshow(z, cmap="PuOr", vmin=-limit, vmax=limit, aspect="auto")
    axes.set_xticks(range(z.shape[1]), list(z.columns), rotation=90, fontsize=6)
    axes.set_yticks(range(z.shape[0]), list(z.index), fontsize=6)
    axes.set_title("Median z-score of\nnormal test rows")
    axes.figure.colorbar(image, ax=axes, extend="both" if furthest > limit else "neither")
