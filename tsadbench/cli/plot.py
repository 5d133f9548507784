"""``tsadbench plot``: draws figures of stored trials for papers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from tsadbench import api
from tsadbench.cli import options, output


def plot(
    kind: Annotated[
        Literal["roc", "precision-recall", "recording", "threshold", "seeds", "speed", "graph"],
        typer.Argument(metavar="KIND", help="One of the kinds below."),
    ],
    runs: options.Runs,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The figure to write: .svg, .png or .pdf.")],
    detector: options.Labels = None,
    split: options.Split = None,
    recording: Annotated[str | None, typer.Option(metavar="ID", help="Test recording (recording, threshold).")] = None,
    metric: Annotated[
        str, typer.Option(metavar="NAME,...", help="Metrics, each with its own panels (seeds, speed).")
    ] = "",
    seed: Annotated[int | None, typer.Option(help="Show this seed only.")] = None,
    dataset: options.Dataset = None,
    protocol: options.Protocol = None,
    data: options.Data = None,
) -> None:
    """Draw a figure of stored trials, for papers; the same store gives the same file.

    - roc, precision-recall: curves on a split, mean and band over seeds, a marker at each threshold

    - recording: one recording's sensors, label, scores, thresholds, flags and stored contributions on one time axis

    - threshold: distribution of scores and threshold, fit of the Peaks-over-Threshold tail, return levels

    - seeds: metrics seed by seed, with the floors

    - speed: a metric against seconds of a fit and rows scored per second, with the Pareto front

    - graph: a detector's prior, the matrix A derived from it, the sensors' weights

    Without --detector: the best five by AUPRC and the best floor; seeds and speed: all; graph needs --detector.
    """
    api.plot(
        kind,
        runs,
        out,
        detectors=detector or (),
        split=split,
        recording=recording,
        metrics=[name.strip() for name in metric.split(",") if name.strip()],
        seed=seed,
        dataset=dataset,
        protocol=protocol,
        data=data,
    )
    output.say([out])
