"""``tsadbench doctor``: what is here, what is missing and how to get it, what is broken."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tsadbench.cli.doctor.finding import Finding

_STYLES = {"ok": "green", "missing": "yellow", "broken": "bold red"}


class Format(StrEnum):
    """The formats of the findings on standard output."""

    table = "table"
    json = "json"


def doctor(
    data: Annotated[Path | None, typer.Option(help="Folder that holds the data sets' folders (skab/, ...).")] = None,
    runs: Annotated[Path | None, typer.Option(metavar="RUNS", help="A run store to look at as well.")] = None,
    cluster: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="A Dask cluster to look at as well: tcp://host:port.")
    ] = None,
    form: Annotated[Format, typer.Option("--format", help="Format of standard output.")] = Format.table,
) -> None:
    """Say what is here (versions, extras, plugins, devices, data), what is missing and how to get it, what is broken.

    Exit code 1 if anything is broken; what is only missing does not count. Keys and tokens are never shown.
    """
    from tsadbench.cli.doctor.examine import examine, to_json

    found = examine(directory=data, runs=runs, cluster=cluster)
    findings = list(found if form is Format.json else _shown(found))
    if form is Format.json:
        sys.stdout.write(to_json(findings))
    if any(one.state == "broken" for one in findings):
        raise typer.Exit(1)


def _shown(findings: Iterable[Finding]) -> Iterable[Finding]:
    """Print findings as they come, a line each, and pass them on."""
    from rich.console import Console
    from rich.text import Text

    console = Console(soft_wrap=True)
    section, n_broken = "", 0
    for one in findings:
        if one.section != section:
            section = one.section
            console.print(Text(f"{section}:", style="bold"))
        advice = f"; {one.advice}" if one.advice else ""
        line = Text("  ").append(f"{one.state:<8}", style=_STYLES[one.state])
        console.print(line.append(f"{one.name:<28} {one.text}{advice}"))
        n_broken += one.state == "broken"
        yield one
    console.print(Text(f"{n_broken} broken" if n_broken else "nothing is broken"))
