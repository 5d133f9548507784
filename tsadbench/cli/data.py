"""``tsadbench data``: find, fetch and verify the files of the data sets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Find, fetch and verify the files of the data sets.", no_args_is_help=True)

_Name = Annotated[str, typer.Argument(metavar="NAME", help="The data set.")]
_Directory = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DIR",
        help="The folder that holds a folder for each data set; by default TSADBENCH_DATA, else the cache.",
    ),
]


@app.command()
def fetch(name: _Name = "skab", data: _Directory = None) -> None:
    """Download the files that are missing, or differ from the published ones, and check every one.

    An interrupted download goes on where it stopped. Files that differ are replaced.
    """
    from tsadbench.datasets.download import download
    from tsadbench.datasets.location import place
    from tsadbench.datasets.source import Source

    source = Source.load(name)
    folder = place(source, data)
    with progress_bar(f"Fetching {name}"):
        fetched = download(source, folder)
    typer.echo(f"{name}: {len(source.sha256)} files as published in {folder} ({len(fetched)} downloaded)")


@app.command()
def verify(name: _Name = "skab", data: _Directory = None) -> None:
    """Compare every file with the published one (SHA-256); exit code 1 if any is missing or differs."""
    from tsadbench.datasets.location import find
    from tsadbench.datasets.source import Source

    source = Source.load(name)
    folder = find(source, data)
    states = {file: source.state(folder, file) for file in source.sha256}
    wrong = {file: state for file, state in states.items() if state != "as published"}
    for file, state in wrong.items():
        typer.echo(f"{state}: {folder / file}")
    typer.echo(f"{name}: {len(states) - len(wrong)} of {len(states)} files as published in {folder}")
    if wrong:
        typer.echo(f"To put the published ones there:  tsadbench data fetch {name} --data {folder.parent}", err=True)
        raise typer.Exit(1)


@app.command()
def path(name: _Name = "skab", data: _Directory = None) -> None:
    """Print the folder in which the data set's files are."""
    from tsadbench.datasets.location import find
    from tsadbench.datasets.source import Source

    typer.echo(find(Source.load(name), data))


@contextmanager
def progress_bar(title: str) -> Iterator[None]:
    """Show what the block reports by `tsadbench.progress` on standard error; nothing where that is no terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from tsadbench.progress import listening

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[note]}", markup=False),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(title, note="")
        with listening(lambda done, total, note: bar.update(task, completed=done, total=total, note=note)):
            yield
