"""``tsadbench report``: a run store as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    runs: Annotated[Path, typer.Argument(metavar="RUNS", help="Run store that `tsadbench run --out` has written.")],
    out: Annotated[Path, typer.Option(help="Folder to write index.html into.")] = Path("report"),
    detector: Annotated[
        list[str] | None,
        typer.Option(help="Detector whose curves and series the page holds; may be repeated (default: all)."),
    ] = None,
    dataset: Annotated[
        list[str] | None,
        typer.Option(help="Card of your own data set that trials were made with; may be repeated."),
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Folder that holds the data sets' folders (skab/, ...).")] = None,
) -> None:
    """Write a run store as one page that needs no network: tables, curves, recordings, thresholds, manifests."""
    from tsadbench.cli.data_loading import loader
    from tsadbench.execution.run_store import Store
    from tsadbench.reporting.html.build import write_report
    from tsadbench.studies.reproduction.paper import reference_rows

    load = loader(dataset or [], data)
    file = write_report(Store.open(runs), load, out, labels=detector or (), reference=reference_rows())
    typer.echo(f"{file}: {file.stat().st_size / 1e6:.1f} MB; open it in a browser", err=True)
    typer.echo(file)
