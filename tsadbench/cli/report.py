"""``tsadbench report``: a run store as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    runs: Annotated[Path, typer.Argument(metavar="RUNS", help="A run store: what `tsadbench run --out` has written.")],
    out: Annotated[Path, typer.Option(help="Folder to write index.html into.")] = Path("report"),
    detector: Annotated[
        list[str] | None,
        typer.Option(help="Detectors, as tables label them, whose curves and series it holds. Repeat; all."),
    ] = None,
    dataset: Annotated[
        list[str] | None,
        typer.Option(help="Card of a data set of your own that trials were made with. Repeat for several."),
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Folder that holds the data sets' folders (skab/, ...).")] = None,
) -> None:
    """Write a run store as one page that needs no network: tables, curves, every recording, thresholds, manifests."""
    from tsadbench.cli.data_loading import loader
    from tsadbench.execution.run_store import Store
    from tsadbench.reporting.html.build import write_report

    file = write_report(Store.open(runs), loader(dataset or [], data), out, labels=detector or ())
    typer.echo(f"{file}: {file.stat().st_size / 1e6:.1f} MB; open it in a browser", err=True)
    typer.echo(file)
