"""What an audit found, one line each, and the findings on the data sets that ship with tsadbench."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from pydantic import TypeAdapter

Grade: TypeAlias = Literal["good", "note", "fault"]

# Written by docs/audits/write.py (`make pages`): {"schema", "datasets": {name: {"version", "summary", "findings"}}}.
SHIPPED = Path(__file__).with_name("findings.json")
SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Finding:
    """One verdict.

    Parameters
    ----------
    about
        A stable name, for scripts.
    grade
        "good"; "note": to be known; "fault": it makes tables over the data set worth less.
    sentence
        The result, with its number.
    brief
        The same in a few words, for notes under tables; empty if it is good, or another finding's says as much.
    """

    about: str
    grade: Grade
    sentence: str
    brief: str = ""


def summary(findings: Sequence[Finding]) -> str:
    """Return the faults in one line; it says so if there is none."""
    return "; ".join(one.brief for one in findings if one.grade == "fault" and one.brief) or "no fault found"


def shipped_findings(dataset: str, version: int | None = None) -> tuple[Finding, ...]:
    """Return the committed audit findings of a data set that ships with tsadbench, good ones included."""
    audited = _shipped().datasets.get(dataset)
    return audited.findings if audited is not None and version in (None, audited.version) else ()


def shipped_note(dataset: str, version: int | None = None) -> str:
    """Return one line for the notes under a table: the faults that the audit of a data set found; empty if none ships.

    Parameters are those of `shipped_findings`.

    Examples
    --------
    >>> print(shipped_note("pumploop"))
    pumploop: no fault found (docs/audits/pumploop.md).
    """
    findings = shipped_findings(dataset, version)
    return f"{dataset}: {summary(findings)} (docs/audits/{dataset}.md)." if findings else ""


def write_shipped(audits: Mapping[str, tuple[int, Sequence[Finding]]], file: Path = SHIPPED) -> None:
    """Write findings into the file that ships; data sets that are not given stay as they are."""
    datasets = dict(_read(file).datasets) if file.is_file() else {}
    for name, (version, findings) in audits.items():
        datasets[name] = _Audited(version, summary(findings), tuple(findings))
    by_name = {
        name: {**one._asdict(), "findings": [dataclasses.asdict(finding) for finding in one.findings]}
        for name, one in sorted(datasets.items())
    }
    content = {"schema": SCHEMA, "datasets": by_name}
    file.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


class _Audited(NamedTuple):
    version: int
    summary: str
    findings: tuple[Finding, ...]


class _Shipped(NamedTuple):
    schema: int
    datasets: dict[str, _Audited]


@cache
def _shipped() -> _Shipped:
    return _read(SHIPPED)


def _read(file: Path) -> _Shipped:
    return TypeAdapter(_Shipped).validate_json(file.read_bytes())
