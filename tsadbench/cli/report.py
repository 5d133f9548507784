"""``tsadbench report``: writes a run store as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tsadbench import api
from tsadbench.cli import options, output


def report(
    runs: options.Runs,
    out: Annotated[Path, typer.Option(help="Folder to write index.html into.")] = Path("report"),
    detector: options.Labels = None,
    best: Annotated[
        int | None, typer.Option(min=0, help="Detectors with curves and recordings; 0: all.", show_default="12")
    ] = None,
    dataset: options.Datasets = None,
    data: options.Data = None,
) -> None:
    """Write a run store as one offline page: tables, differences, seeds, speed, curves, recordings.

    Curves and recordings cover the named detectors, or the best by AUPRC and the best floor.
    """
    with api.progress_bar("Tables"):
        board = api.load_board(runs, dataset=dataset or (), data=data)
        file = board.report(out, detectors=detector or (), best=best)
    output.say([f"{file}: {file.stat().st_size / 1e6:.1f} MB; open it in a browser"])
    typer.echo(file)
