"""Draws the audit of a data set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tsadbench.reporting.figures.style import BLUE, GRID, INK, VERMILLION, page, plain, style
from tsadbench.utils.arrays import mask_runs

# Limit of the colour scale in standard deviations, so that an outlier does not make all other sensors white.
_FAR = 10.0

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd
    from matplotlib.axes import Axes

    from tsadbench.analysis.audit import Audit
    from tsadbench.base.dataset import LabelledDataset


def draw_audit(data: LabelledDataset, audit: Audit, file: Path) -> None:
    """Write a figure of an audit: the events of each test recording, their predictors, and the shift of sensors.

    Raises a UsageError if the ending is unknown, or the file cannot be written.
    """
    test, rows = data.dataset.test, data.labels.rows
    recordings = {one.id: (one.n_rows, mask_runs(rows[one.id]) if one.id in rows else []) for one in test}
    frames = {one.about: [table.frame for table in one.tables] for one in audit.findings}
    with style(), page(file, 11, max(4.0, 0.16 * len(test) + 1.5), salt=audit.dataset) as figure:
        anomalies, predictors, shifts = figure.subplots(1, 3, width_ratios=(2, 1, 1.4))
        events(recordings, anomalies)
        if ranked := frames.get("position"):
            predictions(ranked[0], ranked[1] if len(ranked) > 1 else None, predictors)
        sensor_shifts(next(iter(frames.get("shift", ())), None), shifts)
        figure.suptitle(f"Audit of {plain(audit.dataset)}")


def events(recordings: Mapping[str, tuple[int, Sequence[tuple[int, int]]]], ax: Axes) -> Axes:
    """Draw each recording as a bar of its rows with its events [start, stop)."""
    for place, (n_rows, of_recording) in enumerate(recordings.values()):
        ax.barh(place, n_rows, color=GRID, height=0.8)
        spans = [(start, stop - start) for start, stop in of_recording]
        # Edges keep short events visible.
        ax.broken_barh(spans, (place - 0.4, 0.8), facecolors=VERMILLION, edgecolors=VERMILLION, linewidths=0.6)
    ax.set_yticks(range(len(recordings)), [plain(name) for name in recordings], fontsize=6)
    ax.invert_yaxis()
    ax.set_title("Test recordings and their events")
    ax.set_xlabel("row")
    return ax


def predictions(ranked: pd.DataFrame, of_entities: pd.DataFrame | None, ax: Axes) -> Axes:
    """Draw the AUROC of trivial predictors as bars, and of each entity as dots."""
    known = ranked.dropna(subset="AUROC")
    ax.barh(list(known["predictor"]), list(known["AUROC"]), color=BLUE)
    for name in known["predictor"]:
        of_each = [] if of_entities is None else of_entities[name].dropna()
        ax.plot(of_each, [name] * len(of_each), "o", color=INK, markersize=2.5)
    ax.axvline(0.5, color=INK, linewidth=0.8)
    ax.invert_yaxis()
    ax.set_xlim(0, 1)
    ax.set_title("AUROC of what knows\nnothing of faults")
    return ax


def sensor_shifts(shifts: pd.DataFrame | None, ax: Axes) -> Axes:
    """Draw the median z-score of normal test rows by sensor and place; columns of shifts: sensor, where, z."""
    if shifts is None:
        ax.set_axis_off()
        return ax
    z = shifts.sort_index().set_index(["sensor", "where"])["z"].unstack(sort=False).fillna(0.0)
    values = z.to_numpy(dtype=np.float64)
    furthest = float(np.abs(values).max()) or 1.0
    limit = min(furthest, _FAR)
    image = ax.imshow(values, cmap="PuOr", vmin=-limit, vmax=limit, aspect="auto")
    ax.set_xticks(range(z.shape[1]), [plain(str(name)) for name in z.columns], rotation=90, fontsize=6)
    ax.set_yticks(range(len(z)), [plain(str(name)) for name in z.index], fontsize=6)
    ax.set_title("Median z-score of\nnormal test rows")
    ax.figure.colorbar(image, ax=ax, extend="both" if furthest > limit else "neither")
    return ax
