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
            help="Detector, as tables label it, whose curves and series to include; may be repeated (default: all).",
        ),
    ] = None,
    dataset: CardsOption = None,
    data: DataOption = None,
) -> None:
    """Write a run store as one page that needs no network: tables, curves, recordings, thresholds, manifests."""
    from tsadbench.cli.actions.loading import loader
    from tsadbench.execution.run_store import Store
    from tsadbench.reporting.html.build import write_report
    from tsadbench.studies.reproduction.paper import reference_rows

    load = loader(dataset or [], data)
    file = write_report(Store.open(runs), load, out, labels=detector or (), reference=reference_rows())
    typer.echo(f"{file}: {file.stat().st_size / 1e6:.1f} MB; open it in a browser", err=True)
    typer.echo(file)
