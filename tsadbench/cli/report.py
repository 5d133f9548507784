"""``tsadbench report``: a run store as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tsadbench.cli.options import CardsOption, DataOption, RunsArgument


def report(
    runs: RunsArgument,
    out: Annotated[Path, typer.Option(help="Folder to write index.html into.")] = Path("report"),
    detector: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LABEL",
            help="Detector, as tables label it, whose curves and recordings to include; may be repeated (default: "
            "the best by AUPRC and the best floor).",
        ),
    ] = None,
    best: Annotated[
        int | None,
        typer.Option(min=0, help="How many detectors have curves and recordings; 0: all.", show_default="12"),
    ] = None,
    dataset: CardsOption = None,
    data: DataOption = None,
) -> None:
    """Write a run store as one page that needs no network: tables, differences, seeds, speed, curves, recordings."""
    from tsadbench.cli.live import progress_bar
    from tsadbench.datasets.loading import loader
    from tsadbench.execution.store import Store
    from tsadbench.reporting.report import write_report

    load, store = loader(dataset or [], data), Store.open(runs)
    with progress_bar("Tables"):
        file = write_report(store, load, out, labels=detector or (), best=best)
    typer.echo(f"{file}: {file.stat().st_size / 1e6:.1f} MB; open it in a browser", err=True)
    typer.echo(file)
