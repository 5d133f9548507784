"""``tsadbench data``: find, fetch, verify and audit data sets; cards for one's own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tsadbench.cli import complete
from tsadbench.cli.output import print_table, wide_console

if TYPE_CHECKING:
    from tsadbench.analysis.audit import Audit

app = typer.Typer(
    help="Find, fetch, verify and audit data sets; write and validate cards for your own.", no_args_is_help=True
)


class AuditFormat(StrEnum):
    """The formats of an audit on standard output."""

    table = "table"
    json = "json"
    markdown = "markdown"


_Name = Annotated[str, typer.Argument(metavar="NAME", help="The data set.", autocompletion=complete.datasets)]
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
def new(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A folder with CSV or Parquet files.")],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The card to write; by default FOLDER/card.toml.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a card that is there.")] = False,
) -> None:
    """Look at a folder of files and write a commented card: what its columns and files seem to be.

    It is a guess: read it, correct it, then validate it. Patterns in it are relative to the card's folder.
    """
    from tsadbench.datasets.cards.draft import draft_card
    from tsadbench.errors import UsageError
    from tsadbench.utils.atomic_files import write_file

    card = folder / "card.toml" if out is None else out
    if card.suffix != ".toml":
        raise UsageError(f"{card}: a card's name must end in .toml")
    if card.parent.resolve() != folder.resolve():
        raise UsageError(f"{card}: a card lies in the folder of its files, here {folder}; it names them from there")
    if card.exists() and not force:
        raise UsageError(f"{card} is there already; look at it, or overwrite it with --force")
    text = draft_card(folder)
    write_file(card, text)
    typer.echo(f"Wrote {card}: a guess from the files. Read it, correct it, then:")
    typer.echo(f"  tsadbench data validate {card}")
    typer.echo(f"  tsadbench run --dataset {card} --detector t2 --detector isolation-forest")


@app.command()
def validate(
    card: Annotated[Path, typer.Argument(metavar="CARD", help="A data set card: a TOML file.")],
) -> None:
    """Read a card and every file that it means, and list all that is wrong; exit code 2 if anything is."""
    from tsadbench.base.dataset import DataOptions
    from tsadbench.datasets.loading import card_loader

    with progress_bar(f"Reading {card}"):
        data, labels = card_loader(card)(DataOptions())
    rows = sum(recording.n_rows for recording in data.test)
    anomalous = sum(int(one.sum()) for one in labels.rows.values())
    typer.echo(f"{data.name}: nothing is wrong")
    typer.echo(f"  sensors   {len(data.sensors)}: {_some(data.sensors)}")
    typer.echo(f"  training  {len(data.train)} recordings, {sum(one.n_rows for one in data.train):,} rows")
    typer.echo(
        f"  test      {len(data.test)} recordings, {rows:,} rows, {anomalous:,} anomalous ({anomalous / rows:.1%})"
    )
    for split, members in data.splits.items():
        typer.echo(f"  split     {split}: {len(members)} recordings")
    typer.echo(f"  prior     {'none' if data.prior is None else f'{len(data.prior.edges)} edges'}")
    for note in data.notes:
        typer.echo(f"  note      {note}")
    typer.echo(f"Next:  tsadbench data audit {card}   or   tsadbench run --dataset {card} --detector t2")


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")


@app.command()
def audit(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME|CARD", help="The data set, or the path of a card.", autocompletion=complete.datasets
        ),
    ] = "skab",
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
    from tsadbench.analysis.audit import audit as audit_data
    from tsadbench.analysis.audit.render import markdown
    from tsadbench.base.dataset import DataOptions
    from tsadbench.datasets.loading import load_dataset

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
        from tsadbench.reporting.figures.audit import draw_audit

        draw_audit(found, figure)
        typer.echo(str(figure), err=True)


def _show_audit(found: Audit) -> None:
    from rich.text import Text

    from tsadbench.analysis.audit.render import MARKS, tables

    console = wide_console()
    styles = {"good": "green", "note": "yellow", "fault": "red"}
    for title, header, rows in tables(found):
        print_table(console, title, header, rows)
    for finding in found.findings:
        console.print(Text(f"{MARKS[finding.grade]} {finding.about}: {finding.sentence}", style=styles[finding.grade]))


@contextmanager
def progress_bar(title: str) -> Iterator[None]:
    """Show what the block reports by `tsadbench.progress` on standard error; nothing where that is no terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from tsadbench.utils.progress import listening

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
