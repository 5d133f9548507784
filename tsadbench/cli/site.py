"""``tsadbench site``: the committed leaderboards as static pages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def site(
    out: Annotated[Path, typer.Option(help="Folder to write the pages into.")] = Path("site"),
    tables: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder of tables, as `leaderboard --write` writes them.",
            show_default="those that ship",
        ),
    ] = None,
    bank: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder of the score bank, as `bank fetch` and `bank build` write it: curves and series are drawn of "
            "its scores, with labels where the data set is here (docs/site.md).",
        ),
    ] = None,
    documentation: Annotated[
        str,
        typer.Option(
            "--docs", metavar="ADDRESS", help="Where the documentation will lie, from the top of the site: docs/."
        ),
    ] = "",
) -> None:
    """Write the leaderboards as static pages, with one for each detector, data set and protocol.

    No server is needed, and the pages ask no other host for anything. They hold what is committed, and scores of
    the score bank: nothing is run, and nothing is downloaded.
    """
    from tsadbench.cli.live import progress_bar
    from tsadbench.reporting.site.build import write_site
    from tsadbench.utils.files import LEADERBOARDS

    with progress_bar("Pages"):
        made = write_site(tables or LEADERBOARDS, out, documentation=documentation, bank=bank)
    index = made.folder / "index.html"
    typer.echo(f"{len(made.pages)} pages, {made.n_bytes / 1e6:.1f} MB; open {index} in a browser", err=True)
    typer.echo(index)
