"""``tsadbench data``: find, fetch, verify and audit data sets."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from tsadbench.audit import Audit

app = typer.Typer(help="Find, fetch, verify and audit data sets.", no_args_is_help=True)


class AuditFormat(StrEnum):
    """The formats of an audit on standard output."""

    table = "table"
    json = "json"
    markdown = "markdown"


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


@app.command()
def audit(
    name: _Name = "skab",
    data: _Directory = None,
    form: Annotated[AuditFormat, typer.Option("--format", help="Format of standard output.")] = AuditFormat.table,
    figure: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a figure as well: .svg, .png or .pdf.")
    ] = None,
) -> None:
    """Look at a data set, labels included: what makes every table over it worth less than it seems.

    Shared and repeated rows, gaps, shift between training and test, and how well a row's place, time alone and
    one-liners predict the label; a verdict for each.
    """
    from tsadbench.audit import audit as audit_data
    from tsadbench.audit.render import draw, markdown
    from tsadbench.dataset import DataOptions
    from tsadbench.registry import load_dataset

    with progress_bar(f"Reading {name}"):
        loaded = load_dataset(name)(DataOptions(directory=data))
    found = audit_data(loaded)
    if form is AuditFormat.json:
        typer.echo(found.to_json(), nl=False)
    elif form is AuditFormat.markdown:
        typer.echo(markdown(found), nl=False)
    else:
        _show_audit(found)
    if figure is not None:
        draw(found, figure)
        typer.echo(str(figure), err=True)


def _show_audit(found: Audit) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from tsadbench.audit.render import MARKS, tables

    console = Console() if sys.stdout.isatty() else Console(width=200)
    styles = {"good": "green", "note": "yellow", "fault": "red"}
    for title, header, rows in tables(found):
        if not rows:
            continue
        table = Table(*header, title=title, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
        for row in rows:
            table.add_row(*map(Text, row))
        console.print(table)
    for finding in found.findings:
        console.print(Text(f"{MARKS[finding.grade]} {finding.about}: {finding.sentence}", style=styles[finding.grade]))


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
