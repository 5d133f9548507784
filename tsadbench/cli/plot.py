"""``tsadbench plot``: figures of stored trials, for papers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeAlias, get_args

import typer

from tsadbench.cli.options import (
    DataOption,
    RunsArgument,
    StoredDatasetOption,
    StoredProtocolOption,
)
from tsadbench.errors import UsageError

Kind: TypeAlias = Literal["roc", "precision-recall", "recording", "densities", "threshold", "seeds", "speed", "graph"]


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

    - densities: scores of training, normal and anomalous rows, with the threshold

    - threshold: how well the Peaks-over-Threshold tail fits: excesses, quantiles, return levels

    - seeds: metrics seed by seed, beside the floors

    - speed: a metric against seconds of a fit and rows scored per second, with what nothing else beats in both

    - graph: a detector's prior, the matrix A that it derives from it, the sensors' weights
    """
    from tsadbench.cli.actions.figures import draw, write_figure
    from tsadbench.leaderboard.selection import select

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
    write_figure(out, lambda page: draw(kind, selection, recording, metrics, page, named=bool(detector)))
    for line in selection.left_out:
        typer.echo(f"left out: {line}", err=True)
