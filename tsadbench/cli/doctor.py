"""``tsadbench doctor``: what is available, what is missing and how to get it, what is broken."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from tsadbench.cli.options import DataOption, format_option


def doctor(
    data: DataOption = None,
    runs: Annotated[Path | None, typer.Option(metavar="RUNS", help="A run store to examine as well.")] = None,
    cluster: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="A Dask cluster to examine as well: tcp://host:port.")
    ] = None,
    form: Annotated[Literal["table", "json"], format_option] = "table",
) -> None:
    """Report what is available (versions, extras, plugins, devices, data), what is missing and what is broken.

    Every fault comes with what to do about it. Exit code 1 if anything is broken; what is only missing does not count.
    Keys and tokens are never shown.
    """
    from tsadbench.cli.actions.doctor.examine import examine, shown, to_json

    findings = examine(directory=data, runs=runs, cluster=cluster)
    examined = list(findings if form == "json" else shown(findings))
    if form == "json":
        sys.stdout.write(to_json(examined))
    if any(finding.state == "broken" for finding in examined):
        raise typer.Exit(1)
