"""Figures of stored trials, written to files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tsadbench.analysis.sensor_graph import offers_sensor_graph, sensor_graph
from tsadbench.errors import UsageError
from tsadbench.leaderboard.selection import Selection
from tsadbench.reporting import figures
from tsadbench.reporting.figures.style import page, style
from tsadbench.results.admission import refusal
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
    named: bool,
) -> None:
    """Draw one kind of figure of the selected trials on an empty page; ``named``: the user has named the detectors."""
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
            figures.graph(sensor_graph(_with_graph(selection, named=named)), figure=page)


def _with_graph(selection: Selection, *, named: bool) -> TrialResult:
    """Return a trial of the best detector that works on a sensor graph; of the best detector if none does.

    Code and files that a store names are used only if the user has named the detector.
    """
    admitted = [row for row in selection.rows if named or not refusal(row.first)]
    if not admitted:
        raise UsageError(
            f"--detector: name one of {', '.join(row.label for row in selection.rows)}, which runs its code"
        )
    best = next((row for row in admitted if offers_sensor_graph(row.first)), admitted[0])
    return selection.only(best).results(one_each=True)[0]
