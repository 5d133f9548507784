"""``tsadbench check``: whether a detector is honest and keeps its promises."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tsadbench.cli.options import RequireSealOption, detector_argument, format_option
from tsadbench.errors import UsageError

if TYPE_CHECKING:
    from tsadbench.leaderboard.checks import CheckReport
    from tsadbench.testing import CheckResult

_RUNS = Path("runs")  # where `tsadbench run` keeps trials by default
_STATUSES = ("pass", "warn", "fail", "skip", "expected-failure", "not-applicable", "not-run")


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
        typer.Option(
            metavar="RUNS",
            help="Run store that keeps the report, so that its tables no longer say `not checked`.",
            show_default="runs, if it is there",
        ),
    ] = None,
    require_seal: RequireSealOption = False,
    form: Annotated[Literal["table", "json"], format_option] = "table",
) -> None:
    """Check a detector for leaks and broken promises; exit code 1 if it fails any check."""
    from tsadbench.execution.plan import refuse_unsealed
    from tsadbench.execution.store import Store
    from tsadbench.leaderboard.checks import keep, report_of
    from tsadbench.testing import check_detector

    if require_seal:
        refuse_unsealed()
    if out is not None and only:
        raise UsageError("--out keeps the report of all checks: leave --only out")
    place = out or (_RUNS if _RUNS.is_dir() and not only else None)
    store = None if place is None else Store.create(place)
    results = check_detector(detector, full=full, only=only or (), on_fail=None)
    if form == "json":
        content = {"schema": 1, "detector": detector, "checks": _to_json(results)}
        typer.echo(json.dumps(content, indent=1))
    else:
        _show(detector, results)
    if store is not None:
        report = report_of(detector, results, full=full)
        keep(report, store.path)
        show = f"tsadbench runs show {store.path} {report.identity[:8]}"
        typer.echo(f"the report is kept; show it:  {show}", err=True)
    if not all(result.good for result in results):
        raise typer.Exit(1)


def _to_json(results: Sequence[CheckResult]) -> list[dict[str, object]]:
    """Return check results as JSON. Results with the same cause name it in `same_cause_as`."""
    known = causes(results)
    names = ("id", "group", "sentence", "status", "reason", "evidence")
    return [
        {name: getattr(result, name) for name in names}
        | ({"same_cause_as": known[result.id]} if result.id in known else {})
        for result in results
    ]


def causes(results: Sequence[CheckResult]) -> dict[str, str]:
    """Return the checks that fail like an earlier one, of the same error in the same line, each with that one."""
    first: dict[tuple[str, object], str] = {}
    failed = (result for result in results if result.status == "fail" and "raised_in" in result.evidence)
    same = {result.id: first.setdefault((result.reason, result.evidence["raised_in"]), result.id) for result in failed}
    return {check: earlier for check, earlier in same.items() if check != earlier}


def _show(detector: str, results: Sequence[CheckResult]) -> None:
    """Print results, with reasons and evidence, and how many checks ended in which way; a common cause once."""
    ran = [result for result in results if result.status != "not-run"]
    width = max(len(result.id) for result in ran)
    known = causes(ran)
    for result in ran:
        typer.echo(f"{result.status:<16} {result.id:<{width}}  {result.sentence}")
        if result.id in known:
            typer.echo(f"{'':<16} {'':<{width}}  fail: of the same cause as {known[result.id]}")
            continue
        if result.reason:
            typer.echo(f"{'':<16} {'':<{width}}  {result.status}: {result.reason}")
        for name, value in result.evidence.items():
            typer.echo(f"{'':<16} {'':<{width}}  {name} = {value}")
    if len(ran) < len(results):
        typer.echo(f"{'not-run':<16} the other {len(results) - len(ran)} checks: they need a detector that works")
    counts = Counter[str](result.status for result in results)
    totals = ", ".join(f"{counts[status]} {status}" for status in _STATUSES if counts[status])
    typer.echo(f"\n{detector}: {totals}")


def report_lines(reports: Sequence[CheckReport]) -> list[str]:
    """Return a line a report: its name, its label, how many checks passed, and which failed."""
    width = max((len(report.label) for report in reports), default=0)
    return [
        f"{report.identity}  {report.label:<{width}}  {report.day}  "
        f"{'failed: ' + ', '.join(report.failed) if report.failed else 'passed'}{' (--full)' if report.full else ''}"
        for report in reports
    ]
