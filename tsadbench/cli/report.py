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
            help="Detector, as tables label it, whose curves and series to include; may be repeated (default: all "
            "of up to 300 trials, else the best of each metric and the best floor).",
        ),
    ] = None,
    best: Annotated[
        int | None,
        typer.Option(
            min=0, help="How many detectors of each metric have curves and series; 0: all.", show_default="2, if many"
        ),
    ] = None,
    stability: Annotated[
        bool,
        typer.Option("--stability", help="Also resample sessions: how firm is each rank? About twice the time."),
    ] = False,
    dataset: CardsOption = None,
    data: DataOption = None,
) -> None:
    """Write a run store as one page that needs no network: tables, curves, recordings, thresholds, manifests.

    Of a store of very many trials it holds the best rows, and curves of the best detectors; the page says which.
    """
    from tsadbench.cli.live import progress_bar
    from tsadbench.datasets.loading import loader
    from tsadbench.execution.store import Store
    from tsadbench.reporting.html.build import write_report

    load = loader(dataset or [], data)
    store = Store.open(runs)

    def tell(line: str) -> None:
        typer.echo(line, err=True)

    with progress_bar("Detectors"):
        file = write_report(
            store,
            load,
            out,
            labels=detector or (),
            best=best,
            tell=tell,
            stability=stability,
        )
    typer.echo(f"{file}: {file.stat().st_size / 1e6:.1f} MB; open it in a browser", err=True)
    typer.echo(file)
