"""Examines this installation, and prints what it finds as it finds it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from tsadbench.cli.actions.doctor import data, machine, packages, plugins
from tsadbench.cli.actions.doctor.findings import Finding, redacted

_SCHEMA = 1
_STYLES = {"ok": "green", "missing": "yellow", "broken": "bold red"}


def examine(
    *, directory: Path | None = None, runs: Path | None = None, cluster: str | None = None
) -> Iterator[Finding]:
    """Yield every finding as soon as it is made, without keys and tokens.

    Parameters
    ----------
    directory
        Folder that contains the data sets' folders; None searches as every command does.
    runs
        A run store to examine as well.
    cluster
        Address of a Dask cluster to examine as well.
    """
    for findings in (
        packages.packages(),
        packages.extras(),
        plugins.plugins(),
        machine.machine(),
        machine.seal(),
        machine.devices(),
        data.datasets(directory),
        data.cache(),
        machine.tools(),
        data.store(runs) if runs is not None else (),
        data.cluster(cluster) if cluster is not None else (),
    ):
        yield from map(redacted, findings)


def to_json(findings: Sequence[Finding]) -> str:
    """Return ``{"schema": 1, "ok": whether nothing is broken, "findings": [...]}``."""
    ok = all(finding.state != "broken" for finding in findings)
    content = {"schema": _SCHEMA, "ok": ok, "findings": [dataclasses.asdict(finding) for finding in findings]}
    return json.dumps(content, indent=1) + "\n"


def shown(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Print findings as they come, one line each, and pass them on."""
    console = Console(soft_wrap=True)
    section, n_broken = "", 0
    for finding in findings:
        if finding.section != section:
            section = finding.section
            console.print(Text(f"{section}:", style="bold"))
        advice = f"; {finding.advice}" if finding.advice else ""
        line = Text("  ").append(f"{finding.state:<8}", style=_STYLES[finding.state])
        console.print(line.append(f"{finding.name:<28} {finding.text}{advice}"))
        n_broken += finding.state == "broken"
        yield finding
    console.print(Text(f"{n_broken} broken" if n_broken else "nothing is broken"))
