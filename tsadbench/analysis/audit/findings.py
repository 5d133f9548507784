"""What an audit found, and the findings on the data sets that ship with tsadbench."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

from tsadbench.leaderboard.render import Table

Grade: TypeAlias = Literal["good", "note", "fault"]

# Written by docs/audits/write.py (`make pages`): {"schema", "datasets": {name: {"version", "summary", "findings"}}}.
SHIPPED = Path(__file__).with_name("findings.json")


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check of an audit, whose stable name is ``about``, with the tables behind it.

    The grade is "good"; "note": to be known; or "fault": it makes tables over the data set worth less. ``brief`` is the
    sentence in a few words, for notes under tables; empty if it is good, or another finding's says as much.
    """

    about: str
    grade: Grade
    sentence: str
    brief: str = ""
    tables: tuple[Table, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        if self.grade == "good":
            object.__setattr__(self, "brief", "")

    def as_row(self) -> dict[str, str]:
        """Return the finding without its tables."""
        return {"about": self.about, "grade": self.grade, "sentence": self.sentence, "brief": self.brief}


def summary(findings: Sequence[Finding]) -> str:
    """Return the faults in one line; it says so if there is none."""
    return "; ".join(one.brief for one in findings if one.grade == "fault" and one.brief) or "no fault found"


def shipped_findings(dataset: str, version: int | None = None) -> tuple[Finding, ...]:
    """Return the committed audit findings of a data set that ships with tsadbench, good ones included."""
    audited = _shipped().get(dataset)
    if audited is None or version not in (None, audited["version"]):
        return ()
    return tuple(Finding(**finding) for finding in audited["findings"])


def shipped_note(dataset: str, version: int | None = None) -> str:
    """Return the faults that the audit of a data set found, as a line for notes under tables; empty if none ships.

    >>> print(shipped_note("pumploop"))
    pumploop: no fault found (docs/audits/pumploop.md).
    """
    findings = shipped_findings(dataset, version)
    return f"{dataset}: {summary(findings)} (docs/audits/{dataset}.md)." if findings else ""


def write_shipped(audits: Mapping[str, tuple[int, Sequence[Finding]]], file: Path = SHIPPED) -> None:
    """Write data sets' versions and findings into the file that ships; other data sets stay as they are."""
    datasets = json.loads(file.read_bytes())["datasets"] if file.is_file() else {}
    for name, (version, findings) in audits.items():
        rows = [finding.as_row() for finding in findings]
        datasets[name] = {"version": version, "summary": summary(findings), "findings": rows}
    content = {"schema": 1, "datasets": dict(sorted(datasets.items()))}
    file.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


@cache
def _shipped() -> dict[str, Any]:
    datasets: dict[str, Any] = json.loads(SHIPPED.read_bytes())["datasets"]
    return datasets
