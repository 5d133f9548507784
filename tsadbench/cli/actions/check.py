"""Results of `tsadbench check` as JSON and as text."""

from __future__ import annotations

from collections import Counter

import typer

from tsadbench.testing import CheckResult

_STATUSES = ("pass", "warn", "fail", "skip", "expected-failure")


def to_json(result: CheckResult) -> dict[str, object]:
    """Return a result as the JSON of ``--format json`` has it."""
    return {
        "id": result.id,
        "group": result.group,
        "sentence": result.sentence,
        "status": result.status,
        "reason": result.reason,
        "evidence": result.evidence,
    }


def show(detector: str, results: list[CheckResult]) -> None:
    """Print results, with reasons and evidence, and how many checks ended in which way."""
    width = max(len(result.id) for result in results)
    for result in results:
        typer.echo(f"{result.status:<16} {result.id:<{width}}  {result.sentence}")
        if result.reason:
            typer.echo(f"{'':<16} {'':<{width}}  {result.status}: {result.reason}")
        for name, value in result.evidence.items():
            typer.echo(f"{'':<16} {'':<{width}}  {name} = {value}")
    counts = Counter[str](result.status for result in results)
    totals = ", ".join(f"{counts[status]} {status}" for status in _STATUSES if counts[status])
    typer.echo(f"\n{detector}: {totals}")
