"""Figures of stored trials, written to files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tsadbench.analysis.sensor_graph import offers_sensor_graph, sensor_graph
from tsadbench.leaderboard.selection import Selection
from tsadbench.reporting import figures
from tsadbench.reporting.figures.style import page, style
from tsadbench.results.trial_result import TrialResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def write_figure(file: Path, draw: Callable[[Figure], object]) -> None:
    """Write a figure in the project's style and print its path; the file's ending is checked before any drawing."""
    with style(), page(file) as figure:
        draw(figure)
    typer.echo(file, err=True)


def draw(
    kind: str,
    selection: Selection,
    recording: str | None,
    metrics: Sequence[str],
    page: Figure,
    *,
    trust_code: bool = False,
) -> None:
    """Draw one kind of figure of the selected trials on an empty page."""
    match kind:
        case "roc" | "precision-recall":
            page.set_size_inches(6.2, 3.9)
            curves = figures.roc if kind == "roc" else figures.precision_recall
            curves(selection.results(), selection.split, axes=page.add_subplot())
        case "recording":
            figures.recording(selection.results(one_each=True), recording or "", figure=page)
        case "densities":
            figures.densities(selection.results(one_each=True), selection.split, figure=page)
        case "threshold":
            figures.threshold(selection.results(one_each=True), recording, figure=page)
        case "seeds":
            figures.seeds(selection.rows, metrics, figure=page)
        case "speed":
            figures.speed(selection.rows, metrics, figure=page)
        case "graph":
            result = _with_graph(selection, trust_code)
            figures.graph(sensor_graph(result, trust_code=trust_code), figure=page)


def _with_graph(selection: Selection, trust_code: bool) -> TrialResult:
    """Return a trial of the best detector that works on a sensor graph; of the best detector if none does."""
    with_graph = (row for row in selection.rows if offers_sensor_graph(row.first, trust_code=trust_code))
    best = next(with_graph, selection.rows[0])
    return selection.only(best).results(one_each=True)[0]
