"""``tsadbench plot``: figures of stored trials, for papers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias, get_args

import typer

from tsadbench.cli.options import (
    DataOption,
    RunsArgument,
    StoredDatasetOption,
    StoredProtocolOption,
)
from tsadbench.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tsadbench.analysis.stored import Stored
    from tsadbench.results.trial_result import TrialResult

Kind: TypeAlias = Literal["roc", "precision-recall", "recording", "threshold", "seeds", "speed", "graph"]


def plot(
    kind: Annotated[Kind, typer.Argument(metavar="KIND", help=f"{', '.join(get_args(Kind))}.")],
    runs: RunsArgument,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The figure to write: .svg, .png or .pdf.")],
    detector: Annotated[
        list[str] | None,
        typer.Option(
            "--detector",
            "-d",
            metavar="LABEL",
            help="Detector, as `leaderboard` labels it; may be repeated (default: the best five by AUPRC and the best "
            "floor; seeds: all; graph: the best that has one).",
        ),
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="Split to show, and to rank detectors by, for instance overall.")
    ] = None,
    recording: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Test recording, for kind recording; also for threshold, if each has a fit."),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            metavar="NAME,...",
            help="Metrics, for kinds seeds and speed: auroc, auprc, ...; each has panels of its own; may be repeated.",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            help="Show this seed only (default: all for roc, precision-recall and seeds; otherwise the lowest)."
        ),
    ] = None,
    dataset: StoredDatasetOption = None,
    protocol: StoredProtocolOption = None,
    data: DataOption = None,
) -> None:
    """Draw a figure of stored trials, for papers; the same store gives the same file.

    - roc, precision-recall: curves on a split, mean and band over seeds, a marker at each threshold

    - recording: one recording's sensors, label, scores, thresholds, flags and stored contributions on one time axis

    - threshold: where scores lie beside the threshold, how well the Peaks-over-Threshold tail fits, return levels

    - seeds: metrics seed by seed, beside the floors

    - speed: a metric against seconds of a fit and rows scored per second, with what nothing else beats in both

    - graph: a detector's prior, the matrix A that it derives from it, the sensors' weights
    """
    from tsadbench.analysis.stored import select

    if kind == "recording" and recording is None:
        raise UsageError("kind recording draws one recording: name it with --recording ID")
    if recording is not None and kind not in ("recording", "threshold"):
        raise UsageError(f"--recording is for the kinds recording and threshold, found kind {kind}; omit it")
    if metric and kind not in ("seeds", "speed"):
        raise UsageError(f"--metric is for the kinds seeds and speed, found kind {kind}; omit it")
    metrics = [part.strip() for text in metric or () for part in text.split(",")]
    selection = select(
        runs,
        dataset=dataset,
        protocol=protocol,
        detectors=detector or (),
        split=split,
        seed=seed,
        data=data,
        everything=kind in ("seeds", "speed", "graph"),
    )
    write_figure(out, lambda page: _draw(kind, selection, recording, metrics, page, named=bool(detector)))
    for row, reason in selection.left_out.items():
        typer.echo(f"left out: {row}: {reason}", err=True)


def write_figure(file: Path, draw: Callable[[Figure], object]) -> None:
    """Write a figure in the project's style and print its path; the file's ending is checked before any drawing."""
    from tsadbench.reporting.figures.style import page, style

    with style(), page(file) as figure:
        draw(figure)
    typer.echo(file, err=True)


def _draw(
    kind: str,
    selection: Stored,
    recording: str | None,
    metrics: Sequence[str],
    page: Figure,
    *,
    named: bool,
) -> None:
    """Draw one kind of figure of the selected trials on an empty page; ``named``: the user has named the detectors."""
    from tsadbench.analysis.sensor_graph import sensor_graph
    from tsadbench.reporting import figures

    split = selection.split
    match kind:
        case "roc" | "precision-recall":
            page.set_size_inches(6.2, 3.9)
            curves = figures.roc if kind == "roc" else figures.precision_recall
            curves(selection.results(), page.add_subplot(), split)
        case "recording":
            figures.recording(selection.results(one_each=True), recording or "", page)
        case "threshold":
            figures.threshold(selection.results(one_each=True), page, split, recording)
        case "seeds" | "speed":
            from tsadbench.leaderboard.board import Leaderboard

            records = [record for of_row in selection.rows["records"] for record in of_row]
            trials = figures.trial_frame(Leaderboard.from_records(records, [split]))
            figures.draw_trials("seeds" if kind == "seeds" else "speed", trials, metrics, page)
            first = records[0]
            page.suptitle(f"{first.dataset} · {split} · protocol {first.rules}", x=0.01, ha="left", parse_math=False)
        case "graph":
            figures.graph(sensor_graph(_with_graph(selection, named=named)), page)


def _with_graph(selection: Stored, *, named: bool) -> TrialResult:
    """Return a trial of the best detector that works on a sensor graph; of the best detector if none does.

    Code and files that a store names are used only if the user has named the detector.
    """
    from tsadbench.analysis.sensor_graph import offers_sensor_graph
    from tsadbench.results.admission import refusal

    first = [records[0] for records in selection.rows["records"]]
    admitted = [record for record in first if named or not refusal(record)]
    if not admitted:
        raise UsageError(f"--detector: name one of {', '.join(selection.rows['detector'])}, which runs its code")
    best = next(filter(offers_sensor_graph, admitted), admitted[0])
    return selection.only(best.label).results(one_each=True)[0]
