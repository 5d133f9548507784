"""``tsadbench check``: checks a detector for leaks and broken promises."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from tsadbench import api
from tsadbench.cli import options, output

_RUNS = Path("runs")  # where `tsadbench run` keeps trials by default


def check(
    detector: options.DetectorArgument,
    full: Annotated[
        bool, typer.Option("--full/--fast", help="Use its own parameters and more rows, not its cheap test parameters.")
    ] = False,
    only: Annotated[list[str] | None, typer.Option(help="Id of a check; repeatable.", show_default="all")] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="RUNS",
            help="Run store for the report, so that tables no longer say `not checked`.",
            show_default="runs, if it is one",
        ),
    ] = None,
    require_seal: options.RequireSeal = None,
    form: options.TableForm = "table",
) -> None:
    """Check a detector for leaks and broken promises; exit code 1 if it fails any check."""
    place = out or (_RUNS if (_RUNS / "store.json").is_file() and not only else None)
    results = api.check(detector, full=full, only=only or (), require_seal=bool(require_seal), out=place)
    if form == "json":
        names = ("id", "group", "sentence", "status", "reason", "evidence")
        checks = [{name: getattr(one, name) for name in names} for one in results]
        output.show_json({"schema": 1, "detector": detector, "checks": checks})
    else:
        _show(detector, results)
    if place is not None:
        output.say([f"the report is kept; show it:  tsadbench runs show {place}"])
    elif not only:
        output.say([f"the report is not kept: {_RUNS} is no run store; name one with --out"])
    if not all(result.good for result in results):
        raise typer.Exit(1)


def _show(detector: str, results: Sequence[api.CheckResult]) -> None:
    """Print results with reasons and evidence, and the number of checks by result."""
    ran = [result for result in results if result.status != "not-run"]
    width = max(len(result.id) for result in ran)
    for result in ran:
        lines = [f"{result.status}: {result.reason}"] if result.reason else []
        lines += [f"{name} = {value}" for name, value in result.evidence.items()]
        typer.echo(f"{result.status:<16} {result.id:<{width}}  {result.sentence}")
        for line in lines:
            typer.echo(f"{'':<{17 + width}}  {line}")
    if len(ran) < len(results):
        typer.echo(f"{'not-run':<16} the other {len(results) - len(ran)} checks: they need a detector that works")
    counts = Counter[str](result.status for result in results)
    typer.echo(f"\n{detector}: {', '.join(f'{n} {status}' for status, n in counts.items())}")
