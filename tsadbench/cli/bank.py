"""``tsadbench bank``: the scores of trials as small, checked files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tsadbench import api
from tsadbench.cli import options, output

app = typer.Typer(help="Scores of trials as small, checked files, to judge without a fit.", no_args_is_help=True)


@app.command()
def build(
    stores: options.Stores,
    out: Annotated[Path, typer.Option(help="Folder for the files and registry.txt, their checksums.")],
) -> None:
    """Write the scores of each ok trial as a float32 Parquet file, and a registry of SHA-256 sums.

    Exit code 1 if a trial could not be written.
    """
    with api.progress_bar("Writing the bank"):
        left_out = api.build_bank([api.Store.open(store) for store in stores], out)
    output.say(f"left out: {trial}: {why}" for trial, why in left_out.items())
    files = api.counted(len([*out.glob("*.parquet")]), "file")
    typer.echo(f"{out}: {files}, {api.counted(len(left_out), 'trial')} left out")
    if left_out:
        raise typer.Exit(1)


@app.command()
def fetch(
    source: Annotated[str, typer.Argument(help="The bank: a folder, or http(s)://...")],
    out: Annotated[Path, typer.Option(help="Folder for the files. Existing files are not fetched again.")],
) -> None:
    """Fetch a bank and check every file by its SHA-256. `tsadbench judge` takes the folder like a run store."""
    with api.progress_bar("Fetching"):
        n_new = api.fetch_bank(source, out)
    typer.echo(f"{out}: {api.counted(len(api.BankFolder(out).trials()), 'file')}, {n_new} of them new")
