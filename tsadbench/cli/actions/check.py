"""Results of `tsadbench check` as JSON and as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import typer

from tsadbench.execution.check_reports import CheckReport, keep
from tsadbench.execution.checking import filled, subject_of
from tsadbench.execution.run_store import Store
from tsadbench.testing import CheckResult

_STATUSES = ("pass", "warn", "fail", "skip", "expected-failure", "not-applicable", "not-run")


def to_json(results: Sequence[CheckResult]) -> list[dict[str, object]]:
    """Return results as the JSON of ``--format json`` has them; one of an earlier one's cause has ``same_cause_as``."""
    known = causes(results)
    return [
        {**_to_json(result), **({"same_cause_as": known[result.id]} if result.id in known else {})}
        for result in results
    ]


def _to_json(result: CheckResult) -> dict[str, object]:
    return {
        "id": result.id,
        "group": result.group,
        "sentence": result.sentence,
        "status": result.status,
        "reason": result.reason,
        "evidence": result.evidence,
    }


def causes(results: Sequence[CheckResult]) -> dict[str, str]:
    """Return the checks that fail like an earlier one, of the same error in the same line, each with that one."""
    first: dict[tuple[str, object], str] = {}
    failed = (result for result in results if result.status == "fail" and "raised_in" in result.evidence)
    same = {result.id: first.setdefault((result.reason, result.evidence["raised_in"]), result.id) for result in failed}
    return {check: earlier for check, earlier in same.items() if check != earlier}


def show(detector: str, results: Sequence[CheckResult]) -> None:
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


def keep_report(detector: str, results: Sequence[CheckResult], store: Store, *, full: bool) -> str:
    """Write the report of all checks into a store, and return where it is."""
    report = filled(subject_of(detector, full=full), results)
    keep(report, store.path)
    return f"the report is kept; show it:  tsadbench runs show {store.path} {report.identity[:8]}"


def report_lines(reports: Sequence[CheckReport]) -> list[str]:
    """Return a line a report: its name, its label, how many checks passed, and which failed."""
    width = max((len(report.label) for report in reports), default=0)
    return [
        f"{report.identity}  {report.label:<{width}}  {report.day}  "
        f"{'failed: ' + ', '.join(report.failed) if report.failed else 'passed'}{' (--full)' if report.full else ''}"
        for report in reports
    ]
