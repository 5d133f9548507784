"""``tsadbench check``: whether a detector is honest and keeps its promises."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from tsadbench.cli.options import RequireSealOption, detector_argument, format_option
from tsadbench.errors import UsageError


def check(
    detector: Annotated[str, detector_argument],
    full: Annotated[
        bool, typer.Option("--full/--fast", help="Its own parameters and more rows, or its cheap test parameters.")
    ] = False,
    only: Annotated[
        list[str] | None, typer.Option(help="Id of a check to run; may be repeated (default: all).")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="RUNS", help="Run store that keeps the report: tables of its rows say that it is there."),
    ] = None,
    require_seal: RequireSealOption = False,
    form: Annotated[Literal["table", "json"], format_option] = "table",
) -> None:
    """Check a detector for leaks and broken promises; exit code 1 if it fails any check."""
    from tsadbench.cli.actions.check import keep_report, show, to_json
    from tsadbench.execution.plan import refuse_unsealed
    from tsadbench.execution.run_store import Store
    from tsadbench.testing import check_named

    if require_seal:
        refuse_unsealed()
    if out is not None and only:
        raise UsageError("--out keeps the report of all checks: leave --only out")
    store = None if out is None else Store.create(out)
    results = check_named(detector, full=full, only=only or ())
    if form == "json":
        content = {"schema": 1, "detector": detector, "checks": to_json(results)}
        typer.echo(json.dumps(content, indent=1))
    else:
        show(detector, results)
    if store is not None:
        typer.echo(keep_report(detector, results, store, full=full), err=True)
    if not all(result.good for result in results):
        raise typer.Exit(1)
