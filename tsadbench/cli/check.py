"""``tsadbench check``: whether a detector is honest and keeps its promises."""

from __future__ import annotations

import json
from typing import Annotated, Literal

import typer

from tsadbench.cli.options import RequireSealOption, detector_argument, format_option


def check(
    detector: Annotated[str, detector_argument],
    full: Annotated[
        bool, typer.Option("--full/--fast", help="Its own parameters and more rows, or its cheap test parameters.")
    ] = False,
    only: Annotated[
        list[str] | None, typer.Option(help="Id of a check to run; may be repeated (default: all).")
    ] = None,
    require_seal: RequireSealOption = False,
    form: Annotated[Literal["table", "json"], format_option] = "table",
) -> None:
    """Check a detector for leaks and broken promises; exit code 1 if it fails any check."""
    from tsadbench.cli.actions.check import show, to_json
    from tsadbench.execution.plan import refuse_unsealed
    from tsadbench.testing import check_named

    if require_seal:
        refuse_unsealed()
    results = check_named(detector, full=full, only=only or ())
    if form == "json":
        content = {"schema": 1, "detector": detector, "checks": [to_json(result) for result in results]}
        typer.echo(json.dumps(content, indent=1))
    else:
        show(detector, results)
    if not all(result.good for result in results):
        raise typer.Exit(1)
