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
    documentation: Annotated[
        str,
        typer.Option(
            "--docs", metavar="ADDRESS", help="Where the documentation will lie, from the top of the site: docs/."
        ),
    ] = "",
) -> None:
    """Write the leaderboards as static pages, with one for each detector, data set and protocol.

    No server is needed, and the pages ask no other host for anything. They hold what is committed: nothing is run.
    """
    from tsadbench.cli.live import progress_bar
    from tsadbench.reporting.site.build import write_site
    from tsadbench.utils.shipped_tables import LEADERBOARDS

    with progress_bar("Pages"):
        made = write_site(tables or LEADERBOARDS, out, documentation=documentation)
    index = made.folder / "index.html"
    typer.echo(f"{len(made.pages)} pages, {made.n_bytes / 1e6:.1f} MB; open {index} in a browser", err=True)
    typer.echo(index)
