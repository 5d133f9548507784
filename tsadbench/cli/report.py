"""``tsadbench report``: a run store as one HTML page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from tsadbench.cli.options import AliasOption, CardsOption, DataOption, RunsArgument, TrustCodeOption


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
    alias: AliasOption = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--columns",
            metavar="NAME,...",
            help="Columns of the leaderboard that the page shows at first, in this order; readers can show the others.",
            show_default="most",
        ),
    ] = None,
    order: Annotated[
        Literal["auprc", "label", "given"] | None,
        typer.Option(
            help="Order of rows and figures at first: as ranked, by the shown name, or those of --detector first, as "
            "they are named. Floors follow the detectors.",
            show_default="auprc",
        ),
    ] = None,
    dataset: CardsOption = None,
    data: DataOption = None,
    trust_code: TrustCodeOption = False,
) -> None:
    """Write a run store as one page that needs no network: tables, curves, recordings, thresholds, manifests.

    Of a store of very many trials it holds the best rows, and curves of the best detectors; the page says which.
    """
    from tsadbench.cli.live import progress_bar
    from tsadbench.datasets.by_name import loader
    from tsadbench.errors import UsageError
    from tsadbench.execution.run_store import Store
    from tsadbench.leaderboard.presentation import Presentation
    from tsadbench.reporting.html.build import write_report

    if order == "given" and not detector:
        raise UsageError("--order given is the order of --detector: name the detectors, or choose auprc or label")
    presentation = replace(Presentation.from_options(alias, columns), order=order)
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
            trust_code=trust_code,
            stability=stability,
            presentation=presentation,
        )
    typer.echo(f"{file}: {file.stat().st_size / 1e6:.1f} MB; open it in a browser", err=True)
    typer.echo(file)
