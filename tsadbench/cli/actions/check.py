"""The detector that `tsadbench check` examines, and its results as text."""

from __future__ import annotations

from collections import Counter

import typer

from tsadbench.registry import load_detector
from tsadbench.testing import CheckResult, synthetic
from tsadbench.testing.detector_under_test import DetectorUnderTest
from tsadbench.utils.parameters import parse_arguments, parse_label

_STATUSES = ("pass", "warn", "fail", "skip", "expected-failure")


def subject_of(detector: str, *, full: bool) -> DetectorUnderTest:
    """Return a detector under test; ``full`` takes its own parameters instead of its cheap ones.

    Raises
    ------
    UsageError
        If the detector does not exist, or a parameter is out of range: that is wrong usage, not a failed check.
    """
    request = parse_label(detector)
    cls = load_detector(request.target)
    own = parse_arguments(cls, request.arguments, request.target)
    subject = DetectorUnderTest(cls, own if full else {**cls.test_params(), **own}, full=full, own=own)
    subject.make().check(synthetic.SENSORS)
    return subject


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
