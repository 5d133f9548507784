"""``tsadbench check``: whether a detector is honest and does what it promises."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from tsadbench.cli import complete

if TYPE_CHECKING:
    from tsadbench.testing import CheckResult
    from tsadbench.testing.detector_under_test import DetectorUnderTest


_STATUSES = ("pass", "fail", "skip", "expected-failure")


class Format(StrEnum):
    """The formats of the results on standard output."""

    table = "table"
    json = "json"


def check(
    detector: Annotated[
        str,
        typer.Argument(
            help="NAME, NAME\\[key=value,...], package.module:Class or path/file.py:Class.",
            autocompletion=complete.detectors,
        ),
    ],
    full: Annotated[
        bool, typer.Option("--full/--fast", help="Its own parameters and more rows, or its cheap test parameters.")
    ] = False,
    only: Annotated[list[str] | None, typer.Option(help="Id of a check to run. Repeat for several; all.")] = None,
    form: Annotated[Format, typer.Option("--format", help="Format of standard output.")] = Format.table,
) -> None:
    """Check a detector for leaks and broken promises; exit code 1 where it fails any check."""
    from tsadbench.testing import run_checks

    subject = _subject(detector, full)
    results = run_checks(subject, only=only or ())
    if form is Format.json:
        content = {"schema": 1, "detector": detector, "checks": [_to_json(result) for result in results]}
        print(json.dumps(content, indent=1))
    else:
        _show(detector, results)
    if not all(result.good for result in results):
        raise typer.Exit(1)


def _subject(detector: str, full: bool) -> DetectorUnderTest:
    from tsadbench.registry import load_detector
    from tsadbench.testing import synthetic as material
    from tsadbench.testing.detector_under_test import DetectorUnderTest
    from tsadbench.utils.parameters import parse_arguments, parse_label

    request = parse_label(detector)
    cls = load_detector(request.target)
    own = parse_arguments(cls, request.arguments, request.target)
    subject = DetectorUnderTest(cls, own if full else {**cls.test_params(), **own}, full=full)
    subject.make().check(material.SENSORS)  # a parameter out of range is wrong usage, not a failed check
    return subject


def _to_json(result: CheckResult) -> dict[str, object]:
    return {
        "id": result.id,
        "group": result.group,
        "sentence": result.sentence,
        "status": result.status,
        "reason": result.reason,
        "evidence": result.evidence,
    }


def _show(detector: str, results: list[CheckResult]) -> None:
    width = max(len(result.id) for result in results)
    for result in results:
        print(f"{result.status:<16} {result.id:<{width}}  {result.sentence}")
        if result.reason:
            print(f"{'':<16} {'':<{width}}  {result.status}: {result.reason}")
        for name, value in result.evidence.items():
            print(f"{'':<16} {'':<{width}}  {name} = {value}")
    counts = {status: sum(result.status == status for result in results) for status in _STATUSES}
    print(f"\n{detector}: " + ", ".join(f"{number} {status}" for status, number in counts.items() if number))
