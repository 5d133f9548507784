"""``tsadbench plot``: figures of stored trials, for papers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tsadbench.leaderboard.selection import Selection
    from tsadbench.results.trial_result import TrialResult

RunStore: TypeAlias = Annotated[
    Path, typer.Argument(metavar="RUNS", help="A run store: what `tsadbench run --out` has written.")
]
DatasetOption: TypeAlias = Annotated[
    str | None, typer.Option("--dataset", help="Data set, or its card; needed where the store holds several.")
]
ProtocolOption: TypeAlias = Annotated[
    str | None, typer.Option("--protocol", help="Protocol; needed where the store holds several.")
]
DataOption: TypeAlias = Annotated[
    Path | None, typer.Option("--data", help="Folder that holds the data sets' folders (skab/, ...).")
]


class Kind(StrEnum):
    """The kinds of figures."""

    roc = "roc"
    precision_recall = "precision-recall"
    recording = "recording"
    densities = "densities"
    threshold = "threshold"
    seeds = "seeds"
    graph = "graph"


def plot(
    kind: Annotated[Kind, typer.Argument(metavar="KIND", help=f"{', '.join(Kind)}.")],
    runs: RunStore,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The figure to write: .svg, .png or .pdf.")],
    detector: Annotated[
        list[str] | None,
        typer.Option(
            "--detector",
            "-d",
            metavar="LABEL",
            help="Labels, as `leaderboard` shows them. Repeat for several; the best five by AUPRC and the best floor "
            "(seeds: all; graph: the best that has one).",
        ),
    ] = None,
    split: Annotated[str | None, typer.Option(help="Rows to show, and to rank by: overall, valve1, ...")] = None,
    recording: Annotated[
        str | None, typer.Option(metavar="ID", help="Test recording: kind recording; threshold, where each has a fit.")
    ] = None,
    metric: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Kind seeds: auroc, auprc, prac_f1, ... Repeat.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="The one seed to show; roc, precision-recall, seeds: all; else the lowest.")
    ] = None,
    dataset: DatasetOption = None,
    protocol: ProtocolOption = None,
    data: DataOption = None,
) -> None:
    """Draw a figure of stored trials, for papers; the same store gives the same file.

    - roc, precision-recall: curves on a split, mean and band over seeds, a marker where each threshold works

    - recording: one recording's sensors, label, scores, thresholds, flags and kept contributions on one time axis

    - densities: scores of training, normal and anomalous rows with the threshold in them

    - threshold: does the tail fit that Peaks-over-Threshold fitted: excesses, quantiles, return levels

    - seeds: metrics seed by seed, beside the floors

    - graph: a detector's prior, the matrix A that it makes of it, the sensors' weights
    """
    from tsadbench.leaderboard.selection import select

    _check(kind, recording, metric)
    chosen = select(
        runs,
        dataset=dataset,
        protocol=protocol,
        detectors=detector or (),
        split=split,
        seed=seed,
        data=data,
        everything=kind in (Kind.seeds, Kind.graph),
    )
    write_figure(out, lambda page: _draw(kind, chosen, recording, metric or [], page))
    for line in chosen.left_out:
        print(f"left out: {line}", file=sys.stderr)


def write_figure(file: Path, draw: Callable[[Figure], object]) -> None:
    """Write a figure in the project's style; the file's ending is looked at before anything is drawn."""
    from tsadbench.reporting.figures.style import check_ending, new_page, save, style

    check_ending(file)
    with style():
        page = new_page()
        draw(page)
        save(page, file)
    print(file, file=sys.stderr)


def _check(kind: Kind, recording: str | None, metric: list[str] | None) -> None:
    from tsadbench.errors import UsageError

    if kind is Kind.recording and recording is None:
        raise UsageError("kind recording: say which one by --recording ID")
    if recording is not None and kind not in (Kind.recording, Kind.threshold):
        raise UsageError(f"--recording is for the kinds recording and threshold, found kind {kind}; leave it out")
    if metric and kind is not Kind.seeds:
        raise UsageError(f"--metric is for the kind seeds, found kind {kind}; leave it out")


def _draw(kind: Kind, chosen: Selection, recording: str | None, metrics: list[str], page: Figure) -> None:
    from tsadbench.analysis.sensor_graph import sensor_graph
    from tsadbench.reporting import figures

    match kind:
        case Kind.roc:
            figures.roc(chosen.results(), chosen.split, axes=_axes(page))
        case Kind.precision_recall:
            figures.precision_recall(chosen.results(), chosen.split, axes=_axes(page))
        case Kind.recording:
            figures.recording(chosen.results(one_each=True), recording or "", figure=page)
        case Kind.densities:
            figures.densities(chosen.results(one_each=True), chosen.split, figure=page)
        case Kind.threshold:
            figures.threshold(chosen.results(one_each=True), recording, figure=page)
        case Kind.seeds:
            figures.seeds(chosen.rows, metrics, figure=page)
        case Kind.graph:
            figures.graph(sensor_graph(_with_graph(chosen)), figure=page)


def _axes(page: Figure) -> Axes:
    page.set_size_inches(6.2, 3.9)
    return page.add_subplot()


def _with_graph(chosen: Selection) -> TrialResult:
    """Return the trial of the best detector that says on which graph it works; the best one where none does."""
    from tsadbench.analysis.sensor_graph import offers_sensor_graph

    best = next((row for row in chosen.rows if offers_sensor_graph(row.first.detector)), chosen.rows[0])
    return chosen.only(best).results(one_each=True)[0]
